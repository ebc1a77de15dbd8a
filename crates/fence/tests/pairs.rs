//! Two threads each write one word and then read the other's word. With a light and a heavy fence in between, they never both
//! miss the other's write.

mod support;

use std::time::{Duration, Instant};

use millstream_fence::{Fence, heavy, light, shared};
use support::{again, both_missed, forbid, forbid_membarrier, is_again};

const ROUNDS: u32 = 10_000;

#[test]
fn a_light_and_a_heavy_fence_pair() {
    assert_eq!(both_missed(ROUNDS, light, heavy), 0);
}

#[test]
fn two_heavy_fences_pair() {
    assert_eq!(both_missed(ROUNDS, heavy, heavy), 0);
}

#[test]
fn the_shared_fences_pair() {
    if shared::register().is_ok() {
        assert_eq!(both_missed(ROUNDS, shared::light, || shared::heavy().unwrap()), 0);
    } else {
        assert_eq!(
            both_missed(ROUNDS, shared::light, shared::light),
            0,
            "an unregistered light fence is not a full one"
        );
    }
}

#[test]
fn a_light_fence_and_a_ticket_pair() {
    assert_eq!(both_missed(ROUNDS, light, || assert!(Fence::FAST.ticket().is_done())), 0);
}

#[test]
fn a_light_and_a_quiet_fence_pair() {
    // Each round takes a grace period of the kernel.
    assert_eq!(both_missed(30, light, || Fence::QUIET.heavy()), 0);
    assert_eq!(both_missed(10, light, || Fence::QUIET.ticket().wait()), 0);
}

#[test]
fn the_pairs_hold_with_symmetric_fences() {
    if !is_again("symmetric") {
        return again("the_pairs_hold_with_symmetric_fences", "symmetric", "symmetric", false);
    }
    assert!(!millstream_fence::is_asymmetric());
    assert!(shared::register().is_err());
    assert_eq!(both_missed(ROUNDS, light, light), 0, "symmetric light fences are not full ones");
    assert_eq!(both_missed(ROUNDS, light, || assert!(Fence::QUIET.ticket().is_done())), 0);
}

#[test]
fn the_pairs_hold_with_mprotect() {
    if !is_again("mprotect") {
        return again("the_pairs_hold_with_mprotect", "mprotect", "mprotect", false);
    }
    let about = Fence::FAST.describe();
    if about.starts_with("mprotect: ") {
        assert!(
            Fence::QUIET.describe().starts_with("mprotect: "),
            "the environment's choice does not hold for every kind"
        );
    } else {
        println!("{about}");
        assert!(about.contains("mprotect: this") || about.contains("mprotect: the") || about.contains("x86 only"));
    }
    assert_eq!(both_missed(ROUNDS, light, heavy), 0);
}

#[test]
fn the_pairs_hold_with_a_grace_period_of_the_kernel() {
    if !is_again("global") {
        return again("the_pairs_hold_with_a_grace_period_of_the_kernel", "global", "global", false);
    }
    println!("{}", Fence::FAST.describe());
    assert_eq!(both_missed(30, light, heavy), 0);
    assert_eq!(both_missed(30, light, || Fence::FAST.ticket().wait()), 0);
}

#[test]
fn the_pairs_hold_where_membarrier_is_forbidden() {
    if !is_again("forbidden") {
        return again("the_pairs_hold_where_membarrier_is_forbidden", "forbidden", "", true);
    }
    for fence in [Fence::FAST, Fence::QUIET] {
        let about = fence.describe();
        assert!(about.starts_with("mprotect: ") || about.starts_with("symmetric: "), "{about}");
        assert!(about.contains("no membarrier: "), "the reason is not named: {about}");
    }
    assert!(shared::register().is_err());
    assert_eq!(both_missed(ROUNDS, light, heavy), 0);
    assert_eq!(both_missed(ROUNDS, shared::light, shared::light), 0, "an unregistered light fence is not a full one");
}

