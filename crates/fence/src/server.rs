//! The thread that passes quiet fences, which take milliseconds, for all tickets.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

use crate::fence::Fence;
use crate::grace;

/// The largest fence number that has been requested.
static WANTED: Mutex<u64> = Mutex::new(0);
/// Signals that `WANTED` has grown.
static REQUESTED: Condvar = Condvar::new();
/// Signals that a fence has ended.
static SERVED: Condvar = Condvar::new();

/// The state of the thread in this process.
static STATE: AtomicU8 = AtomicU8::new(NOT_YET);
const NOT_YET: u8 = 0;
const ALIVE: u8 = 1;
/// There is no thread: this process is a child of fork, which has only the thread that forked, or the thread could not be
/// started, or its fence was refused.
const GONE: u8 = 2;

/// Requests a fence with this number.
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

/// Returns whether the thread exists and serves requests. If not, the ticket's holder must pass a fence itself.
pub(crate) fn is_alive() -> bool {
    STATE.load(Ordering::Relaxed) == ALIVE
}

/// Sleeps until a fence with this number has ended or the deadline has passed. May return early.
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
    // The handler is registered before any thread locks `WANTED`: a child that is forked while another thread holds the lock must
    // not wait for it. Registering the handler twice is harmless. SAFETY: the handler only stores to an atomic, which is allowed
    // in a child of fork.
    let refused = unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) } != 0;
    STARTED.get_or_init(|| {
        let thread = thread::Builder::new().name("millstream-fence".to_owned());
        let started = !refused && thread.stack_size(64 << 10).spawn(serve).is_ok();
        STATE.store(if started { ALIVE } else { GONE }, Ordering::Relaxed);
    });
}

/// Marks the thread as gone when dropped, that is, when the thread ends because its fence was refused.
struct Gone;

impl Drop for Gone {
    fn drop(&mut self) {
        // A ticket's holder takes this lock, reads the state, and releases the lock only when it goes to sleep. A holder that
        // has read the old state is therefore asleep by now, and the notification wakes it.
        let _wanted = lock();
        STATE.store(GONE, Ordering::Relaxed);
        SERVED.notify_all();
    }
}

fn serve() {
    // This guard is declared first, so that it is dropped last, when the lock below has been released.
    let _gone = Gone;
    let mut wanted = lock();
    loop {
        if grace::has_ended(*wanted) {
            // The fence may have been passed by a caller of `heavy`, which notifies no sleeping thread, so this thread does.
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

/// Locks, and ignores poisoning: a panic cannot leave the number in an invalid state.
fn lock() -> MutexGuard<'static, u64> {
    WANTED.lock().unwrap_or_else(PoisonError::into_inner)
}
