//! x86-64: the time stamp counter.
//!
//! **Before.** `rdtsc` may execute before earlier instructions, which is harmless, and after later ones, which is not.
//! A fence would prevent that; cheaper is a load whose address depends on the counter's value. The load cannot execute
//! before the counter has been read, and under total store order no later load appears before an earlier one and no
//! later store before an earlier load: all later accesses come after the load, hence after the reading.
//!
//! **Between.** `rdtscp` waits until all earlier instructions have executed and all earlier loads are globally visible,
//! but not for stores, which may sit in the store buffer; the locked instruction in front of it completes only when the
//! buffer is empty. Later accesses could overtake `rdtscp`, and are held back as above: by a load that waits for its
//! value.
//!
//! Sources: Intel SDM vol. 2 (RDTSC, RDTSCP) and vol. 3 section 9.2; AMD APM vol. 3; Sewell et al., "x86-TSO".

use std::arch::asm;
use std::fs;

/// Whether all cores count at one constant rate: the processor says so, and the kernel, which watches, has found no
/// contradiction.
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
    // no access across.
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
    // as it is. `is_steady` has found `rdtscp`. Without `nomem`, the compiler moves no access across.
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
    // SAFETY: the instructions read the counter; `is_steady` has found `rdtscp`. Without `nomem`, the compiler moves no
    // access across.
    unsafe { asm!("rdtscp", out("rax") low, out("rdx") high, out("rcx") _, options(nostack)) };
    high << 32 | low
}

/// Some 100 to 250 ns: counters run at 2 to 5 GHz.
pub(super) fn near() -> u64 {
    512
}
