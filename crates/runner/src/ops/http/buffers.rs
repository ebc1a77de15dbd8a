//! The buffers of a connection. Thousands of connections may wait for responses at once, and a waiting connection needs
//! little memory.
//!
//! The buffers of `ureq` have their final size, 256 KiB, from the start. Here the request's buffer is freed once the request
//! has been sent. The response's buffer is allocated when the first bytes arrive. It is small at first, and doubles whenever a
//! read fills it.

use ureq::unversioned::transport::Buffers;

/// The first size of the buffer for a response.
const FIRST_INPUT: usize = 4096;

/// The size of the additional scratch buffer while a request's body is sent: the minimum in `ureq`.
const MIN_TMP: usize = 10 * 1024;

/// See the [module](self).
pub(super) struct GrowingBuffers {
    max_input: usize,
    output_size: usize,
    input: Vec<u8>,
    /// The part of the input that holds bytes.
    filled: std::ops::Range<usize>,
    output: Vec<u8>,
    /// The last call of `input_consume` consumed at least one byte.
    progress: bool,
    /// The last read filled the buffer, so the next one gets a larger buffer.
    is_short: bool,
}

impl GrowingBuffers {
    pub(super) fn new(max_input: usize, output_size: usize) -> Self {
        let (input, output) = (Vec::new(), Vec::new());
        GrowingBuffers { max_input, output_size, input, filled: 0..0, output, progress: false, is_short: false }
    }

    /// Whether the connection still waits for the first bytes of a response, and the response's buffer is not
    /// allocated.
    pub(super) fn await_first(&self) -> bool {
        self.input.is_empty()
    }

    /// Frees the buffer of a request that has been sent.
    pub(super) fn sent(&mut self) {
        self.output = Vec::new();
    }

    /// Makes room for at least `least` bytes.
    fn make_room(&mut self, least: usize) {
        self.input.copy_within(self.filled.clone(), 0);
        self.filled = 0..self.filled.len();
        let room = self.input.len() - self.filled.end;
        if room < least {
            self.input.resize(self.filled.end + least, 0);
        }
    }
}

impl Buffers for GrowingBuffers {
    fn output(&mut self) -> &mut [u8] {
        if self.output.is_empty() {
            self.output = vec![0; self.output_size];
        }
        &mut self.output
    }

    fn input(&self) -> &[u8] {
        &self.input[self.filled.clone()]
    }

    fn input_append_buf(&mut self) -> &mut [u8] {
        let size = match self.input.len() {
            0 => FIRST_INPUT,
            size if self.is_short || self.filled.len() == size => size * 2,
            size => size,
        };
        self.is_short = false;
        self.make_room(size.min(self.max_input).saturating_sub(self.filled.len()));
        &mut self.input[self.filled.end..]
    }

    fn input_appended(&mut self, amount: usize) {
        self.filled.end += amount;
        self.is_short = self.filled.end == self.input.len();
    }

    fn input_consume(&mut self, amount: usize) {
        self.progress = amount > 0;
        self.filled.start += amount;
    }

    fn tmp_and_output(&mut self) -> (&mut [u8], &mut [u8]) {
        self.output();
        self.make_room(MIN_TMP);
        (&mut self.input[self.filled.end..], &mut self.output)
    }

    fn can_use_input(&self) -> bool {
        !self.filled.is_empty() && self.progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_doubles_while_reads_fill_it_and_keeps_what_was_not_consumed() {
        let mut buffers = GrowingBuffers::new(20_000, 64);
        let (mut sent, mut kept, mut sizes) = (0_u8, Vec::new(), Vec::new());
        for _ in 0..6 {
            let room = buffers.input_append_buf();
            let amount = room.len();
            sizes.push(amount);
            room.fill_with(|| {
                sent = sent.wrapping_add(1);
                sent
            });
            buffers.input_appended(amount);
            // Each iteration leaves one byte unconsumed.
            let consumed = buffers.input().len() - 1;
            kept.extend_from_slice(&buffers.input()[..consumed]);
            buffers.input_consume(consumed);
        }
        assert_eq!(sizes, [4096, 8191, 16383, 19999, 19999, 19999]);
        assert!(kept.iter().zip(1_u64..).all(|(&byte, place)| u64::from(byte) == place % 256));
        assert!(buffers.can_use_input());
        assert_eq!(buffers.input().len(), 1);
    }

    #[test]
    fn a_read_that_leaves_room_does_not_grow_the_input() {
        let mut buffers = GrowingBuffers::new(20_000, 64);
        for _ in 0..5 {
            assert_eq!(buffers.input_append_buf().len(), FIRST_INPUT);
            buffers.input_appended(100);
            buffers.input_consume(100);
        }
        buffers.output()[0] = 1;
        buffers.sent();
        assert_eq!((buffers.output.capacity(), buffers.output().len()), (0, 64));
    }
}
