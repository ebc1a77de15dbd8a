//! Text in a signal handler: a line of limited size, written by one system call.

/// The maximum length of a report; the rest is cut off.
const MAX_BYTES: usize = 512;

/// A line that is assembled without allocation.
pub(super) struct Text {
    bytes: [u8; MAX_BYTES],
    length: usize,
}

impl Text {
    pub(super) fn new() -> Self {
        Text { bytes: [0; MAX_BYTES], length: 0 }
    }

    pub(super) fn add(mut self, text: &str) -> Self {
        for &byte in text.as_bytes() {
            if self.length < MAX_BYTES {
                self.bytes[self.length] = byte;
                self.length += 1;
            }
        }
        self
    }

    pub(super) fn add_number(self, mut number: u64) -> Self {
        let mut digits = [0; 20];
        let mut start = digits.len();
        loop {
            start -= 1;
            digits[start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.add(std::str::from_utf8(&digits[start..]).unwrap_or("?"))
    }

    /// Writes the text to standard error.
    pub(super) fn write(&self) {
        let mut rest = &self.bytes[..self.length];
        while !rest.is_empty() {
            // SAFETY: the bytes belong to this value.
            let written = unsafe { libc::write(libc::STDERR_FILENO, rest.as_ptr().cast(), rest.len()) };
            match usize::try_from(written) {
                Ok(written @ 1..) => rest = &rest[written.min(rest.len())..],
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &Text) -> &str {
        std::str::from_utf8(&text.bytes[..text.length]).unwrap()
    }

    #[test]
    fn numbers_and_text_are_joined() {
        assert_eq!(
            shown(&Text::new().add("a ").add_number(0).add(" ").add_number(u64::MAX)),
            format!("a 0 {}", u64::MAX)
        );
    }

    #[test]
    fn a_long_text_is_cut_off() {
        let text = Text::new().add(&"x".repeat(MAX_BYTES - 2)).add("yyyy").add_number(7);
        assert!(shown(&text).len() == MAX_BYTES && shown(&text).ends_with("xyy"));
    }
}
