//! Wakes tasks at a given time, for the timed rule: a thread of its own, started when first needed.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, Once, PoisonError};
use std::task::Waker;
use std::time::Instant;

static ALARMS: Mutex<BTreeMap<(Instant, u64), Waker>> = Mutex::new(BTreeMap::new());
static CHANGED: Condvar = Condvar::new();

/// Wakes the task when `time` has come.
///
/// # Panics
/// If the thread cannot be started.
pub(super) fn wake_at(time: Instant, waker: Waker) {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        std::thread::Builder::new()
            .name("eventcount-time".to_owned())
            .spawn(run)
            .expect("a thread is needed to wake tasks where the heavy fence is missing");
    });
    let mut alarms = ALARMS.lock().unwrap_or_else(PoisonError::into_inner);
    // Several alarms may be at the same moment.
    let number = alarms.range((time, 0)..=(time, u64::MAX)).next_back().map_or(0, |((_, number), _)| number + 1);
    alarms.insert((time, number), waker);
    CHANGED.notify_one();
}

fn run() {
    let mut alarms = ALARMS.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let Some(&(time, number)) = alarms.keys().next() else {
            alarms = CHANGED.wait(alarms).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let left = time.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            alarms = CHANGED.wait_timeout(alarms, left).unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        if let Some(waker) = alarms.remove(&(time, number)) {
            // Without the lock: a waker may run anything, also set an alarm.
            drop(alarms);
            waker.wake();
            alarms = ALARMS.lock().unwrap_or_else(PoisonError::into_inner);
        }
    }
}
