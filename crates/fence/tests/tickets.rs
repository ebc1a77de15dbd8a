//! Tests that a ticket is done when a fence that began after the ticket was drawn has ended, and not before.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use millstream_fence::{Fence, heavy, light};

/// A time limit that no operation of these tests reaches.
const LIMIT: Duration = Duration::from_secs(60);

/// Tries until `is_so` returns `true`. The fences of other tests serve every ticket, so single tries may fail.
fn happens(mut is_so: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        let happens = is_so();
        if happens || begun.elapsed() > 2 * LIMIT {
            return happens;
        }
    }
}

/// Returns whether quiet fences take a grace period here, so that a wait can be observed.
fn quiet_is_slow() -> bool {
    Fence::QUIET.describe().starts_with("global: ")
}

#[test]
fn a_fast_ticket_is_done_when_asked() {
    light();
    let ticket = Fence::FAST.ticket();
    assert!(ticket.is_done() && ticket.is_done());
    assert!(ticket.wait_until(Instant::now()), "a fast fence was not issued although the deadline was past");
    ticket.wait();
}

#[test]
fn any_fence_that_begins_later_serves_a_ticket() {
    let ticket = Fence::QUIET.ticket();
    heavy();
    assert!(ticket.is_done());
}

#[test]
fn a_quiet_ticket_takes_its_time_and_no_other_thread_s() {
    if !quiet_is_slow() {
        return;
    }
    let waited = happens(|| {
        let drawn = Instant::now();
        let ticket = Fence::QUIET.ticket();
        let was_done = ticket.is_done();
        assert!(drawn.elapsed() < LIMIT, "asking waited");
        ticket.wait();
        assert!(ticket.is_done());
        !was_done
    });
    assert!(waited, "a grace period was over at once");
}

#[test]
fn a_deadline_ends_the_wait() {
    if !quiet_is_slow() {
        return;
    }
    let ended = happens(|| {
        let ticket = Fence::QUIET.ticket();
        let in_time = ticket.wait_until(Instant::now() + Duration::from_micros(100));
        assert!(ticket.wait_until(Instant::now() + LIMIT));
        !in_time
    });
    assert!(ended, "a grace period took less than 100 µs");
}

#[test]
fn many_threads_wait_for_one_fence() {
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..5 {
                    Fence::QUIET.ticket().wait();
                }
            });
        }
    });
}

/// A fast fence takes less time than the thread that serves quiet tickets takes to wake up. The serving thread then need not
/// pass a fence, but must notify the threads that have gone to sleep meanwhile.
#[test]
fn a_sleeper_for_a_quiet_fence_is_woken_although_a_fast_one_was_sooner() {
    if !quiet_is_slow() {
        return;
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = Stop(&stop);
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                heavy();
            }
        });
        for _ in 0..500 {
            let drawn = Instant::now();
            assert!(Fence::QUIET.ticket().wait_until(drawn + LIMIT));
            assert!(drawn.elapsed() < LIMIT, "the deadline ended the sleep although the fence had been passed");
        }
    });
}

/// Stops the test's other thread when dropped, even if the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn a_child_of_fork_has_its_tickets_served() {
    Fence::QUIET.ticket().wait();
    // SAFETY: the child draws a ticket and exits; it takes no lock that a thread of its parent may have held.
    let status = unsafe {
        let child = libc::fork();
        if child == 0 {
            let ticket = Fence::QUIET.ticket();
            libc::_exit(i32::from(!ticket.is_done()));
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        status
    };
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status}");
}
