//! x86-64: the time stamp counter.
//!
//! **Before.** `rdtsc` may execute before earlier instructions, which is harmless. It may also execute after later instructions,
//! which must be prevented. A fence would do, but a load whose address depends on the counter's value is cheaper. This load
//! cannot execute before the counter has been read. Under total store order, all later accesses come after this load, and
//! therefore after the reading.
//!
//! **Between.** `rdtscp` waits until all earlier instructions have executed and all earlier loads are globally visible. It does
//! not wait for stores, which may still be in the store buffer, so a locked instruction comes first: it completes only when the
//! store buffer is empty. Later accesses could execute before `rdtscp`. This is prevented as above, by a load that depends on its
//! value.
//!
//! Sources: Intel SDM vol. 2 (RDTSC, RDTSCP) and vol. 3 section 9.2; AMD APM vol. 3; Sewell et al., "x86-TSO".

use std::arch::asm;
use std::fs;

/// Returns whether the counters of all cores run at one constant rate: the processor says so, and the kernel, which monitors
/// them, has found nothing to the contrary.
pub(super) fn is_steady() -> bool {
    let has = |path: &str, prefix: &str, words: &[&str]| {
        fs::read_to_string(path).is_ok_and(|text| {
            let line = text.lines().find(|line| line.starts_with(prefix)).unwrap_or_default();
            words.iter().all(|word| line.split_ascii_whitespace().any(|found| found == *word))
        })
    };
    has("/proc/cpuinfo", "flags", &["rdtscp", "constant_tsc", "nonstop_tsc"])
        && has("/sys/devices/system/clocksource/clocksource0/available_clocksource", "", &["tsc"])
}

#[inline]
pub(super) fn before() -> u64 {
    let stamp: u64;
    // SAFETY: the instructions read the counter, and the word at the stack pointer. Without `nomem`, the compiler moves
    // no access across them.
    unsafe {
        asm!(
            "rdtsc",
            "mov ecx, eax",
            "and ecx, 0",
            "mov ecx, dword ptr [rsp + rcx]",
            "shl rdx, 32",
            "or rax, rdx",
            out("rax") stamp,
            out("rdx") _,
            out("rcx") _,
        );
    }
    stamp
}

#[inline]
pub(super) fn between() -> u64 {
    let stamp: u64;
    // SAFETY: the instructions read the counter, and the word at the stack pointer, which the locked instruction leaves
    // as it is. `is_steady` has found `rdtscp`. `nomem` is not set, so the compiler moves no access across them.
    unsafe {
        asm!(
            "lock or dword ptr [rsp], 0",
            "rdtscp",
            "mov ecx, eax",
            "and ecx, 0",
            "mov ecx, dword ptr [rsp + rcx]",
            "shl rdx, 32",
            "or rax, rdx",
            out("rax") stamp,
            out("rdx") _,
            out("rcx") _,
        );
    }
    stamp
}

pub(super) fn after_loads() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: the instructions read the counter, and `is_steady` has found `rdtscp`. `nomem` is not set, so the compiler moves no
    // access across.
    unsafe { asm!("rdtscp", out("rax") low, out("rdx") high, out("rcx") _, options(nostack)) };
    high << 32 | low
}

/// Returns 100 to 250 ns in ticks: counters run at 2 to 5 GHz.
pub(super) fn near() -> u64 {
    512
}
