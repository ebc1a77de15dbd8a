//! Blocks of about one size, each up to the end of a line.

use std::io::{BufRead, BufReader, Read};

use super::{Cut, Torn};

/// See the [module](self).
pub(super) struct Blocks<R> {
    input: BufReader<R>,
    size: usize,
    /// The largest block taken.
    most: usize,
    part: u64,
    ended: bool,
}

impl<R: Read> Blocks<R> {
    pub(super) fn new(input: BufReader<R>, size: usize, most: usize) -> Self {
        Self { input, size, most, part: 0, ended: false }
    }

    fn read(&mut self) -> Result<Option<Cut>, Torn> {
        let mut block = Vec::new();
        self.input.by_ref().take(self.size as u64).read_to_end(&mut block)?;
        if block.is_empty() {
            return Ok(None);
        }
        self.part += 1;
        if block.last() != Some(&b'\n') {
            let room = (self.most - block.len()) as u64 + 1;
            self.input.by_ref().take(room).read_until(b'\n', &mut block)?;
        }
        if block.len() > self.most {
            if block.last() != Some(&b'\n') {
                self.input.skip_until(b'\n')?;
            }
            let message =
                format!("block {} ends in a line that goes beyond {} bytes, its `max_bytes`", self.part, self.most);
            return Ok(Some(Cut::wrong(message)));
        }
        Ok(Some(Cut::of(block)))
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
        let cuts = Blocks::new(BufReader::with_capacity(3, text.as_bytes()), size, most);
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
