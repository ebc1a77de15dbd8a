//! The token that lets a page change its run.
//!
//! The hashes of tokens are compared in constant time, so the response time reveals nothing. After a wrong token, the
//! next attempts are compared one at a time, with a pause between them. If several attempts are waiting already, another
//! attempt is refused without a comparison. This limits the number of tokens tried per second, for any number of
//! connections.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The minimum length of a token. A shorter token could be guessed by brute force.
const MIN_TOKEN_BYTES: usize = 16;
/// The maximum length of a token.
const MAX_TOKEN_BYTES: usize = 4096;
/// The pause after a wrong token.
const PAUSE: Duration = Duration::from_millis(500);
/// The maximum number of waiting attempts.
const MAX_WAITING: u32 = 4;

/// A token, and the time of the next attempt after a wrong token.
#[derive(Debug)]
pub(super) struct Token {
    hash: blake3::Hash,
    /// The time at which the next attempt may be compared; `None` if no wrong token was tried.
    next: Mutex<Option<Instant>>,
}

/// The result of an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    Right,
    Wrong,
    /// Too many attempts are waiting.
    Refused,
}

impl Token {
    /// Creates a token from a text.
    ///
    /// # Errors
    /// The text is too short or too long, or has characters that a header cannot contain.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        if !(MIN_TOKEN_BYTES..=MAX_TOKEN_BYTES).contains(&text.len()) {
            return Err(format!("a token has from {MIN_TOKEN_BYTES} to {MAX_TOKEN_BYTES} characters"));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a token consists of visible ASCII characters".to_owned());
        }
        Ok(Self { hash: blake3::hash(text.as_bytes()), next: Mutex::new(None) })
    }

    /// Reads a token from a file, which may end with a newline.
    ///
    /// # Errors
    /// The file cannot be read or does not contain a valid token.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(MAX_TOKEN_BYTES as u64 + 3).read_to_string(&mut text));
        read.map_err(|error: io::Error| error.to_string())?;
        Self::new(text.trim_end_matches(['\r', '\n']))
    }

    /// Compares a token. Waits first if wrong tokens were tried before.
    pub(super) fn compare(&self, text: &str) -> Attempt {
        let Some(moment) = self.turn(Instant::now()) else { return Attempt::Refused };
        thread::sleep(moment.saturating_duration_since(Instant::now()));
        // Hashes are compared in constant time.
        if blake3::hash(text.as_bytes()) == self.hash {
            return Attempt::Right;
        }
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        *next = Some(next.map_or(Instant::now(), |next| next.max(Instant::now())) + PAUSE);
        Attempt::Wrong
    }

    /// Returns when an attempt that arrives now may be compared; `None` if too many attempts are waiting.
    fn turn(&self, now: Instant) -> Option<Instant> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        match *next {
            Some(moment) if moment > now => (moment < now + PAUSE * MAX_WAITING).then(|| {
                *next = Some(moment + PAUSE);
                moment
            }),
            _ => Some(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_and_visible() {
        assert!(Token::new("short").unwrap_err().contains("16"));
        assert!(Token::new("with a blank in it").unwrap_err().contains("visible"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "0123456789abcdef\n").unwrap();
        let token = Token::read(&path).unwrap();
        assert_eq!(token.compare("0123456789abcdef"), Attempt::Right);
        assert!(Token::read(folder.path()).is_err());
    }

    #[test]
    fn wrong_tokens_take_turns_and_a_crowd_of_them_is_refused() {
        let token = Token::new("0123456789abcdef").unwrap();
        let start = Instant::now();
        assert_eq!(token.compare("0123456789abcdeg"), Attempt::Wrong);
        let attempts: Vec<_> = (0..20).map(|_| token.turn(start)).collect();
        let moments: Vec<_> = attempts.iter().flatten().collect();
        assert!((2..=MAX_WAITING as usize).contains(&moments.len()), "{moments:?}");
        assert!(moments.windows(2).all(|pair| *pair[1] - *pair[0] == PAUSE));
        assert_eq!(token.turn(start), None, "the line is full");
        assert!(token.turn(start + PAUSE * MAX_WAITING).is_some(), "and it moves on");
    }
}
