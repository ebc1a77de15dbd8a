//! The work inside the critical section, and the locks around it.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use millstream_sync::lock::lock_api::{self, RawMutex};

/// The length of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// One addition to a variable.
    Empty,
    /// The addition, and about a hundred nanoseconds of arithmetic.
    Long,
}

/// The length of a [`Section::Long`].
const LONG_NS: u64 = 100;

impl Section {
    /// The name of the length.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Section::Empty => "an empty section",
            Section::Long => "a section of 100 ns",
        }
    }

    /// Does the work of the section.
    #[inline(always)]
    pub fn visit(self, visits: &mut u64) {
        *visits += 1;
        if self == Section::Long {
            work(rounds());
        }
    }
}

fn work(rounds: u64) {
    black_box((0..rounds).fold(black_box(7), |x: u64, _| x.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7)));
}

/// The number of rounds of [`work`] that take [`LONG_NS`] on this machine, when undisturbed.
fn rounds() -> u64 {
    static ROUNDS: OnceLock<u64> = OnceLock::new();
    *ROUNDS.get_or_init(|| {
        const TRIED: u64 = 100_000;
        let tries = (0..20).map(|_| {
            let began = Instant::now();
            work(TRIED);
            began.elapsed()
        });
        let fastest = tries.min().unwrap_or(Duration::from_micros(1));
        TRIED * LONG_NS / (fastest.as_nanos() as u64).max(1)
    })
}

/// A lock around a number.
pub trait Lock: Default + Sync {
    /// Runs a section under the lock.
    fn visit(&self, section: Section);
    /// Returns the number of visits.
    fn into_visits(self) -> u64;
}

impl Lock for std::sync::Mutex<u64> {
    #[inline(always)]
    fn visit(&self, section: Section) {
        section.visit(&mut self.lock().expect("no thread panics in a section"));
    }

    fn into_visits(self) -> u64 {
        self.into_inner().expect("no thread panics in a section")
    }
}

impl<R: RawMutex + Sync> Lock for lock_api::Mutex<R, u64> {
    #[inline(always)]
    fn visit(&self, section: Section) {
        section.visit(&mut self.lock());
    }

    fn into_visits(self) -> u64 {
        self.into_inner()
    }
}

/// No lock, for a single thread: the cost of everything else.
#[derive(Debug, Default)]
pub struct Unlocked(UnsafeCell<u64>);

// SAFETY: only one thread at a time uses the value, as its docs require.
unsafe impl Sync for Unlocked {}

impl Lock for Unlocked {
    #[inline(always)]
    fn visit(&self, section: Section) {
        // SAFETY: only one thread uses the value, so no other reference exists.
        section.visit(unsafe { &mut *black_box(self.0.get()) });
    }

    fn into_visits(self) -> u64 {
        self.0.into_inner()
    }
}
