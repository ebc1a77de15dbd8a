//! Processes that are killed: at every instruction of every operation, and at random.
//!
//! A *stage* is a slab with a survivor that uses it. A child is forked, does a *scene* on it, and is killed in the middle. Then
//! the survivor goes on working, recovers, and looks whether every object is in exactly one pair of hands; or everybody is
//! dead, and whoever opens the slab next looks.
//!
//! Others are stopped instead of killed, and go on later; and power fails, so that a file has whatever its device was given.
//!
//! `MILLSTREAM_STRESS=n` makes it n times as many random kills, and n times as many places in recoveries, or all of them. `MILLSTREAM_CRASH=text` runs only scenes whose name contains
//! the text.

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

/// Models have no processes.
#[cfg(loom)]
fn main() {}
