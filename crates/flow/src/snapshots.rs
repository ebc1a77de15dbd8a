//! Snapshots at an interval.

use std::time::{Duration, Instant};

use crate::control::Control;
use crate::snapshot::Snapshot;

/// The longest time between two checks for the end of the flow.
const LOOK: Duration = Duration::from_millis(50);

/// The snapshots of a flow at an interval, from now on until the flow is over; see [`Control::snapshots`].
#[derive(Debug)]
pub struct Snapshots {
    control: Control,
    every: Duration,
    next: Instant,
    is_over: bool,
}

impl Snapshots {
    /// The shortest interval.
    pub const MIN_INTERVAL: Duration = Duration::from_millis(1);

    pub(crate) fn new(control: Control, every: Duration) -> Self {
        Snapshots { control, every: every.max(Self::MIN_INTERVAL), next: Instant::now(), is_over: false }
    }
}

impl Iterator for Snapshots {
    type Item = Snapshot;

    /// Waits for the moment of the next snapshot, or for the end of the flow.
    fn next(&mut self) -> Option<Snapshot> {
        if self.is_over {
            return None;
        }
        loop {
            // Checked before the snapshot is taken: the last one has the flow's last numbers.
            self.is_over = self.control.shared.lock().is_finished();
            let left = self.next.saturating_duration_since(Instant::now());
            if self.is_over || left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(LOOK));
        }
        // A reader that was late gets the newest state, and no snapshots of what it has missed.
        self.next = (self.next + self.every).max(Instant::now());
        Some(self.control.snapshot())
    }
}
