//! Snapshots at an interval.

use std::time::{Duration, Instant};

use crate::control::Control;
use crate::snapshot::Snapshot;

/// The longest time between two checks for the end of the flow.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The snapshots of a flow at an interval, until the flow is over; see [`Control::snapshots`].
#[derive(Debug)]
pub struct Snapshots {
    control: Control,
    every: Duration,
    next: Instant,
    is_over: bool,
}

impl Control {
    /// Takes a snapshot now, one after each interval of `every`, and a last one when the flow is over: drained, or
    /// given up after [`abandon`](Self::abandon). A flow that was never started is never over.
    ///
    /// The iterator stores no snapshots: a late call to `next` yields the state at that moment, and skips the missed
    /// snapshots. The interval is at least [`Snapshots::MIN_INTERVAL`]. While the iterator waits, it checks every 50 ms
    /// whether the flow is over, so it may notice the end up to 50 ms late. Each check takes the flow's lock for an
    /// instant.
    ///
    /// ```
    /// # use millstream_flow::Flow;
    /// # use std::time::Duration;
    /// let mut flow = Flow::builder("watched");
    /// let (work, done) = (flow.inlet("work"), flow.retire());
    /// flow.stage(work, |n: &mut u64, _| Ok(*n)).to(done);
    /// let service = flow.build(work)?.start();
    /// let snapshots = service.control().snapshots(Duration::from_millis(10));
    /// let watcher = std::thread::spawn(move || snapshots.inspect(|now| println!("{}", now.held_by())).last());
    /// service.send_all(0..1000).unwrap();
    /// service.drain();
    /// let last = watcher.join().unwrap().expect("the state at the end");
    /// assert_eq!((last.retired, last.in_flight), (1000, 0));
    /// # Ok::<(), millstream_flow::BuildError>(())
    /// ```
    pub fn snapshots(&self, every: Duration) -> Snapshots {
        Snapshots::new(self.clone(), every)
    }
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
            // This check precedes the snapshot, so that the last snapshot has the flow's last numbers.
            self.is_over = self.control.shared.lock().is_finished();
            let left = self.next.saturating_duration_since(Instant::now());
            if self.is_over || left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(CHECK_INTERVAL));
        }
        // A late reader gets the newest state, and no snapshots for the intervals that it missed.
        self.next = (self.next + self.every).max(Instant::now());
        Some(self.control.snapshot())
    }
}
