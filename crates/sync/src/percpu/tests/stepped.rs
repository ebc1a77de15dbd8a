//! Single-stepping: a debugger that steps through sections keeps all of them from completing. Every operation still
//! finishes, because it takes another path after a few attempts. One test uses ptrace(2), the other uses gdb if it is
//! installed.

use std::hint::black_box;
use std::process::Command;

use super::Memory;
use crate::percpu::Words;
use crate::percpu::section::{self, Here, Numbers, Outcome, Slots};

const ADDITIONS: u64 = 50;

/// Adds [`ADDITIONS`] times, each time to `words` and by a bare section on `slots`; returns the number of sections that
/// ended, and the sum of the words.
fn add(words: &Words, slots: Slots) -> (u64, u64) {
    let mut ended = 0;
    for _ in 0..ADDITIONS {
        words.word(0).add(1);
        // SAFETY: the memory has a word in every slot.
        ended += u64::from(
            Here::current(Numbers::Processor)
                .is_some_and(|here| unsafe { section::add(here, slots, 1) == Outcome::Done }),
        );
    }
    (ended, words.word(0).copies().sum())
}

#[test]
fn every_addition_is_made_although_no_section_ends() {
    /// The child reports success by this exit status plus the number of sections that ended.
    const EXACT: i32 = 100;
    let words = Words::new(1);
    let memory = Memory::new();
    let slots = memory.slots(0);
    words.word(0).add(0);
    // SAFETY: the child only adds, traces itself and exits, and the parent waits for its own child.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0);
        if child == 0 {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            libc::raise(libc::SIGSTOP);
            let (ended, sum) = add(&words, slots);
            libc::_exit(if sum == ADDITIONS { EXACT + ended as i32 } else { 0 });
        }
        let mut status = 0;
        let mut steps = 0_u64;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        while libc::WIFSTOPPED(status) {
            steps += 1;
            assert!(steps < 1_000_000, "no progress in {steps} steps");
            assert_eq!(libc::ptrace(libc::PTRACE_SINGLESTEP, child, 0, 0), 0);
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        }
        assert!(libc::WIFEXITED(status));
        let ended = libc::WEXITSTATUS(status) - EXACT;
        assert!(ended >= 0, "additions are lost");
        println!("{steps} steps; {ended} of {ADDITIONS} sections ended");
        // If stepping aborted no section, the test shows nothing. (Without areas, no section has completed, either.)
        assert!(ended < ADDITIONS as i32, "stepping did not abort sections");
    }
}

/// The function at which gdb begins to step.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn millstream_stepped_from_here() {
    black_box(());
}

const UNDER_GDB: &str = "MILLSTREAM_UNDER_GDB";

#[test]
fn gdb_steps_through_sections_and_every_addition_is_made() {
    const TEST: &str = "percpu::tests::stepped::gdb_steps_through_sections_and_every_addition_is_made";
    if std::env::var(UNDER_GDB).is_ok() {
        let words = Words::new(1);
        let memory = Memory::new();
        let slots = memory.slots(0);
        millstream_stepped_from_here();
        let (ended, sum) = add(&words, slots);
        return println!("stepped: {sum} of {ADDITIONS} added, {ended} sections ended");
    }
    if Command::new("gdb").arg("--version").output().is_err() {
        return println!("skipped: gdb is not installed");
    }
    let output = Command::new("gdb")
        .args(["-batch", "-nx", "-ex", "set pagination off", "-ex", "set debuginfod enabled off"])
        .args([
            "-ex",
            "break millstream_stepped_from_here",
            "-ex",
            "run",
            "-ex",
            "stepi 4000",
            "-ex",
            "continue",
            "--args",
        ])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture", "--test-threads=1"])
        .env(UNDER_GDB, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    if !text.contains("Breakpoint 1, ") {
        return println!("skipped: gdb may not trace here: {text}");
    }
    assert!(text.contains(&format!("stepped: {ADDITIONS} of {ADDITIONS} added, ")), "{text}");
    assert!(!text.contains(&format!(" {ADDITIONS} sections ended")), "stepping did not abort sections: {text}");
}
