//! The `millstream` command as a library, so that tests reach its parts.
//!
//! From the command line to the last report line:
//!
//! - [`args`]: the command line;
//! - [`mod@file`]: flow files, from text to a checked model;
//! - [`source`] and [`record`]: where units come from, and what they are;
//! - [`ops`]: what stages do to them;
//! - [`wire`]: the model as an engine flow;
//! - [`plan`]: `millstream plan`;
//! - [`run`](mod@run): `millstream run`, with its [`screen`], its [`dead_letters`] and their
//!   [`causes`];
//! - [`retry`](mod@retry): `millstream retry`;
//! - [`steer`]: the control socket, `millstream status` and `millstream set`;
//! - [`evidence`]: `millstream slo`, `compare` and `csm`;
//! - [`history`]: `millstream history`;
//! - [`slab`]: `millstream slab`;
//! - [`doctor`]: `millstream doctor`;
//! - [`signals`]: the signals that ask a command to end;
//! - [`supervise`]: the process that ends the programs of a run that was killed;
//! - [`json_bytes`] and [`json_member`]: paths as JSON strings, without loss; the members of JSON objects.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod args;
pub mod causes;
pub mod dead_letters;
mod descriptors;
pub mod doctor;
pub mod evidence;
pub mod file;
#[cfg(any(fuzzing, test))]
pub mod fuzz;
pub mod history;
pub mod json_bytes;
pub mod json_member;
pub(crate) mod leftovers;
pub mod ops;
pub mod payload;
pub mod plan;
pub mod record;
mod regular;
pub mod retry;
pub mod run;
pub mod screen;
pub mod signals;
pub mod slab;
pub mod source;
pub mod steer;
pub mod supervise;
mod web_url;
pub mod wire;
