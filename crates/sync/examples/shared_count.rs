//! An event count in memory that two processes map: this program starts a copy of itself, which is the waiting process.
//!
//! The board starts as a file of zeros, which is the initial state of its event counts. One process publishes numbers,
//! the other adds them up and sleeps in between.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use millstream_sync::eventcount::{Incrementer, SharedSpEventCount64};

const NUMBERS: u64 = 100_000;

/// The state that the processes share: only atomics and event counts, which other processes may change at any time.
#[repr(C)]
struct Board {
    /// How many numbers have been published.
    published: SharedSpEventCount64,
    /// The latest sum.
    sum: AtomicU64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1) {
        Some(path) => wait_for_all(map(&File::options().read(true).write(true).open(path)?)?),
        None => publish()?,
    }
    Ok(())
}

fn publish() -> Result<(), Box<dyn std::error::Error>> {
    let file = tempfile::NamedTempFile::new_in("/dev/shm")?;
    file.as_file().set_len(size_of::<Board>() as u64)?;
    let board = map(file.as_file())?;
    let mut other = Command::new(std::env::current_exe()?).arg(file.path()).spawn()?;
    // SAFETY: no other process increments this count, and no process incremented it before.
    let mut published = unsafe { Incrementer::new(&board.published) };
    for number in 1..=NUMBERS {
        board.sum.store(number * (number + 1) / 2, Relaxed); // first the change,
        published.increment(); // then the increment
    }
    assert!(other.wait()?.success());
    Ok(())
}

fn wait_for_all(board: &Board) {
    let sum = board.published.wait_for(|| (board.published.value() >= NUMBERS).then(|| board.sum.load(Relaxed)));
    assert_eq!(sum, NUMBERS * (NUMBERS + 1) / 2);
    println!("{NUMBERS} numbers, {sum} in all");
}

/// Maps the file until the process ends.
fn map(file: &File) -> std::io::Result<&'static Board> {
    let (bytes, access) = (size_of::<Board>(), libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: the mapping is new, at an address of the kernel's choice, and is never unmapped.
    let memory = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if memory == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the mapping is page-aligned and as long as a board; zeros are a valid board, and it holds only atomics.
    Ok(unsafe { &*memory.cast::<Board>() })
}
