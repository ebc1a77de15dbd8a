//! Probes whether Paul Khuong's trick for restartable sections works here: a thread can tell from the base of GS that it was
//! switched out.
//!
//! A thread sets a small base in GS and then writes the null selector, which resets the base to 0. If the kernel restores the
//! small base when the thread runs again, accesses relative to GS have another address from then on. The thread then notices
//! that it was interrupted. The trick fails with kernels that use the FSGSBASE instructions, because they save the base as it
//! is. It also fails on processors that do not reset the base.

use super::Finding;

pub(super) fn finding() -> Finding {
    Finding::new("null-GS restartable sections", found())
}

#[cfg(not(target_arch = "x86_64"))]
fn found() -> &'static str {
    "x86-64 only"
}

#[cfg(target_arch = "x86_64")]
fn found() -> &'static str {
    // SAFETY: the child only makes system calls, touches its own copy of a static, and exits.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::_exit(try_it());
        }
        let mut status = 0;
        if child < 0 || libc::waitpid(child, &raw mut status, 0) != child || !libc::WIFEXITED(status) {
            return "unknown: the child process that tried it failed";
        }
        match libc::WEXITSTATUS(status) {
            RESTORED => "possible: the base returns when a thread was switched out",
            NOT_RESET => "impossible: this processor keeps the base when the null selector is written",
            KEPT => "impossible: the kernel keeps the base that the thread had",
            _ => "unknown: the kernel does not let the base be set",
        }
    }
}

#[cfg(target_arch = "x86_64")]
const RESTORED: i32 = 0;
#[cfg(target_arch = "x86_64")]
const NOT_RESET: i32 = 1;
#[cfg(target_arch = "x86_64")]
const KEPT: i32 = 2;
#[cfg(target_arch = "x86_64")]
const REFUSED: i32 = 3;

/// Tries the trick. It runs in a child process, because GS is not restored afterwards.
#[cfg(target_arch = "x86_64")]
fn try_it() -> i32 {
    use std::arch::asm;

    const ARCH_SET_GS: libc::c_int = 0x1001;
    /// The base in bytes: one word.
    const BASE: usize = 8;
    /// The word that is read with a base of 0, and the word that is read with `BASE`.
    static WORDS: [u64; 2] = [0, 1];

    let read = || {
        let word: u64;
        // SAFETY: with a base of 0 or 8 the instruction reads one of the two words.
        unsafe { asm!("mov {word}, gs:[{words}]", word = out(reg) word, words = in(reg) WORDS.as_ptr()) };
        word
    };
    // SAFETY: no code in this child uses GS except `read`.
    unsafe {
        if libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, BASE) != 0 {
            return REFUSED;
        }
        asm!("mov gs, {zero:x}", zero = in(reg) 0_u32);
    }
    if read() != 0 {
        return NOT_RESET;
    }
    let nap = libc::timespec { tv_sec: 0, tv_nsec: 2_000_000 };
    // SAFETY: the time outlives the call, which switches to another thread.
    unsafe { libc::nanosleep(&raw const nap, std::ptr::null_mut()) };
    if read() == 0 { KEPT } else { RESTORED }
}
