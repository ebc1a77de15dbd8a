//! Operating-system errors as failures that say what was tried, on which file, and whether trying again can help.
//!
//! To have no descriptor left is no failure of the unit's: it goes back to its queue and waits until others have given theirs
//! back. It does so for as long as any op of the process gets on, and for [`PATIENCE`] beyond.

use std::io;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use millstream_flow::{Cause, Failure};
use rustix::io::Errno;

/// How long units wait for descriptors while no op succeeds.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pause before a unit that found no descriptor asks again.
const PAUSE: Duration = Duration::from_millis(100);

static DEARTH: Dearth = Dearth { since_ms: AtomicU64::new(0) };

/// `cannot DOING PATH: REASON`, permanent when the reason stays the same however often it is tried.
pub(crate) fn io_failure(doing: &str, path: &Path, error: &io::Error) -> Failure {
    if let Some(waits) = starved(error) {
        return waits.context(format_args!("cannot {doing} {}", path.display()));
    }
    let failure = Failure::msg(format!("cannot {doing} {}: {error}", path.display()));
    if is_lasting(error) { failure.to_permanent() } else { failure }
}

/// The unit's way back to its queue, if the error is that there is no descriptor or no buffer to be had and others may still give
/// theirs back.
pub(super) fn starved(error: &io::Error) -> Option<Failure> {
    let lacks = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS].map(Errno::raw_os_error);
    let starved = error.raw_os_error().is_some_and(|errno| lacks.contains(&errno));
    (starved && DEARTH.may_wait(now_ms())).then(|| Failure::requeue(error.to_string()).not_before(PAUSE))
}

/// Whether the failure is [that](starved) there is no descriptor to be had.
pub(super) fn is_starved(failure: &Failure) -> bool {
    failure.cause() == Cause::Cancelled && failure.pause() == PAUSE
}

/// An op has succeeded.
pub(super) fn gets_on() {
    DEARTH.ends();
}

/// Milliseconds since this was first asked, from 1.
fn now_ms() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
}

/// A time in which no op succeeds because there are no descriptors.
struct Dearth {
    /// When it began; 0: there is none. All accesses are relaxed: it orders nothing.
    since_ms: AtomicU64,
}

impl Dearth {
    /// Whether it may go on, having begun now if there was none.
    fn may_wait(&self, now_ms: u64) -> bool {
        let since_ms = match self.since_ms.compare_exchange(0, now_ms, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => now_ms,
            Err(since_ms) => since_ms,
        };
        u128::from(now_ms.saturating_sub(since_ms)) < PATIENCE.as_millis()
    }

    fn ends(&self) {
        // Mostly there is none, and then its cache line stays with all cores.
        if self.since_ms.load(Ordering::Relaxed) != 0 {
            self.since_ms.store(0, Ordering::Relaxed);
        }
    }
}

/// Whether the error is about the file's name or rights, not about the moment.
fn is_lasting(error: &io::Error) -> bool {
    use io::ErrorKind::{
        AlreadyExists, InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound, PermissionDenied,
        ReadOnlyFilesystem, Unsupported,
    };
    matches!(
        error.kind(),
        AlreadyExists
            | InvalidFilename
            | InvalidInput
            | IsADirectory
            | NotADirectory
            | NotFound
            | PermissionDenied
            | ReadOnlyFilesystem
            | Unsupported
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::{Dearth, PATIENCE};

    #[test]
    fn a_dearth_ends_with_a_success_or_with_patience() {
        let dearth = Dearth { since_ms: AtomicU64::new(0) };
        let patience = PATIENCE.as_millis() as u64;
        assert!(dearth.may_wait(5) && dearth.may_wait(4 + patience));
        assert!(!dearth.may_wait(5 + patience));
        dearth.ends();
        assert!(dearth.may_wait(6 + patience) && dearth.may_wait(5 + 2 * patience));
        assert!(!dearth.may_wait(6 + 2 * patience));
    }
}
