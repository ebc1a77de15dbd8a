//! The thread that issues fences which take milliseconds, for all who hold a ticket.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

use crate::fence::Fence;
use crate::grace;

/// The largest number of a fence that somebody wants.
static WANTED: Mutex<u64> = Mutex::new(0);
/// WANTED has grown.
static REQUESTED: Condvar = Condvar::new();
/// A fence has ended.
static SERVED: Condvar = Condvar::new();

/// Whether the thread runs, in this process.
static STATE: AtomicU8 = AtomicU8::new(NOT_YET);
const NOT_YET: u8 = 0;
const ALIVE: u8 = 1;
/// This is a child of fork, which has no thread but the one that forked; or none could be started; or its fence failed.
const GONE: u8 = 2;

/// Asks for a fence of this number.
pub(crate) fn request(number: u64) {
    if STATE.load(Ordering::Relaxed) == NOT_YET {
        start();
    }
    if is_alive() {
        let mut wanted = lock();
        if *wanted < number {
            *wanted = number;
            REQUESTED.notify_one();
        }
    }
}

/// Whether requests are served. If not, the holder of a ticket has to issue a fence.
pub(crate) fn is_alive() -> bool {
    STATE.load(Ordering::Relaxed) == ALIVE
}

/// Sleeps until a fence of this number has ended or the deadline is past; may also end early.
pub(crate) fn wait(number: u64, deadline: Option<Instant>) {
    let wanted = lock();
    if grace::has_ended(number) || !is_alive() {
        return;
    }
    match deadline {
        None => drop(SERVED.wait(wanted)),
        Some(deadline) => drop(SERVED.wait_timeout(wanted, deadline.saturating_duration_since(Instant::now()))),
    }
}

#[cold]
fn start() {
    static STARTED: OnceLock<()> = OnceLock::new();
    extern "C" fn in_the_child() {
        STATE.store(GONE, Ordering::Relaxed);
    }
    // Before the lock below: a child that is forked while another thread holds it must not come here. To register the handler twice does no harm.
    // SAFETY: the handler stores to an atomic, which is all right in a child of fork.
    let refused = unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) } != 0;
    STARTED.get_or_init(|| {
        let thread = thread::Builder::new().name("millstream-fence".to_owned());
        let started = !refused && thread.stack_size(64 << 10).spawn(serve).is_ok();
        STATE.store(if started { ALIVE } else { GONE }, Ordering::Relaxed);
    });
}

/// Says that nobody serves any more, if fences are refused.
struct Gone;

impl Drop for Gone {
    fn drop(&mut self) {
        // Under the lock: a ticket's holder that has read the state before sleeps by now, and is woken.
        let _wanted = lock();
        STATE.store(GONE, Ordering::Relaxed);
        SERVED.notify_all();
    }
}

fn serve() {
    // Dropped last, when the lock below is free.
    let _gone = Gone;
    let mut wanted = lock();
    loop {
        if grace::has_ended(*wanted) {
            // Perhaps by the fence of a thread that holds no ticket: whoever sleeps for it has not been told.
            SERVED.notify_all();
            wanted = REQUESTED.wait(wanted).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        drop(wanted);
        if Fence::QUIET.try_heavy().is_err() {
            return;
        }
        wanted = lock();
        SERVED.notify_all();
    }
}

/// A number is never half-written, so a poisoned lock is as good as any.
fn lock() -> MutexGuard<'static, u64> {
    WANTED.lock().unwrap_or_else(PoisonError::into_inner)
}
