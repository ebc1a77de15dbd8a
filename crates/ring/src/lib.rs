//! proto
#![allow(missing_docs)]
#![allow(clippy::all, clippy::undocumented_unsafe_blocks, unreachable_pub)]
mod padded;
mod primitive;
pub mod sequencer;
mod slots;
pub mod proto;
pub static KNOBS: [std::sync::atomic::AtomicU32; 8] = [const { std::sync::atomic::AtomicU32::new(0) }; 8];
#[inline(always)]
pub fn knob(i: usize) -> u32 { KNOBS[i].load(std::sync::atomic::Ordering::Relaxed) }
