//! An idle machine, or one whose every core works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::machine;

/// Below everybody else's priority, as the load of the figures that Paul Khuong published for his daemon.
const NICE: libc::c_int = 19;

/// What else the machine does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Nothing.
    Idle,
    /// A thread of this process on each core, which never waits, at low priority.
    Busy,
}

impl Load {
    /// In one word.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Load::Idle => "idle",
            Load::Busy => "busy",
        }
    }

    /// Starts it.
    #[must_use]
    pub fn start(self) -> Busy {
        let over = Arc::new(AtomicBool::new(false));
        let threads = if self == Load::Busy { machine::cores() } else { 0 };
        let spin = |over: Arc<AtomicBool>| {
            move || {
                // SAFETY: the calls take integers; for the kernel a thread has a priority of its own.
                unsafe { libc::setpriority(libc::PRIO_PROCESS, libc::gettid() as libc::id_t, NICE) };
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        };
        Busy { threads: (0..threads).map(|_| thread::spawn(spin(Arc::clone(&over)))).collect(), over }
    }
}

/// The threads; they end when this is dropped.
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
