//! Threads that sleep on a word: the futex, or a model of it.

use std::time::Duration;

use super::word::Word;

/// The parameters of a sleep or a wake-up.
pub struct Sleeping<'a> {
    /// Whether the sleepers may be threads of other processes.
    pub(super) shared: bool,
    /// The sleep ends after this time even without a wake-up.
    pub(super) limit: Option<Duration>,
    pub(super) queue: &'a Queue,
}

#[cfg(not(loom))]
pub(super) use futex::Queue;
#[cfg(all(test, not(loom)))]
pub(super) use futex::count;
#[cfg(loom)]
pub(super) use model::Queue;

impl Sleeping<'_> {
    /// Sleeps until woken, if the low half of `word` equals that of `expected`. The comparison and falling asleep are
    /// one step for every thread that changes the word and then calls [`wake`](Self::wake).
    pub(super) fn sleep(&self, word: &impl Word, expected: u64) {
        self.queue.sleep(word, expected, self.limit, self.shared);
    }

    /// Wakes at most `most` threads and returns how many it woke.
    pub(super) fn wake(&self, word: &impl Word, most: usize) -> usize {
        self.queue.wake(word, most, self.shared)
    }
}

#[cfg(not(loom))]
mod futex {
    use std::ptr;
    use std::time::Duration;

    use super::Word;

    /// The kernel keeps the queue, so there is nothing to store here.
    #[derive(Debug, Clone, Copy, Default)]
    pub struct Queue;

    impl Queue {
        pub(super) fn sleep(self, word: &impl Word, expected: u64, limit: Option<Duration>, shared: bool) {
            count_system_call();
            // A limit that exceeds the range of a `timespec` becomes the longest that fits.
            let limit = limit.map(|limit| libc::timespec {
                tv_sec: limit.as_secs().try_into().unwrap_or(libc::time_t::MAX),
                tv_nsec: limit.subsec_nanos().into(),
            });
            let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
            // SAFETY: the word outlives the call, and `limit` is null or points to a timespec. The result only says why
            // the call returned, and every caller checks the count again anyway.
            unsafe {
                libc::syscall(libc::SYS_futex, word.futex(), libc::FUTEX_WAIT | scope(shared), expected as u32, limit);
            }
        }

        pub(super) fn wake(self, word: &impl Word, most: usize, shared: bool) -> usize {
            count_system_call();
            let most = i32::try_from(most).unwrap_or(i32::MAX);
            // SAFETY: a wake uses the word's address only as a key, and does not access the word.
            let woken = unsafe { libc::syscall(libc::SYS_futex, word.futex(), libc::FUTEX_WAKE | scope(shared), most) };
            usize::try_from(woken).unwrap_or(0)
        }
    }

    fn scope(shared: bool) -> libc::c_int {
        if shared { 0 } else { libc::FUTEX_PRIVATE_FLAG }
    }

    #[cfg(not(test))]
    fn count_system_call() {}

    #[cfg(test)]
    use count::count_system_call;

    #[cfg(test)]
    pub(in crate::eventcount) mod count {
        use std::cell::Cell;

        thread_local! {
            static SYSTEM_CALLS: Cell<u64> = const { Cell::new(0) };
        }

        pub(super) fn count_system_call() {
            SYSTEM_CALLS.set(SYSTEM_CALLS.get() + 1);
        }

        /// Number of futex calls that this thread has made.
        pub(in crate::eventcount) fn system_calls() -> u64 {
            SYSTEM_CALLS.get()
        }
    }
}

/// A futex with no stronger ordering than the kernel promises: a thread's writes before a wake-up are visible to the
/// threads that it wakes, and to those that compare the word afterwards. The sleepers' earlier writes do not become
/// visible to the thread that wakes them. Loom's locks would make them visible, because each of their operations is a
/// full fence.
#[cfg(loom)]
mod model {
    use std::collections::VecDeque;
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use loom::thread::{self, Thread};

    use super::Word;
    use crate::primitive::{AtomicU32, Ordering};

    #[derive(Debug, Default)]
    pub struct Queue {
        /// The number of wake-ups. A wake-up changes it with release ordering only, and sleepers read it with acquire
        /// ordering only.
        wakes: AtomicU32,
        /// The sleepers in order of arrival. The lock and the sleeper's flag are the standard library's, so neither of
        /// them orders anything in the model. Loom switches threads only in its own operations, so no thread ever waits
        /// for the lock.
        sleepers: Mutex<VecDeque<Arc<Sleeper>>>,
    }

    #[derive(Debug)]
    struct Sleeper {
        thread: Thread,
        is_woken: AtomicBool,
    }

    impl Queue {
        pub(super) fn sleep(&self, word: &impl Word, expected: u64, _limit: Option<Duration>, _shared: bool) {
            let wakes = || self.wakes.fetch_add(0, Ordering::Acquire);
            let mut seen = wakes();
            loop {
                if word.load(Ordering::Relaxed) != expected {
                    return;
                }
                // Comparing and queueing are one step if no wake-up came in between.
                let now = wakes();
                if now == seen {
                    break;
                }
                seen = now;
            }
            let sleeper = Arc::new(Sleeper { thread: thread::current(), is_woken: AtomicBool::new(false) });
            self.sleepers.lock().unwrap().push_back(Arc::clone(&sleeper));
            while !sleeper.is_woken.load(Ordering::Relaxed) {
                thread::park();
            }
        }

        pub(super) fn wake(&self, _word: &impl Word, most: usize, _shared: bool) -> usize {
            self.wakes.fetch_add(1, Ordering::Release);
            let mut sleepers = self.sleepers.lock().unwrap();
            let woken = most.min(sleepers.len());
            for sleeper in sleepers.drain(..woken) {
                sleeper.is_woken.store(true, Ordering::Relaxed);
                sleeper.thread.unpark();
            }
            woken
        }
    }
}
