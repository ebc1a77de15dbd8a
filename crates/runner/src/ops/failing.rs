//! Turns errors of the operating system into failures. A failure names the attempted action and the file, and tells
//! whether a retry can help.
//!
//! A lack of descriptors is not a failure of the unit: the unit goes back to its queue and is tried again later, when
//! other units may have closed their files. The unit fails only when no op of the process has succeeded for
//! [`PATIENCE`].

use std::io;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use millstream_flow::{Cause, Failure};
use rustix::io::Errno;

/// How long units wait for descriptors while no op succeeds.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pause before a unit that lacked a descriptor is tried again.
const PAUSE: Duration = Duration::from_millis(100);

static DEARTH: Dearth = Dearth { since_ms: AtomicU64::new(0) };

/// The failure `cannot DOING PATH: REASON`. It is permanent if another attempt would fail for the same reason.
pub fn io_failure(doing: &str, path: &Path, error: &io::Error) -> Failure {
    if let Some(waits) = starved(error) {
        return waits.context(format_args!("cannot {doing} {}", path.display()));
    }
    let failure = Failure::msg(format!("cannot {doing} {}: {error}", path.display()));
    if is_lasting(error) { failure.to_permanent() } else { failure }
}

/// The failure that sends the unit back to its queue, if the error is a lack of descriptors or buffers and the unit may
/// still wait; otherwise `None`.
pub(super) fn starved(error: &io::Error) -> Option<Failure> {
    let lacks = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS].map(Errno::raw_os_error);
    let starved = error.raw_os_error().is_some_and(|errno| lacks.contains(&errno));
    (starved && DEARTH.may_wait(now_ms())).then(|| Failure::requeue(error.to_string()).not_before(PAUSE))
}

/// Whether the failure is a [lack of descriptors](starved).
pub(super) fn is_starved(failure: &Failure) -> bool {
    failure.cause() == Cause::Cancelled && failure.pause() == PAUSE
}

/// Notes that an op has succeeded, which ends a period of [`Dearth`].
pub(super) fn gets_on() {
    DEARTH.ends();
}

/// Milliseconds since the first call, plus one: never 0.
fn now_ms() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
}

/// A period that begins with a lack of descriptors and ends with the next success of an op.
struct Dearth {
    /// The beginning of the period; 0 if there is no such period now. All accesses are relaxed: the value orders
    /// nothing.
    since_ms: AtomicU64,
}

impl Dearth {
    /// Whether units may still wait: the period has lasted less than [`PATIENCE`]. Begins a period if there is none.
    fn may_wait(&self, now_ms: u64) -> bool {
        let since_ms = match self.since_ms.compare_exchange(0, now_ms, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => now_ms,
            Err(since_ms) => since_ms,
        };
        u128::from(now_ms.saturating_sub(since_ms)) < PATIENCE.as_millis()
    }

    fn ends(&self) {
        // Usually there is no period. The value is then only read, so all cores keep a shared copy of the cache line.
        if self.since_ms.load(Ordering::Relaxed) != 0 {
            self.since_ms.store(0, Ordering::Relaxed);
        }
    }
}

/// Whether the error concerns the file's name or permissions, rather than a temporary state.
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
