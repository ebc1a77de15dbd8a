//! A reader whose wait for input ends at an interrupt.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::jobs::Interrupts;

/// The longest time until an interrupt is noticed.
const LOOK: Duration = Duration::from_millis(50);

/// Reads until an interrupt comes, and fails afterwards, so that half a line is not mistaken for a line.
pub(super) struct Attentive {
    file: File,
    interrupts: Interrupts,
}

impl Attentive {
    pub(super) fn new(file: File, interrupts: Interrupts) -> Self {
        Self { file, interrupts }
    }
}

impl Read for Attentive {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let look = Timespec::try_from(LOOK).expect("a look is short");
        loop {
            if self.interrupts.any() {
                return Err(io::Error::other("interrupted"));
            }
            match poll(&mut [PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::IN)], Some(&look)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return self.file.read(room),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn an_interrupt_ends_the_wait_for_input() {
        let (from, mut to) = io::pipe().unwrap();
        let interrupts = Interrupts::none();
        let mut reader = Attentive::new(File::from(std::os::fd::OwnedFd::from(from)), interrupts.clone());
        let mut room = [0; 8];
        to.write_all(b"1\n").unwrap();
        assert_eq!(reader.read(&mut room).unwrap(), 2);
        let waiting = std::thread::spawn(move || reader.read(&mut room).unwrap_err().to_string());
        interrupts.note();
        assert_eq!(waiting.join().unwrap(), "interrupted");
        drop(to);
    }
}
