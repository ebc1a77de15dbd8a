//! Flow files as flows of the engine: the part of the `millstream` command that touches each unit.
//!
//! The interface follows the command and may change in any release. [`millstream_flow`] is the library for flows of a
//! Rust program.
//!
//! - [`mod@file`]: flow files, from text to a checked model;
//! - [`source`], [`record`] and [`payload`]: the sources of units, the units, and their bytes;
//! - [`ops`]: the operations that stages perform on them, with the [`printer`] for their outputs and the [`group`]s that
//!   they gather;
//! - [`wire`]: the model as an engine flow;
//! - [`stand_ins`]: what replaces programs and servers in a case of `millstream test`;
//! - [`descriptors`] and [`machine`]: the limit on open files and the load of the machine, as bounds on the flow;
//! - [`leftovers`]: the temporary files of a killed run, listed in the [run-time folder](runtime_folder);
//! - [`regular`] and [`web_url`]: files and servers whose names come from data;
//! - [`json_bytes`]: paths as JSON strings, without loss; [`json_member`]: the members of JSON objects.

#![allow(rustdoc::private_intra_doc_links, reason = "the docs are for readers of the source")]

pub mod descriptors;
pub mod file;
pub mod group;
pub mod json_bytes;
pub mod json_member;
pub mod leftovers;
pub mod machine;
pub mod ops;
pub mod payload;
pub mod printer;
pub mod record;
pub mod regular;
pub mod runtime_folder;
pub mod source;
pub mod stand_ins;
pub mod web_url;
pub mod wire;
