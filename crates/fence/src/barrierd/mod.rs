//! The page of `barrierd`, a daemon that publishes when each processor last passed a full barrier of its own accord.
//!
//! A process that has mapped the page needs no system call to find out whether all processors have passed since some moment. No
//! core is interrupted, and one daemon serves the machine. [`Fence::CHEAP`](crate::Fence::CHEAP) uses the page if the daemon
//! runs.
//!
//! | I want | use |
//! | --- | --- |
//! | a heavy fence or a ticket of this process | [`Fence::CHEAP`](crate::Fence::CHEAP) |
//! | to check only some processors, to use the page for other purposes, to know when the daemon ends | [`Client`] |
//! | to read the page in my own way, or from another language | [`layout`], [`View`] |
//!
//! ```no_run
//! use millstream_fence::barrierd::Client;
//! use std::time::{Duration, Instant};
//!
//! let client = Client::connect()?;
//! let drawn = client.now(); // after the writes that must be visible
//! client.ask(drawn);
//! while !client.has_passed(drawn) {
//!     // Go on working, or sleep:
//!     client.wait(drawn, Instant::now() + Duration::from_millis(20))?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/barrierd.md` explains why this is correct, on x86 and on Arm, and separates guarantees from folklore.
//!
//! Source of the idea: Paul Khuong's `barrierd`.

pub(crate) mod backend;
mod client;
pub mod layout;
mod message;
mod view;

pub use client::{Client, Gone, Refused, VirtualTime, boot_id};
pub use message::{MAX_REQUEST_BYTES, Request, send_hello, send_refusal};
pub use view::{Access, View};
