//! Blocks of about one size, each up to the end of a line.

use std::io::{self, BufRead, BufReader, Read};

use super::{Cut, Torn};

/// See the [module](self).
pub(crate) struct Blocks<R> {
    input: BufReader<R>,
    /// The last byte of a line.
    ending: u8,
    size: usize,
    /// The largest block taken.
    most: usize,
    part: u64,
    ended: bool,
}

/// A block that is larger than may be.
pub(crate) struct TooLong {
    /// Its number, from 1.
    pub part: u64,
}

impl<R: Read> Blocks<R> {
    pub(crate) fn new(input: BufReader<R>, ending: u8, size: usize, most: usize) -> Self {
        Self { input, ending, size, most: most.max(size), part: 0, ended: false }
    }

    /// The number of the last block, from 1; 0 before the first.
    pub(crate) fn part(&self) -> u64 {
        self.part
    }

    /// The next block, if there is one. One that is too long is passed over.
    ///
    /// # Errors
    /// Those of the input; there are no more blocks then.
    pub(crate) fn try_next(&mut self) -> io::Result<Option<Result<Vec<u8>, TooLong>>> {
        let mut block = Vec::new();
        self.input.by_ref().take(self.size as u64).read_to_end(&mut block)?;
        if block.is_empty() {
            return Ok(None);
        }
        self.part += 1;
        if block.last() != Some(&self.ending) {
            let room = (self.most - block.len()) as u64 + 1;
            self.input.by_ref().take(room).read_until(self.ending, &mut block)?;
        }
        if block.len() > self.most {
            if block.last() != Some(&self.ending) {
                self.input.skip_until(self.ending)?;
            }
            return Ok(Some(Err(TooLong { part: self.part })));
        }
        Ok(Some(Ok(block)))
    }

    fn read(&mut self) -> Result<Option<Cut>, Torn> {
        Ok(self.try_next()?.map(|block| match block {
            Ok(block) => Cut::of(block),
            Err(TooLong { part }) => {
                Cut::wrong(format!("block {part} ends in a line that goes beyond {} bytes, its `max_bytes`", self.most))
            }
        }))
    }
}

impl<R: Read> Iterator for Blocks<R> {
    type Item = Result<Cut, Torn>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        self.read().transpose().inspect(|block| self.ended |= block.is_err())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &str, size: usize, most: usize) -> Vec<String> {
        let cuts = Blocks::new(BufReader::with_capacity(3, text.as_bytes()), b'\n', size, most);
        let shown = |cut: Cut| cut.fault.map_or_else(|| String::from_utf8(cut.content).unwrap(), |_| "!".to_owned());
        cuts.map(|cut| shown(cut.unwrap())).collect()
    }

    #[test]
    fn no_block_ends_within_a_line() {
        assert_eq!(blocks("ab\ncd\nef\ng", 4, 100), ["ab\ncd\n", "ef\ng"]);
        assert_eq!(blocks("ab\ncd\n", 3, 100), ["ab\n", "cd\n"]);
        assert_eq!(blocks("", 3, 100), [""; 0]);
    }

    #[test]
    fn a_block_that_is_too_long_is_passed_over() {
        assert_eq!(blocks("ab\n0123456789\ncd\n", 4, 6), ["!", "cd\n"]);
        assert_eq!(blocks("a\n01234\ncd\n", 2, 6), ["a\n", "01234\n", "cd\n"]);
    }
}
