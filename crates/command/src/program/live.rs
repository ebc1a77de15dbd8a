//! The groups whose leaders are not reaped yet, so that a run that gives up on its units leaves no program behind.
//!
//! A worker ends its program itself, with a moment's grace, when its unit runs out of time or the flow is abandoned. A
//! run that ends while a worker is doing so, or before the worker has noticed, calls [`end`].

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, RawPid, Signal, kill_process_group};

/// Whether the start of programs is refused from now on.
static OVER: AtomicBool = AtomicBool::new(false);

/// Shared while a program is started, so that a thread that ends all programs waits until this one is listed.
static STARTING: RwLock<()> = RwLock::new(());

/// The maximum wait for a start. The start of a program on a file system that hangs, or in a folder on one, neither
/// succeeds nor fails.
const PATIENCE: Duration = Duration::from_secs(1);

/// The leaders' numbers. Each number is removed before its leader is reaped, so the kernel has given none of them to
/// another process.
static LEADERS: Mutex<BTreeSet<RawPid>> = Mutex::new(BTreeSet::new());

fn leaders() -> MutexGuard<'static, BTreeSet<RawPid>> {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a program that leads a group, and lists it.
pub(super) fn start<T>(spawn: impl FnOnce() -> io::Result<(Pid, T)>) -> io::Result<(Pid, T)> {
    let _starting = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    // Relaxed: the thread that sets it takes this lock before it looks at the list.
    if OVER.load(Ordering::Relaxed) {
        return Err(io::Error::other("the run is over"));
    }
    let (leader, rest) = spawn()?;
    leaders().insert(leader.as_raw_pid());
    Ok((leader, rest))
}

/// The leader has ended and is about to be reaped.
pub(super) fn forget(leader: Pid) {
    leaders().remove(&leader.as_raw_pid());
}

/// Kills all groups that live; no more are started.
pub fn end() {
    OVER.store(true, Ordering::Relaxed);
    kill_all();
    let began = Instant::now();
    while let Err(TryLockError::WouldBlock) = STARTING.try_write() {
        if began.elapsed() > PATIENCE {
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    kill_all();
}

fn kill_all() {
    // The list stays locked meanwhile, so that no number is reused.
    for leader in leaders().iter().filter_map(|leader| Pid::from_raw(*leader)) {
        let _ = kill_process_group(leader, Signal::KILL);
    }
}
