//! Read-side sections of liburcu, in the flavour that uses `membarrier`, in loops written in C.

use std::hint::black_box;

use super::read::NUMBER;
use super::threads::together;

// SAFETY: the declarations match the definitions in `liburcu.c`, whose callers register their thread before they read.
unsafe extern "C" {
    fn liburcu_register();
    fn liburcu_unregister();
    fn liburcu_sections(n: u64);
    fn liburcu_loads(n: u64, source: *const *const u64) -> u64;
}

/// Runs reading sections, each with one load or empty.
pub fn section<const LOADS: bool>(threads: usize, n: u64) -> (f64, u64) {
    let source = &raw const *black_box(Box::leak(Box::new(NUMBER)));
    let source = Shared(&raw const source);
    together(threads, n, |_| {
        // SAFETY: any thread may register, and the loop below unregisters the same thread.
        unsafe { liburcu_register() };
        let source = &source;
        move |n| {
            // SAFETY: this thread is registered; the source is on the stack of the thread that waits for this one,
            // and its target is leaked.
            unsafe {
                let sum = if LOADS {
                    liburcu_loads(n, source.0)
                } else {
                    liburcu_sections(n);
                    n * NUMBER
                };
                liburcu_unregister();
                sum
            }
        }
    })
}

/// A pointer through which all threads read.
struct Shared(*const *const u64);

// SAFETY: threads only read through the pointer.
unsafe impl Sync for Shared {}
