//! liburcu's reading sections, in the flavour that uses `membarrier`, by loops in C.

use std::hint::black_box;

use super::read::NUMBER;
use super::threads::together;

// SAFETY: as declared in `liburcu.c`; threads register before they read.
unsafe extern "C" {
    fn liburcu_register();
    fn liburcu_unregister();
    fn liburcu_sections(n: u64);
    fn liburcu_loads(n: u64, source: *const *const u64) -> u64;
}

/// Reading sections, each with a load or with nothing in it.
pub fn section<const LOADS: bool>(threads: usize, n: u64) -> (f64, u64) {
    let source = &raw const *black_box(Box::leak(Box::new(NUMBER)));
    let source = Shared(&raw const source);
    together(threads, n, |_| {
        // SAFETY: the loop unregisters the same thread.
        unsafe { liburcu_register() };
        let source = &source;
        move |n| {
            // SAFETY: registered; the source lives on the stack of whoever waits for us, what it points to was leaked.
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

/// A pointer that all threads read through.
struct Shared(*const *const u64);

// SAFETY: only read.
unsafe impl Sync for Shared {}
