//! Cuts a payload at each occurrence of a fixed text.

use std::io::{BufRead, BufReader, Read};

use super::{Cut, Torn};

/// See the [module](self).
pub(super) struct Separated<R> {
    input: BufReader<R>,
    separator: Vec<u8>,
    /// The maximum size of a piece.
    most: usize,
    part: u64,
    ended: bool,
}

impl<R: Read> Separated<R> {
    pub(super) fn new(input: BufReader<R>, separator: Vec<u8>, most: usize) -> Self {
        Self { input, separator, most, part: 0, ended: false }
    }

    /// Reads the next piece, which ends at the next separator or at the end of the input. Returns `None` if no input is
    /// left.
    fn read(&mut self) -> Result<Option<Cut>, Torn> {
        let last = *self.separator.last().expect("a separator is not empty");
        let (mut piece, mut dropped, mut any) = (Vec::new(), 0, false);
        loop {
            // Each read ends after the next byte that could be the last one of a separator, or at the limit. So no
            // separator is missed.
            let room = self.most + self.separator.len();
            let read = self
                .input
                .by_ref()
                .take(room.saturating_sub(piece.len()).max(1) as u64)
                .read_until(last, &mut piece)?;
            any |= read > 0;
            if piece.ends_with(&self.separator) {
                piece.truncate(piece.len() - self.separator.len());
                break;
            }
            if read == 0 {
                self.ended = true;
                if !any {
                    return Ok(None);
                }
                break;
            }
            if piece.len() >= room {
                // The piece is too long. The last bytes, which could be the start of a separator, stay, and the bytes
                // before them are dropped.
                let keep = self.separator.len() - 1;
                dropped += piece.len() - keep;
                piece.drain(..piece.len() - keep);
            }
        }
        self.part += 1;
        Ok(Some(if dropped + piece.len() > self.most {
            Cut::wrong(format!("piece {} is longer than {} bytes, its `max_bytes`", self.part, self.most))
        } else {
            Cut::of(piece)
        }))
    }
}

impl<R: Read> Iterator for Separated<R> {
    type Item = Result<Cut, Torn>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        self.read().transpose().inspect(|piece| self.ended |= piece.is_err())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str, separator: &str, most: usize) -> Vec<String> {
        let input = BufReader::with_capacity(3, text.as_bytes());
        let cuts = Separated::new(input, separator.into(), most);
        let shown = |cut: Cut| cut.fault.map_or_else(|| String::from_utf8(cut.content).unwrap(), |_| "!".to_owned());
        cuts.map(|cut| shown(cut.unwrap())).collect()
    }

    #[test]
    fn pieces_lie_between_separators() {
        assert_eq!(pieces("a--b-c----d", "--", 100), ["a", "b-c", "", "d"]);
        assert_eq!(pieces("a--b--", "--", 100), ["a", "b"], "the end needs no separator");
        assert_eq!(pieces("", "--", 100), [""; 0]);
        assert_eq!(pieces("--", "--", 100), [""]);
        assert_eq!(pieces("abcabd", "abd", 100), ["abc"]);
    }

    #[test]
    fn a_piece_that_is_too_long_is_skipped() {
        assert_eq!(pieces("abcde--fghij--k", "--", 5), ["abcde", "fghij", "k"]);
        assert_eq!(pieces("abcdef--xy--0123456789-0123456789--z", "--", 5), ["!", "xy", "!", "z"]);
        assert_eq!(pieces("xy--0123456789", "--", 5), ["xy", "!"]);
    }
}
