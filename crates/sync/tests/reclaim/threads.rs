//! Reclamation at the end of a thread, in a child of fork, and in a sandbox.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;

use millstream_sync::reclaim::{Hazards, Queue, epoch, hazard};

use crate::{Counted, again, alive, until_freed};

#[test]
fn a_child_of_fork_frees_its_garbage_whichever_thread_was_pinned() {
    let (pinned, wait) = mpsc::channel();
    let (go_on, may) = mpsc::channel::<()>();
    let reader = thread::spawn(move || {
        let _guards = (epoch::pin(), epoch::pin());
        pinned.send(()).unwrap();
        may.recv().unwrap();
    });
    wait.recv().unwrap();
    drop(epoch::pin());
    let alive = alive();
    let kept = epoch::pin();
    // SAFETY: the child retires only its own objects, and exits without touching its parent's threads' state.
    let status = unsafe {
        let child = libc::fork();
        if child == 0 {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                epoch::pin().retire(Counted::boxed(&alive));
                epoch::flush();
                assert_eq!(alive.load(Relaxed), 1, "freed although this thread's guard is alive");
                drop(kept);
                epoch::flush();
                assert_eq!(alive.load(Relaxed), 0);
            }));
            libc::_exit(i32::from(outcome.is_err()));
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        status
    };
    go_on.send(()).unwrap();
    reader.join().unwrap();
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status}");
}

#[test]
fn a_sandbox_that_is_entered_later_neither_panics_nor_aborts() {
    let test = "threads::a_sandbox_that_is_entered_later_neither_panics_nor_aborts";
    if !again::is_again("sandbox") {
        return again::again(test, "sandbox", "", false);
    }
    for forbidden in [&[libc::SYS_membarrier][..], &[libc::SYS_membarrier, libc::SYS_mprotect]] {
        let alive = alive();
        let sandboxed = Arc::clone(&alive);
        let end = move || {
            let retire = |count| {
                // SAFETY: the objects come from boxes, are unreachable, and each is retired once.
                (0..count).for_each(|_| unsafe {
                    epoch::pin().retire(Counted::boxed(&sandboxed));
                    hazard::retire(Counted::boxed(&sandboxed));
                });
            };
            retire(1);
            forbidden.iter().for_each(|call| again::forbid(*call).unwrap());
            retire(10_000);
            epoch::flush();
            hazard::flush();
            retire(10);
            // At this point the thread's storage is being destroyed.
        };
        thread::spawn(end).join().unwrap();
        until_freed(|| alive.load(Relaxed) == 0);
    }
}

#[test]
fn garbage_of_an_ended_thread_is_freed_by_others() {
    let alive = alive();
    let ended = Arc::clone(&alive);
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    thread::spawn(move || unsafe { epoch::pin().retire(Counted::boxed(&ended)) }).join().unwrap();
    let ended = Arc::clone(&alive);
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    thread::spawn(move || unsafe { hazard::retire(Counted::boxed(&ended)) }).join().unwrap();
    until_freed(|| alive.load(Relaxed) == 0);
}

/// Uses reclamation while its thread's storage is being destroyed.
struct LateUser(Arc<AtomicUsize>);

impl Drop for LateUser {
    fn drop(&mut self) {
        let guard = epoch::pin();
        // SAFETY: the object comes from a box, is unreachable, and is retired once.
        unsafe { guard.retire(Counted::boxed(&self.0)) };
        let queue = Queue::<_, Hazards>::with_scheme();
        queue.push(1);
        assert_eq!(queue.pop(), Some(1));
        drop(guard);
        // SAFETY: the object comes from a box, is unreachable, and is retired once.
        unsafe { hazard::retire(Counted::boxed(&self.0)) };
    }
}

/// When dropped, refreshes a guard and retires one more object.
struct Kept(epoch::Guard<'static>, Arc<AtomicUsize>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.refresh();
        // SAFETY: the object comes from a box, is unreachable, and is retired once.
        unsafe { self.0.retire(Counted::boxed(&self.1)) };
    }
}

thread_local! {
    static LATE: Cell<Option<LateUser>> = const { Cell::new(None) };
    static KEPT: Cell<Option<Kept>> = const { Cell::new(None) };
}

#[test]
fn a_thread_that_ends_may_still_reclaim() {
    let alive = alive();
    for first_late in [true, false] {
        let alive = Arc::clone(&alive);
        thread::spawn(move || {
            let touch = || {
                drop(epoch::pin());
                hazard::flush();
            };
            let register = || LATE.with(|late| late.set(Some(LateUser(alive))));
            // Storage is destroyed in either order.
            if first_late {
                register();
                touch();
            } else {
                touch();
                register();
            }
        })
        .join()
        .unwrap();
    }
    until_freed(|| alive.load(Relaxed) == 0);
}

#[test]
fn a_guard_in_thread_storage_outlives_its_thread_s_membership() {
    let alive = alive();
    let (pinned, wait) = mpsc::channel();
    let (go_on, may) = mpsc::channel::<()>();
    let late = Arc::clone(&alive);
    let thread = thread::spawn(move || {
        KEPT.with(|kept| kept.set(Some(Kept(epoch::pin(), late))));
        pinned.send(()).unwrap();
        may.recv().unwrap();
    });
    wait.recv().unwrap();
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    unsafe { epoch::pin().retire(Counted::boxed(&alive)) };
    epoch::pin().flush();
    assert_eq!(alive.load(Relaxed), 1);
    go_on.send(()).unwrap();
    thread.join().unwrap();
    until_freed(|| alive.load(Relaxed) == 0);
}
