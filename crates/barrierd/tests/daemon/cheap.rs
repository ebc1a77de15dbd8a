//! Tests of `Fence::CHEAP` with the daemon's page. A process chooses its back-end only once, so each test runs in a separate
//! process.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use millstream_fence::Fence;

use crate::support::{Daemon, LIMIT, With, stress};

/// The environment variable that names the test in the child.
const INSIDE: &str = "MILLSTREAM_TEST_INSIDE";

/// In the parent, runs this test again in a child that finds a daemon. Returns `true` in the child.
fn inside(test: &str, daemons: &[With]) -> bool {
    if std::env::var(INSIDE).is_ok_and(|inside| inside == test) {
        return true;
    }
    for daemon in daemons.iter().filter_map(|with| Daemon::start(*with)) {
        let begun = Instant::now();
        loop {
            let output = Command::new(std::env::current_exe().unwrap())
                .args([&format!("cheap::{test}"), "--exact", "--nocapture", "--test-threads=1"])
                .env(INSIDE, test)
                .env("MILLSTREAM_BARRIERD", daemon.folder())
                .env("MILLSTREAM_TEST_DAEMON", daemon.process().to_string())
                .output()
                .unwrap();
            let text =
                format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success() && text.contains("1 passed"), "{}{text}", daemon.about);
            if !text.contains(TOO_LATE) {
                break;
            }
            assert!(begun.elapsed() < LIMIT, "{}{text}", daemon.about);
        }
    }
    false
}

/// The child prints this if the greeting came after the client's time limit. The parent then starts the child again.
const TOO_LATE: &str = "did not answer within";

/// Returns whether `Fence::CHEAP` uses the page here. If not, light fences are full fences, and there is nothing to test.
fn is_by_page() -> bool {
    let about = Fence::CHEAP.describe();
    if about.contains(TOO_LATE) {
        println!("{about}");
        return false;
    }
    assert!(about.starts_with("barrierd: ") || !millstream_fence::is_asymmetric(), "{about}");
    about.starts_with("barrierd: ")
}

fn kill_the_daemon() {
    let process: i32 = std::env::var("MILLSTREAM_TEST_DAEMON").unwrap().parse().unwrap();
    // SAFETY: kill takes two integers, and the daemon is this test's own.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

/// Runs the race between a light fence and `heavy` for `rounds` rounds. Returns the number of rounds in which both sides missed
/// the other's write.
fn both_missed(rounds: u32, heavy: impl Fn()) -> u32 {
    let (hot, cold, round, hot_missed) =
        (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0), AtomicBool::new(false));
    let answered = AtomicU32::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for now in 1..=rounds {
                while round.load(Relaxed) < now {
                    std::hint::spin_loop();
                }
                hot.store(now, Relaxed);
                millstream_fence::light();
                hot_missed.store(cold.load(Relaxed) < now, Relaxed);
                answered.store(now, std::sync::atomic::Ordering::Release);
            }
        });
        let mut missed = 0;
        for now in 1..=rounds {
            round.store(now, Relaxed);
            cold.store(now, Relaxed);
            heavy();
            let cold_missed = hot.load(Relaxed) < now;
            while answered.load(std::sync::atomic::Ordering::Acquire) < now {
                thread::yield_now();
            }
            missed += u32::from(cold_missed && hot_missed.load(Relaxed));
        }
        missed
    })
}

#[test]
fn the_cheap_fence_pairs_with_the_light_one() {
    if !inside("the_cheap_fence_pairs_with_the_light_one", &[With::Bpf, With::FallBacks]) || !is_by_page() {
        return;
    }
    assert_eq!(both_missed(50 * stress(), || Fence::CHEAP.heavy()), 0);
    assert_eq!(both_missed(50 * stress(), || Fence::CHEAP.ticket().wait()), 0);
}

#[test]
fn a_ticket_is_done_within_the_bound() {
    if !inside("a_ticket_is_done_within_the_bound", &[With::Bpf, With::FallBacks]) || !is_by_page() {
        return;
    }
    for _ in 0..20 {
        let ticket = Fence::CHEAP.ticket();
        assert!(ticket.wait_until(Instant::now() + Duration::from_secs(60)));
        assert!(ticket.is_done(), "a done ticket stays done");
    }
    let ticket = Fence::CHEAP.ticket();
    let begun = Instant::now();
    while !ticket.is_done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "asking suffices");
    }
}

#[test]
fn a_fast_fence_serves_a_cheap_ticket() {
    if !inside("a_fast_fence_serves_a_cheap_ticket", &[With::FallBacks]) || !is_by_page() {
        return;
    }
    let ticket = Fence::CHEAP.ticket();
    Fence::FAST.heavy();
    assert!(ticket.is_done());
}

#[test]
fn tickets_are_served_within_the_bound_when_the_daemon_is_killed() {
    let test = "tickets_are_served_within_the_bound_when_the_daemon_is_killed";
    if !inside(test, &[With::Bpf, With::FallBacks]) || !is_by_page() {
        return;
    }
    Fence::CHEAP.heavy();
    kill_the_daemon();
    for _ in 0..5 {
        let begun = Instant::now();
        let ticket = Fence::CHEAP.ticket();
        ticket.wait();
        assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
    }
    assert_eq!(both_missed(50, || Fence::CHEAP.heavy()), 0, "another fence stands in");
    let mut times: Vec<_> = (0..21)
        .map(|_| {
            let begun = Instant::now();
            Fence::CHEAP.heavy();
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    assert!(times[10] < Duration::from_millis(15), "a process that has noticed does not wait again: {times:?}");
}

#[test]
fn a_stopped_daemon_delays_no_fence() {
    if !inside("a_stopped_daemon_delays_no_fence", &[With::FallBacks]) || !is_by_page() {
        return;
    }
    let process: i32 = std::env::var("MILLSTREAM_TEST_DAEMON").unwrap().parse().unwrap();
    // SAFETY: kill takes two integers, and the daemon was started by this test, which kills it at the end.
    unsafe { libc::kill(process, libc::SIGSTOP) };
    let begun = Instant::now();
    while Fence::CHEAP.ticket().is_done() {
        assert!(begun.elapsed() < LIMIT, "no fence passes before the stand-in's once the signal has arrived");
    }
    let begun = Instant::now();
    Fence::CHEAP.heavy();
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
}

#[test]
fn a_child_of_fork_continues_with_the_page() {
    if !inside("a_child_of_fork_continues_with_the_page", &[With::Bpf, With::FallBacks]) || !is_by_page() {
        return;
    }
    Fence::CHEAP.heavy();
    // SAFETY: the child passes fences, whose back-end is chosen already, and exits.
    let status = unsafe {
        let child = libc::fork();
        if child == 0 {
            let outcome = std::panic::catch_unwind(|| {
                Fence::CHEAP.heavy();
                Fence::CHEAP.ticket().wait();
            });
            libc::_exit(i32::from(outcome.is_err()));
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        status
    };
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status}");
    Fence::CHEAP.heavy();
}

#[test]
fn without_a_daemon_another_fence_serves() {
    let test = "without_a_daemon_another_fence_serves";
    if std::env::var(INSIDE).is_ok_and(|inside| inside == test) {
        let about = Fence::CHEAP.describe();
        assert!(!about.starts_with("barrierd: "), "{about}");
        assert!(about.contains("no daemon at /nonexistent/socket: ") || !millstream_fence::is_asymmetric(), "{about}");
        return Fence::CHEAP.heavy();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([&format!("cheap::{test}"), "--exact", "--nocapture"])
        .env(INSIDE, test)
        .env("MILLSTREAM_BARRIERD", "/nonexistent")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
