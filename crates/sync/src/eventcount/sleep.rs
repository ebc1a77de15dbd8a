//! Threads that sleep on a word: the futex, or a model of it.

use std::time::Duration;

use super::word::Word;

/// How to sleep and wake.
pub struct Sleeping<'a> {
    /// Whether the sleepers may be threads of other processes.
    pub(super) shared: bool,
    /// Wake after this even if nobody wakes us.
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
    /// Sleeps until woken, if the low half of `word` is that of `expected`. The comparison and the falling
    /// asleep are one step for everyone who changes the word and then calls [`wake`](Self::wake).
    pub(super) fn sleep(&self, word: &impl Word, expected: u64) {
        self.queue.sleep(word, expected, self.limit, self.shared);
    }

    /// Wakes at most `most` threads and tells how many.
    pub(super) fn wake(&self, word: &impl Word, most: usize) -> usize {
        self.queue.wake(word, most, self.shared)
    }
}

#[cfg(not(loom))]
mod futex {
    use std::ptr;
    use std::time::Duration;

    use super::Word;

    /// The kernel has the queue.
    #[derive(Debug, Clone, Copy, Default)]
    pub struct Queue;

    impl Queue {
        pub(super) fn sleep(self, word: &impl Word, expected: u64, limit: Option<Duration>, shared: bool) {
            count_system_call();
            // A limit beyond the range is as good as the longest there is.
            let limit = limit.map(|limit| libc::timespec {
                tv_sec: limit.as_secs().try_into().unwrap_or(libc::time_t::MAX),
                tv_nsec: limit.subsec_nanos().into(),
            });
            let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
            // SAFETY: the word lives as long as the call, `limit` is null or points to a timespec. The
            // outcome says why the call returned; every caller looks at the count again anyway.
            unsafe {
                libc::syscall(libc::SYS_futex, word.futex(), libc::FUTEX_WAIT | scope(shared), expected as u32, limit);
            }
        }

        pub(super) fn wake(self, word: &impl Word, most: usize, shared: bool) -> usize {
            count_system_call();
            let most = i32::try_from(most).unwrap_or(i32::MAX);
            // SAFETY: a wake only uses the word's address, as a name.
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

        /// The futex calls that this thread has made.
        pub(in crate::eventcount) fn system_calls() -> u64 {
            SYSTEM_CALLS.get()
        }
    }
}

/// The futex as the kernel promises it: a lock around "compare and queue" and around "wake".
#[cfg(loom)]
mod model {
    use std::time::Duration;

    use loom::sync::{Condvar, Mutex};

    use super::Word;
    use crate::primitive::Ordering;

    #[derive(Debug, Default)]
    pub struct Queue {
        asleep: Mutex<usize>,
        woken: Condvar,
    }

    impl Queue {
        pub(super) fn sleep(&self, word: &impl Word, expected: u64, _limit: Option<Duration>, _shared: bool) {
            let mut asleep = self.asleep.lock().unwrap();
            if word.load(Ordering::Relaxed) == expected {
                *asleep += 1;
                drop(self.woken.wait(asleep).unwrap());
            }
        }

        pub(super) fn wake(&self, _word: &impl Word, most: usize, _shared: bool) -> usize {
            let mut asleep = self.asleep.lock().unwrap();
            let woken = most.min(*asleep);
            *asleep -= woken;
            for _ in 0..woken {
                self.woken.notify_one();
            }
            woken
        }
    }
}
