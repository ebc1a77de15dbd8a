//! The groups whose leaders are not reaped yet. With this list, a run that gives up on its units leaves no program
//! behind.
//!
//! When a unit's time limit passes or the flow is abandoned, the worker ends its program itself, with a short grace
//! period. If the run ends before all workers have done so, it calls [`end`].

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, RawPid, Signal, kill_process_group};

/// Whether programs can no longer be started.
static OVER: AtomicBool = AtomicBool::new(false);

/// Locked for reading while a program is started, so that a thread that ends all programs waits until the new program
/// is in the list.
static STARTING: RwLock<()> = RwLock::new(());

/// The maximum wait for programs that are being started. On a file system that does not respond, the start of a program
/// neither succeeds nor fails.
const PATIENCE: Duration = Duration::from_secs(1);

/// The leaders' process ids. Each id is removed before its leader is reaped, so no id in the list belongs to another
/// process.
static LEADERS: Mutex<BTreeSet<RawPid>> = Mutex::new(BTreeSet::new());

fn leaders() -> MutexGuard<'static, BTreeSet<RawPid>> {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a program that leads a group, and adds it to the list.
pub(super) fn start<T>(spawn: impl FnOnce() -> io::Result<(Pid, T)>) -> io::Result<(Pid, T)> {
    let _starting = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    // Relaxed: the thread that sets `OVER` then locks `STARTING` for writing, and reads the list once more after that.
    if OVER.load(Ordering::Relaxed) {
        return Err(io::Error::other("the run is over"));
    }
    let (leader, rest) = spawn()?;
    leaders().insert(leader.as_raw_pid());
    Ok((leader, rest))
}

/// Removes a leader from the list. The leader has ended and is about to be reaped.
pub(super) fn forget(leader: Pid) {
    leaders().remove(&leader.as_raw_pid());
}

/// Kills all groups in the list, and prevents the start of others.
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
    // The list stays locked meanwhile, so no leader is reaped and no process id is reused.
    for leader in leaders().iter().filter_map(|leader| Pid::from_raw(*leader)) {
        let _ = kill_process_group(leader, Signal::KILL);
    }
}
