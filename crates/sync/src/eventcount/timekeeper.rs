//! Alarms that wake tasks at a given time, for the timed rule. A separate thread, started on first use, serves them.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

use super::tasks::wake_contained;

/// The alarms of one process, and the thread that serves them.
struct Timekeeper {
    /// The process that made this value: a forked child lacks the thread, and inherits the locks in an arbitrary state.
    pid: u32,
    has_thread: Mutex<bool>,
    alarms: Mutex<BTreeMap<(Instant, u64), Waker>>,
    changed: Condvar,
}

/// Wakes the task at `time`; at once if no thread can be started.
pub(super) fn wake_at(time: Instant, waker: Waker) {
    let keeper = Timekeeper::of_this_process();
    if !keeper.has_started() {
        return wake_contained(waker);
    }
    let mut alarms = lock(&keeper.alarms);
    // Several alarms may fall on the same moment.
    let number = alarms.range((time, 0)..=(time, u64::MAX)).next_back().map_or(0, |((_, number), _)| number + 1);
    alarms.insert((time, number), waker);
    keeper.changed.notify_one();
}

impl Timekeeper {
    /// The process's timekeeper, allocated on first use and never freed.
    fn of_this_process() -> &'static Timekeeper {
        static CURRENT: AtomicPtr<Timekeeper> = AtomicPtr::new(ptr::null_mut());
        let pid = std::process::id();
        loop {
            // Acquire: pairs with the release below.
            let current = CURRENT.load(Ordering::Acquire);
            // SAFETY: the pointer is null or comes from a box below, which is never freed once it is published.
            if let Some(keeper) = unsafe { current.as_ref() }.filter(|keeper| keeper.pid == pid) {
                return keeper;
            }
            let (has_thread, alarms, changed) = Default::default();
            let new = Box::into_raw(Box::new(Timekeeper { pid, has_thread, alarms, changed }));
            // Release: pairs with the acquire above, so that another thread finds the keeper initialized.
            if CURRENT.compare_exchange(current, new, Ordering::Release, Ordering::Relaxed).is_err() {
                // SAFETY: `new` comes from the box above, and the failed exchange did not publish it.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }

    /// Starts the thread that serves the alarms, unless it is already running; returns whether it is running.
    fn has_started(&'static self) -> bool {
        let mut has_thread = lock(&self.has_thread);
        if !*has_thread {
            let thread = std::thread::Builder::new().name("eventcount-time".to_owned());
            *has_thread = thread.spawn(|| self.run()).is_ok();
        }
        *has_thread
    }

    fn run(&self) {
        let mut alarms = lock(&self.alarms);
        loop {
            let Some(&(time, number)) = alarms.keys().next() else {
                alarms = self.changed.wait(alarms).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = time.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                alarms = self.changed.wait_timeout(alarms, left).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            if let Some(waker) = alarms.remove(&(time, number)) {
                // The lock is released first: a waker may run any code, which may set an alarm.
                drop(alarms);
                wake_contained(waker);
                alarms = lock(&self.alarms);
            }
        }
    }
}

/// Locks, and ignores poison: no panic leaves guarded data half-written.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, mpsc};
    use std::task::Wake;
    use std::time::Duration;

    struct Panics;

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            std::panic::resume_unwind(Box::new("a waker that panics"));
        }
    }

    struct Tells(mpsc::SyncSender<()>);

    impl Wake for Tells {
        fn wake(self: Arc<Self>) {
            let _ = self.0.try_send(());
        }
    }

    #[test]
    fn a_child_of_fork_has_its_own_alarms() {
        let (tell, told) = mpsc::sync_channel(1);
        wake_at(Instant::now(), Waker::from(Arc::new(Tells(tell))));
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(()));
        // A child finds this state if it is forked while another thread sets an alarm.
        let _held = lock(&Timekeeper::of_this_process().alarms);
        // SAFETY: the child sets an alarm and exits, without running the destructors of its parent's threads.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: `alarm` has no preconditions; it ends a child that waits for longer than the test allows.
            unsafe { libc::alarm(60) };
            let (tell, told) = mpsc::sync_channel(1);
            wake_at(Instant::now() + Duration::from_millis(1), Waker::from(Arc::new(Tells(tell))));
            let is_told = told.recv_timeout(Duration::from_secs(30)).is_ok();
            // SAFETY: `_exit` has no preconditions.
            unsafe { libc::_exit(i32::from(!is_told)) };
        }
        let mut status = 0;
        // SAFETY: `child` is the process forked above, and `status` is valid for writes.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
    }

    #[test]
    fn alarms_outlive_a_waker_that_panics() {
        let now = Instant::now();
        wake_at(now, Waker::from(Arc::new(Panics)));
        let (tell, told) = mpsc::sync_channel(1);
        wake_at(now + Duration::from_millis(1), Waker::from(Arc::new(Tells(tell))));
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(()));
    }
}
