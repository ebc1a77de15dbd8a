//! The durations that the engine plans with. They share a file because they must stay in proportion. A turn is shorter
//! than the time for which the gate is attended, and that time is shorter than a watch. A watch is shorter than a chain
//! or a stall.

use std::time::Duration;

/// The maximum number of batches that a worker takes in one turn.
pub(crate) const TURN_BATCHES: usize = 16;
/// The maximum time that the batches of one turn should take together.
pub(crate) const TURN_NS: u64 = 20_000;

/// The intended duration of one pull of the source.
pub(crate) const PULL_NS: u64 = 100_000;

/// A worker whose batch ends within this time is expected back soon. Until then, sent units wait for it at the gate
/// (see `intake/gate`).
pub(crate) const SOON_NS: u64 = 200_000;

/// The time for which the scheduler relies on workers that are expected soon, before it wakes other workers instead.
pub(crate) const WATCH_NS: u64 = 1_000_000;

/// A turn or a pull that has taken this long counts as held up. It is 20 times the intended duration of a pull, and 100
/// times the intended duration of a turn's batches in their first stage. A healthy turn whose batches go on through
/// further stages may last this long, too. A turn that is held up loses the batches that it has not begun, and other
/// workers can take them.
pub(crate) const TURN_LASTS_NS: u64 = 2_000_000;

/// A chain older than this ends with its current stage.
pub(crate) const CHAIN_NS: u64 = 4_000_000;

/// The duration of a watch while all shared workers are busy, in place of [`WATCH_NS`]. It is also the time for which
/// the source waits for a shared worker before an additional thread pulls it.
pub(crate) const STALL_NS: u64 = 4_000_000;

/// The time for which a granted batch may be passed over in favour of stages nearer the exit.
pub(crate) const PATIENCE_NS: u64 = 50_000_000;

/// A worker without work polls for this long before it sleeps, if work is likely to come.
pub(crate) const ALERT_NS: u64 = 10_000;

/// A backlog with less work than this is not worth a wake-up, because the wake-up itself takes a large part of this
/// time.
pub(crate) const WAKE_NS: u64 = 40_000;

/// The approximate time that the engine itself spends on one unit in one stage.
pub(crate) const OWN_NS: u64 = 15;

/// A duration in nanoseconds; a duration that does not fit becomes `u64::MAX`.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