#[test]
fn the_pairs_hold_where_membarrier_is_forbidden_and_fences_are_symmetric() {
    let test = "the_pairs_hold_where_membarrier_is_forbidden_and_fences_are_symmetric";
    if !is_again("forbidden, symmetric") {
        return again(test, "forbidden, symmetric", "symmetric", true);
    }
    assert!(!millstream_fence::is_asymmetric());
    assert_eq!(both_missed(ROUNDS, light, heavy), 0);
}

#[test]
fn a_shared_heavy_fence_that_is_forbidden_later_is_an_error() {
    let before = shared::heavy();
    println!("{before:?}");
    let forbidden = std::thread::spawn(|| {
        forbid_membarrier().unwrap();
        shared::heavy()
    });
    let reason = forbidden.join().expect("the fence does not panic").unwrap_err().reason;
    if before.is_ok() {
        assert!(reason.starts_with("membarrier(GLOBAL_EXPEDITED): "), "{reason}");
        assert_eq!(shared::heavy(), before, "another thread's sandbox changed this thread's fences");
    }
}

#[test]
fn a_heavy_fence_that_is_forbidden_later_is_replaced_by_another() {
    if !is_again("forbidden later") {
        return again("a_heavy_fence_that_is_forbidden_later_is_replaced_by_another", "forbidden later", "", false);
    }
    heavy();
    println!("{}", Fence::FAST.describe());
    // The sandbox applies to this thread and to the threads that it starts. The hot side of the race is one of them, but needs
    // none of the forbidden calls.
    let tried = std::thread::spawn(|| {
        forbid_membarrier().unwrap();
        let passed = Fence::FAST.try_heavy();
        for fence in [Fence::FAST, Fence::CHEAP, Fence::QUIET] {
            assert_eq!(fence.ticket().wait_until(Instant::now()), passed.is_ok());
        }
        if passed.is_ok() {
            assert_eq!(both_missed(ROUNDS, light, heavy), 0);
            assert_eq!(both_missed(30, light, || Fence::QUIET.ticket().wait()), 0);
        }
        passed
    });
    let passed = tried.join().expect("no fence panics");
    let mprotect = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["the_pairs_hold_with_mprotect", "--exact", "--nocapture"])
        .env("MILLSTREAM_FENCE", "mprotect")
        .env("MILLSTREAM_TEST_WORLD", "mprotect")
        .output()
        .unwrap();
    let stands_in = !String::from_utf8_lossy(&mprotect.stdout).contains("mprotect: ");
    assert!(passed.is_ok() || !stands_in || !millstream_fence::is_asymmetric(), "{passed:?}");
}

#[test]
fn with_every_fence_forbidden_a_ticket_is_not_done() {
    let test = "with_every_fence_forbidden_a_ticket_is_not_done";
    if !is_again("all forbidden later") {
        return again(test, "all forbidden later", "", false);
    }
    heavy();
    if !millstream_fence::is_asymmetric() {
        return println!("skipped: full fences are never forbidden");
    }
    std::thread::spawn(|| {
        forbid_membarrier().unwrap();
        forbid(libc::SYS_mprotect).unwrap();
        for fence in [Fence::FAST, Fence::QUIET] {
            let reason = fence.try_heavy().unwrap_err().to_string();
            assert!(reason.contains("membarrier(") && reason.contains("not permitted"), "{reason}");
        }
        let ticket = Fence::FAST.ticket();
        assert!(!ticket.is_done() && !ticket.wait_until(Instant::now() + Duration::from_millis(5)));
        let waits = std::panic::catch_unwind(|| ticket.wait());
        assert!(waits.is_err(), "the wait returned although no fence was passed");
    })
    .join()
    .unwrap();
    assert!(Fence::FAST.ticket().is_done(), "another thread's sandbox changed this thread's fences");
}

#[test]
fn a_child_of_fork_can_issue_the_heavy_fence() {
    heavy();
    // SAFETY: the child only issues the fence, whose back-end is chosen, and exits.
    let status = unsafe {
        let child = libc::fork();
        if child == 0 {
            let outcome = std::panic::catch_unwind(heavy);
            libc::_exit(i32::from(outcome.is_err()));
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        status
    };
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status}");
}
