//! Millstream for C: confidence sequences, exact bounds and stopping rules, and slabs of shared memory, behind a header
//! and two libraries.
//!
//! The header `include/millstream.h` is made from this source and says all a C programmer needs; this crate is of no use
//! to a Rust program, which has [`millstream_csm`] and [`millstream_slab`].
//!
//! The names of types are C's. Codes that come from C are plain integers, because an enum of Rust must never have a value
//! that it does not list.
#![allow(non_camel_case_types)]

pub mod bins;
pub mod compare;
pub mod driver;
pub mod interval;
pub mod means;
pub mod numbers;
pub mod power;
pub mod slab;
pub mod status;
