//! Millstream for C: confidence sequences, exact bounds and stopping rules, slabs and rings of shared memory, behind a
//! header and two libraries.
//!
//! The header `include/millstream.h` is generated from this source and documents everything a C programmer needs;
//! Rust programs use [`millstream_csm`], [`millstream_slab`] and [`millstream_ring`] instead of this crate.
//!
//! The names of types follow C. Codes that come from C are plain integers, because a value that a Rust enum does not
//! list would be undefined behaviour.
#![allow(non_camel_case_types)]

pub mod compare;
pub mod driver;
mod exclusive;
mod extensible;
pub mod interval;
pub mod means;
pub mod numbers;
pub mod power;
pub mod ring;
pub mod slab;
pub mod status;
pub mod version;
