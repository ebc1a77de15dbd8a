//! Tests that kill processes, at every instruction of every operation and at random.
//!
//! A *stage* is a slab with a survivor that uses it. A child is forked, plays a *scene* on it, and is killed in the
//! middle. Then the survivor continues its work, recovers, and checks that every object is in one place or has one
//! holder. In other runs the survivor dies, too, and a process that opens the slab afterwards makes the check. A killed
//! process leaves behind the file and the effects of its system calls, so a single kill covers all kills between two
//! such changes.
//!
//! Other runs stop a child instead of killing it, and let it continue later, or simulate a power failure, after which a
//! file has only the data that reached its device.
//!
//! `MILLSTREAM_STRESS=n` multiplies the number of random kills, of power failures, and of deaths before a recovery by n.
//! `MILLSTREAM_CRASH=text` runs only the scenes whose name contains the text.

#[cfg(not(loom))]
mod harness;
#[cfg(all(target_arch = "x86_64", not(loom)))]
mod instructions;
#[cfg(all(target_arch = "x86_64", not(loom)))]
mod power;
#[cfg(not(loom))]
mod random;
#[cfg(all(target_arch = "x86_64", not(loom)))]
mod scenes;
#[cfg(not(loom))]
mod stage;
#[cfg(all(target_arch = "x86_64", not(loom)))]
mod stops;
#[cfg(all(target_arch = "x86_64", not(loom)))]
mod tracer;
#[cfg(not(loom))]
mod workers;

#[cfg(not(loom))]
fn main() {
    harness::run();
}

/// Loom models have no processes.
#[cfg(loom)]
fn main() {}
