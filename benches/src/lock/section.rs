//! What is done under a lock, and the locks that it is done under.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use millstream_sync::lock::lock_api::{self, RawMutex};

/// How long a section lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// One addition to a variable.
    Empty,
    /// Some hundred nanoseconds of arithmetic besides.
    Long,
}

/// The length of a [`Section::Long`].
const LONG_NS: u64 = 100;

impl Section {
    /// Its name.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Section::Empty => "an empty section",
            Section::Long => "a section of 100 ns",
        }
    }

    /// Does what is done inside.
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

/// How much [`work`] takes so long on this machine, undisturbed.
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

/// A lock with a number inside.
pub trait Lock: Default + Sync {
    /// Does a section under the lock.
    fn visit(&self, section: Section);
    /// How many visits there were.
    fn into_visits(self) -> u64;
}

impl Lock for std::sync::Mutex<u64> {
    #[inline(always)]
    fn visit(&self, section: Section) {
        section.visit(&mut self.lock().expect("nobody panics inside"));
    }

    fn into_visits(self) -> u64 {
        self.into_inner().expect("nobody panics inside")
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

/// No lock: for one thread, to show what the rest costs.
#[derive(Debug, Default)]
pub struct Unlocked(UnsafeCell<u64>);

// SAFETY: only ever used by one thread at a time, as its docs say.
unsafe impl Sync for Unlocked {}

impl Lock for Unlocked {
    #[inline(always)]
    fn visit(&self, section: Section) {
        // SAFETY: one thread.
        section.visit(unsafe { &mut *black_box(self.0.get()) });
    }

    fn into_visits(self) -> u64 {
        self.0.into_inner()
    }
}
