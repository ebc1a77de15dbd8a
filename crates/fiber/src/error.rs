//! The errors of the crate.

use std::any::Any;
use std::fmt;
use std::io;

/// The runtime could not get a stack for a fiber.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// Each guard needs a mapping on this kernel, and the process has reached its limit of mappings.
    #[error(
        "no stack for another fiber: this process has {stacks} guarded stacks, each of which takes two mappings, and the \
         kernel allows {limit} in all (vm.max_map_count); expected Linux 6.13, whose guards take none, or more mappings: \
         `sysctl vm.max_map_count={}`",
        limit.saturating_mul(4)
    )]
    Mappings {
        /// The number of guarded stacks that exist.
        stacks: usize,
        /// The value of `vm.max_map_count`.
        limit: usize,
    },
    /// The kernel refused to reserve address space.
    #[error(
        "no stack for another fiber: could not reserve {bytes} bytes of address space beside {stacks} stacks: {source}; \
         expected room under `ulimit -v` and vm.overcommit_memory other than 2, or smaller stacks"
    )]
    Memory {
        /// The number of bytes requested.
        bytes: usize,
        /// The number of stacks the runtime has.
        stacks: usize,
        /// The kernel's error.
        source: io::Error,
    },
}

/// A runtime could not be started because the kernel could not create a thread.
#[derive(Debug, thiserror::Error)]
#[error("could not start a thread of the runtime: {source}")]
#[non_exhaustive]
pub struct StartError {
    /// The kernel's error.
    #[from]
    pub source: io::Error,
}

/// A fiber could not be spawned. Its body was dropped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The runtime has reached its limit of fibers.
    #[error("the runtime has {limit} fibers, which is its limit; raise `Options::max_fibers` or join some first")]
    TooMany {
        /// The value of [`Options::max_fibers`](crate::Options::max_fibers).
        limit: usize,
    },
    /// Under [`Threads::OneEach`](crate::Threads::OneEach), the kernel could not create a thread.
    #[error("could not start a thread for the fiber: {0}")]
    Thread(#[source] io::Error),
}

/// A fiber ended without a value.
#[non_exhaustive]
pub enum JoinError {
    /// The fiber panicked, with this payload.
    Panicked(Box<dyn Any + Send>),
    /// The fiber was cancelled: it unwound at a wait, or never started.
    Cancelled,
    /// The fiber never ran, because there was no stack for it.
    NotStarted(StackError),
    /// The fiber waits, directly or through others, for the fiber that tried to join it. The join returned without
    /// waiting.
    Cycle,
}

impl JoinError {
    /// Resumes the fiber's panic, or panics with this error's text if the fiber did not panic.
    pub fn resume(self) -> ! {
        match self {
            JoinError::Panicked(payload) => std::panic::resume_unwind(payload),
            other => panic!("{other}"),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::Panicked(payload) => {
                let text = payload.downcast_ref::<&str>().copied();
                let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
                write!(f, "the fiber panicked: {}", text.unwrap_or("(its payload is not text)"))
            }
            JoinError::Cancelled => f.write_str("the fiber was cancelled"),
            JoinError::NotStarted(error) => write!(f, "the fiber never ran: {error}"),
            JoinError::Cycle => f.write_str("the fiber waits for the one that tried to join it"),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinError({self})")
    }
}

impl std::error::Error for JoinError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            JoinError::NotStarted(error) => Some(error),
            _ => None,
        }
    }
}
