//! Two threads write one word each and read the other's: with a light and a heavy fence, never do both miss.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use millstream_fence::{heavy, light, shared};

/// A word with a cache line of its own.
#[repr(align(128))]
struct Word(AtomicU32);

/// How often, of so many rounds, both threads missed what the other wrote.
fn both_missed(rounds: u32, hot: fn(), cold: fn()) -> usize {
    let [a, b] = [(); 2].map(|()| Word(AtomicU32::new(0)));
    // Each thread goes on when it has seen the other in its round, so they are never far apart.
    let side = |own: &Word, other: &Word, fence: fn()| -> Vec<bool> {
        let round = |round: u32| {
            own.0.store(round, Relaxed);
            fence();
            let missed = other.0.load(Relaxed) < round;
            let mut looks = 0_u32;
            while other.0.load(Relaxed) < round {
                looks += 1;
                if looks.is_multiple_of(1024) { std::thread::yield_now() } else { std::hint::spin_loop() }
            }
            missed
        };
        (1..=rounds).map(round).collect()
    };
    let (hot_missed, cold_missed) = std::thread::scope(|scope| {
        let hot = scope.spawn(|| side(&a, &b, hot));
        (side(&b, &a, cold), hot.join().unwrap())
    });
    hot_missed.into_iter().zip(cold_missed).filter(|&(hot, cold)| hot && cold).count()
}

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
        assert_eq!(both_missed(ROUNDS, shared::light, shared::light), 0, "unregistered, it is a full fence");
    }
}

#[test]
fn the_pairs_hold_with_symmetric_fences() {
    const VARIABLE: &str = "MILLSTREAM_FENCE";
    if std::env::var(VARIABLE).is_ok() {
        assert!(!millstream_fence::is_asymmetric());
        assert!(shared::register().is_err());
        assert_eq!(both_missed(ROUNDS, light, light), 0, "symmetric fences are full ones");
        return;
    }
    let this_program = std::env::current_exe().unwrap();
    let output = Command::new(this_program).env(VARIABLE, "symmetric").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_child_of_fork_can_issue_the_heavy_fence() {
    heavy();
    // SAFETY: the child only issues the fence, whose back-end is chosen, and leaves.
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
