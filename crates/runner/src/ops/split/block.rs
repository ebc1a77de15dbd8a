//! Cuts a payload into blocks of about equal size. Each block ends at the end of a line.
//!
//! A line that would make a block too large begins the next block. A line that is too long for any block is skipped;
//! the lines before and after that line are in blocks.

use std::io::{self, BufRead, BufReader, Read};

use super::{Cut, Torn};

/// See the [module](self).
pub struct Blocks<R> {
    input: BufReader<R>,
    /// The last byte of a line.
    ending: u8,
    size: usize,
    /// The maximum size of a block.
    most: usize,
    part: u64,
    /// The start of the next block, which was read already. It is at most one line.
    read_ahead: Vec<u8>,
    ended: bool,
}

/// The error for a line that is too long for any block.
pub struct TooLong {
    /// The line's number, counted from 1 as if the line were a block.
    pub part: u64,
}

impl<R: Read> Blocks<R> {
    /// The blocks of `input`, each of about `size` bytes, whose lines end with `ending` and have at most `most` bytes.
    pub fn new(input: BufReader<R>, ending: u8, size: usize, most: usize) -> Self {
        Self { input, ending, size, most: most.max(size), part: 0, read_ahead: Vec::new(), ended: false }
    }

    /// The number of the last block, counted from 1; 0 before the first block.
    pub fn part(&self) -> u64 {
        self.part
    }

    /// The next block, or [`TooLong`] for a line that is skipped.
    ///
    /// # Errors
    /// The input cannot be read. There are no blocks after that.
    pub fn try_next(&mut self) -> io::Result<Option<Result<Vec<u8>, TooLong>>> {
        let mut block = std::mem::take(&mut self.read_ahead);
        self.input.by_ref().take(self.size.saturating_sub(block.len()) as u64).read_to_end(&mut block)?;
        if block.is_empty() {
            return Ok(None);
        }
        self.part += 1;
        if block.last() != Some(&self.ending) {
            let room = (self.most + 1).saturating_sub(block.len()) as u64;
            self.input.by_ref().take(room).read_until(self.ending, &mut block)?;
        }
        let Some(before_last) = block.len().checked_sub(1).filter(|_| block.len() > self.most) else {
            return Ok(Some(Ok(block)));
        };
        if let Some(end) = block[..before_last].iter().rposition(|byte| *byte == self.ending) {
            self.read_ahead = block.split_off(end + 1);
            return Ok(Some(Ok(block)));
        }
        if block.last() != Some(&self.ending) {
            self.input.skip_until(self.ending)?;
        }
        Ok(Some(Err(TooLong { part: self.part })))
    }

    fn read(&mut self) -> Result<Option<Cut>, Torn> {
        Ok(self.try_next()?.map(|block| match block {
            Ok(block) => Cut::of(block),
            Err(TooLong { part }) => {
                Cut::wrong(format!("part {part} is a line of more than {} bytes, its `max_bytes`", self.most))
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
    fn a_line_that_is_too_long_is_skipped_alone() {
        assert_eq!(blocks("ab\n0123456789\ncd\n", 4, 6), ["ab\n", "!", "cd\n"]);
        assert_eq!(blocks("0123456789\ncd\n", 4, 6), ["!", "cd\n"]);
        assert_eq!(blocks("ab\n0123456789", 4, 6), ["ab\n", "!"]);
        assert_eq!(blocks("a\n01234\ncd\n", 2, 6), ["a\n", "01234\n", "cd\n"]);
    }

    #[test]
    fn a_line_for_which_a_block_has_no_room_is_in_the_next_one() {
        assert_eq!(blocks("ab\n01234\ncd\n", 4, 6), ["ab\n", "01234\n", "cd\n"]);
        assert_eq!(blocks("ab\n012345", 4, 6), ["ab\n", "012345"]);
        assert_eq!(blocks("ab\n012\nc\n", 4, 6), ["ab\n", "012\n", "c\n"]);
    }

    #[test]
    fn every_line_that_fits_is_in_a_block_whatever_the_sizes() {
        let text: String = (0..40).map(|n| format!("{}\n", "x".repeat(n * 7 % 12))).collect();
        for size in 1..12 {
            for most in size..14 {
                let found = blocks(&text, size, most);
                let fits = text.split_inclusive('\n').filter(|line| line.len() <= most);
                let kept: Vec<String> = found.iter().filter(|block| *block != "!").cloned().collect();
                assert_eq!(kept.concat(), fits.collect::<String>(), "size {size}, at most {most}");
                assert!(kept.iter().all(|block| block.len() <= most), "size {size}, at most {most}");
            }
        }
    }
}
