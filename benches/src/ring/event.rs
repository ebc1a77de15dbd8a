//! The events of the rings: a number, alone or repeated as often as the payload has words.

/// A value that is made of a number, and that returns the number after all of it has been read.
pub(super) trait Event: Copy + Send + Sync + 'static {
    fn of(number: u64) -> Self;
    fn number(&self) -> u64;
}

impl Event for u64 {
    fn of(number: u64) -> Self {
        number
    }

    fn number(&self) -> u64 {
        *self
    }
}

impl<const WORDS: usize> Event for [u64; WORDS] {
    fn of(number: u64) -> Self {
        [number; WORDS]
    }

    fn number(&self) -> u64 {
        self.iter().sum::<u64>() / WORDS as u64
    }
}
