//! Pieces with text between them that a regular expression matches.
//!
//! The expression sees a window that begins with the piece. A match counts once 64 KiB are known behind it, or all there is, since
//! further text could make it longer; where the window has no such match, it grows. So the pieces depend on the text alone, and
//! not on how it was read.

use std::io::{self, BufReader, Read};
use std::ops::Range;

use regex::bytes::Regex;

use super::{Cut, Torn};

/// The bytes behind a match that decide it.
const AHEAD: usize = 64 << 10;

/// See the [module](self).
pub(super) struct Between<R> {
    input: BufReader<R>,
    separator: Regex,
    /// The largest piece taken.
    most: usize,
    /// The bytes that were read; those from `from` on are in no piece yet.
    window: Vec<u8>,
    from: usize,
    /// Nothing comes behind the window.
    is_last: bool,
    part: u64,
    ended: bool,
}

impl<R: Read> Between<R> {
    pub(super) fn new(input: BufReader<R>, separator: Regex, most: usize) -> Self {
        Self { input, separator, most, window: Vec::new(), from: 0, is_last: false, part: 0, ended: false }
    }

    /// Makes the window this long, if there is as much.
    fn extend_to(&mut self, bytes: usize) -> io::Result<()> {
        let lacks = bytes.saturating_sub(self.window.len() - self.from);
        if lacks == 0 || self.is_last {
            return Ok(());
        }
        self.window.drain(..std::mem::take(&mut self.from));
        let read = self.input.by_ref().take(lacks as u64).read_to_end(&mut self.window)?;
        self.is_last = read < lacks;
        Ok(())
    }

    /// The first match in the window that is not empty.
    fn first_match(&self) -> Option<Range<usize>> {
        self.separator.find_iter(&self.window[self.from..]).map(|found| found.range()).find(|range| !range.is_empty())
    }

    /// Reads up to the next match, or to the end; `None` if nothing is left.
    fn read(&mut self) -> Result<Option<Cut>, Torn> {
        let largest = self.most.saturating_add(AHEAD).max(2 * AHEAD);
        let (mut wanted, mut dropped) = (2 * AHEAD, 0_u64);
        let piece = loop {
            self.extend_to(wanted)?;
            let length = self.window.len() - self.from;
            if length == 0 && dropped == 0 {
                return Ok(None);
            }
            match self.first_match() {
                Some(found) if self.is_last || found.end + AHEAD <= length || wanted == largest => {
                    let piece = self.window[self.from..self.from + found.start].to_vec();
                    self.from += found.end;
                    break piece;
                }
                None if self.is_last => break self.window.split_off(self.from),
                _ if wanted < largest => wanted = (2 * wanted).min(largest),
                _ => {
                    // Too long: what could be the start of a match is kept, and the rest goes.
                    let gone = length - AHEAD;
                    self.from += gone;
                    dropped += gone as u64;
                }
            }
        };
        self.part += 1;
        Ok(Some(if dropped + piece.len() as u64 > self.most as u64 {
            Cut::wrong(format!(
                "piece {} is longer than {} bytes, the most that `max_bytes` lets it have",
                self.part, self.most
            ))
        } else {
            Cut::of(piece)
        }))
    }
}

impl<R: Read> Iterator for Between<R> {
    type Item = Result<Cut, Torn>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let piece = self.read().transpose();
        self.ended = !matches!(piece, Some(Ok(_)));
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads no more than a few bytes at once.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = buffer.len().min(7);
            self.0.read(&mut buffer[..most])
        }
    }

    fn pieces(text: &[u8], separator: &str, most: usize) -> Vec<String> {
        let input = BufReader::with_capacity(3, Slow(text));
        let cuts = Between::new(input, Regex::new(separator).unwrap(), most);
        let shown = |cut: Cut| cut.fault.map_or_else(|| String::from_utf8(cut.content).unwrap(), |_| "!".to_owned());
        cuts.map(|cut| shown(cut.unwrap())).collect()
    }

    #[test]
    fn pieces_lie_between_matches() {
        assert_eq!(pieces(b"a--b---c", "-+", 100), ["a", "b", "c"]);
        assert_eq!(pieces(b"one\n==\ntwo\n====\n", r"(?m)^=+\n", 100), ["one\n", "two\n"]);
        assert_eq!(pieces(b"-a", "-", 100), ["", "a"], "the start is a piece");
        assert_eq!(pieces(b"", "-", 100), [""; 0]);
        assert_eq!(pieces(b"aXbYc", "X|Y", 100), ["a", "b", "c"]);
        assert_eq!(pieces(b"ab-cd", r"\b-?", 100), ["ab", "cd"], "a match of nothing cuts nothing");
    }

    #[test]
    fn a_piece_that_is_too_long_is_passed_over() {
        assert_eq!(pieces(b"abcde-fghijk-l", "-", 5), ["abcde", "!", "l"]);
        let long = [b"a-".to_vec(), vec![b'x'; 5 * AHEAD], b"-b".to_vec()].concat();
        assert_eq!(pieces(&long, "-+", 5), ["a", "!", "b"]);
        assert_eq!(pieces(&long[2..long.len() - 2], "-+", 5), ["!"]);
    }

    #[test]
    fn a_match_is_found_whole_wherever_the_window_ends() {
        for before in [2 * AHEAD - 3, 2 * AHEAD, AHEAD - 1, 4 * AHEAD - 2] {
            let text = [vec![b'x'; before], vec![b'-'; 6], b"end".to_vec()].concat();
            let found = pieces(&text, "-+", 10 * AHEAD);
            assert_eq!(found.iter().map(String::len).collect::<Vec<_>>(), [before, 3], "{before}");
        }
    }
}
