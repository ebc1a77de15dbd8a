//! Cuts a payload at the matches of a regular expression.
//!
//! The expression is matched against a window of bytes that begins with the next piece. More text could make a match
//! longer. So a match counts only if the window has 64 KiB after the match, or extends to the end of the input;
//! otherwise the window grows. So the pieces do not depend on how many bytes each read returns.

use std::io::{self, BufReader, Read};
use std::ops::Range;

use regex::bytes::Regex;

use super::{Cut, Torn};

/// The number of bytes after a match that must be in the window before the match counts.
const AHEAD: usize = 64 << 10;

/// See the [module](self).
pub(super) struct Between<R> {
    input: BufReader<R>,
    separator: Regex,
    /// The maximum size of a piece.
    most: usize,
    /// The bytes that were read. The bytes from `from` on belong to no piece yet.
    window: Vec<u8>,
    from: usize,
    /// Whether a part of the piece was dropped. The last dropped byte stays in the window, before `from`, because `^`
    /// and `\b` depend on that byte.
    is_torn: bool,
    /// Whether the window extends to the end of the input.
    is_last: bool,
    part: u64,
    ended: bool,
}

impl<R: Read> Between<R> {
    pub(super) fn new(input: BufReader<R>, separator: Regex, most: usize) -> Self {
        Self {
            input,
            separator,
            most,
            window: Vec::new(),
            from: 0,
            is_torn: false,
            is_last: false,
            part: 0,
            ended: false,
        }
    }

    /// Reads until the window is this long or the input ends.
    fn extend_to(&mut self, bytes: usize) -> io::Result<()> {
        let lacks = bytes.saturating_sub(self.window.len() - self.from);
        if lacks == 0 || self.is_last {
            return Ok(());
        }
        let kept = usize::from(self.is_torn);
        self.window.drain(..self.from - kept);
        self.from = kept;
        let read = self.input.by_ref().take(lacks as u64).read_to_end(&mut self.window)?;
        self.is_last = read < lacks;
        Ok(())
    }

    /// The range of the first non-empty match in the window, relative to the piece's first byte.
    fn first_match(&self) -> Option<Range<usize>> {
        let before = usize::from(self.is_torn);
        let text = &self.window[self.from - before..];
        let mut from = before;
        while from <= text.len() {
            let found = self.separator.find_at(text, from)?;
            if !found.is_empty() {
                return Some(found.start() - before..found.end() - before);
            }
            from = found.end() + 1;
        }
        None
    }

    /// Drops the first bytes of a piece that is too long.
    fn drop_first(&mut self, bytes: usize) {
        self.from += bytes;
        self.is_torn = true;
    }

    /// Reads the next piece, which ends at the next match or at the end of the input. Returns `None` if no input is
    /// left.
    fn read(&mut self) -> Result<Option<Cut>, Torn> {
        // A window of this size contains the largest piece, a match of at most 64 KiB after it, and the 64 KiB after
        // that match.
        let largest = self.most.saturating_add(2 * AHEAD);
        let mut wanted = 2 * AHEAD;
        let piece = loop {
            self.extend_to(wanted)?;
            let length = self.window.len() - self.from;
            if length == 0 && !self.is_torn {
                return Ok(None);
            }
            match self.first_match() {
                Some(found)
                    if self.is_last
                        || found.end + AHEAD <= length
                        || wanted == largest && found.end - found.start > AHEAD =>
                {
                    let piece = self.window[self.from..self.from + found.start].to_vec();
                    self.from += found.end;
                    break piece;
                }
                None if self.is_last => break self.window.split_off(self.from),
                _ if wanted < largest => wanted = (2 * wanted).min(largest),
                // The piece is too long. The bytes at which a match could begin stay in the window, and the bytes
                // before them are dropped.
                found => self.drop_first(found.map_or(length - AHEAD, |found| found.start)),
            }
        };
        self.part += 1;
        Ok(Some(if std::mem::take(&mut self.is_torn) || piece.len() > self.most {
            Cut::wrong(format!("piece {} is longer than {} bytes, its `max_bytes`", self.part, self.most))
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

    /// A reader that returns only a few bytes per read.
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
    fn a_piece_that_is_too_long_is_skipped() {
        assert_eq!(pieces(b"abcde-fghijk-l", "-", 5), ["abcde", "!", "l"]);
        // `^` and `$` match neither at the end of a window nor at the point where bytes were dropped.
        let torn = [vec![b'a'; 100 << 10], b"=".to_vec(), vec![b'b'; 70_000]].concat();
        assert_eq!(pieces(&torn, "(?m)^=", 100 << 10), ["!"]);
        let dashes = [vec![b'x'; 131_070], vec![b'-'; 10], b"y".to_vec()].concat();
        assert_eq!(pieces(&dashes, "-+", 1024), ["!", "y"]);
        assert_eq!(pieces(&[vec![b'x'; 131_072], vec![b'y'; 10]].concat(), "x$", 1024), ["!"]);
        let edges = [vec![b'x'; 3 * AHEAD], b" yy".to_vec()].concat();
        assert_eq!(pieces(&edges, r"\by", 1024), ["!", ""], "the first `y` of two");
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
