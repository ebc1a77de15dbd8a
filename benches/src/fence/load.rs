//! An idle machine, or one with work on every core.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::machine;

/// The lowest priority, which is also the load's priority in the figures that Paul Khuong published for barrierd.
const NICE: libc::c_int = 19;

/// The other work of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// No other work.
    Idle,
    /// One thread of this process on each core, which never waits and runs at low priority.
    Busy,
}

impl Load {
    /// The load in one word.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Load::Idle => "idle",
            Load::Busy => "busy",
        }
    }

    /// Starts the load.
    #[must_use]
    pub fn start(self) -> Busy {
        let over = Arc::new(AtomicBool::new(false));
        let threads = if self == Load::Busy { machine::cores() } else { 0 };
        let spin = |over: Arc<AtomicBool>| {
            move || {
                // SAFETY: the calls take integers only; to the kernel, each thread has its own priority.
                unsafe { libc::setpriority(libc::PRIO_PROCESS, libc::gettid() as libc::id_t, NICE) };
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        };
        Busy { threads: (0..threads).map(|_| thread::spawn(spin(Arc::clone(&over)))).collect(), over }
    }
}

/// The threads of the load; they end when this value is dropped.
pub struct Busy {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that only spins does not panic.
            let _ = thread.join();
        }
    }
}
