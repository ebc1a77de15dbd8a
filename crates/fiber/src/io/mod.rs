//! Waiting for descriptors, under four models behind one face.
//!
//! | file | part |
//! | --- | --- |
//! | `model.rs` | the models, and which one the kernel offers |
//! | `source.rs` | a descriptor with its time limits: tries a call, and waits where it would block |
//! | `wait.rs` | one wait, as the model of the calling fiber has it, or that of a thread |
//! | `poll.rs` | a wait for one of several descriptors |
//! | `poller.rs` | readiness: each worker's epoll instance |
//! | `ring.rs` | completion: each worker's io_uring instance |
//! | `alarm.rs` | the descriptor that ends a worker's sleep in its poller |
//!
//! # One way above the models
//! Every descriptor that can wait is non-blocking. An operation tries its call; if the call would block, the fiber waits
//! until the descriptor is ready and tries again. So interrupted calls, peers that vanish, time limits and cancellation are
//! handled once, in `source.rs`, and the models differ only in how they wait. A fiber that is cancelled unwinds in its wait
//! or before its call, and never between a call that took data and the return of that data.
//!
//! Files are never "not ready". Their operations are [completions](IoModel::Completion), or calls on other threads.
//!
//! # Readiness without races
//! A started fiber stays on its worker, and a worker asks its poller only between fibers. So no event is taken while a fiber
//! runs: when a call would block and the fiber then enters the poller, an event that makes the call possible is still to
//! come. That is why descriptors can be registered once, for edges, and no wait costs a system call beyond the call that
//! would have blocked. A descriptor that fibers of several workers use is registered with each of their pollers.
//!
//! A [`poll`] does not own its descriptors, which others may close after it. So it registers them for the time of its wait
//! alone, unless they are registered already, by a source or by another fiber's `poll`; the last one to leave ends that.
//!
//! # The read that would find nothing
//! A TCP stream is empty after a read that took less than its buffer. If no question to the poller came in between, the next
//! read waits at once, without the call that would block: its event is still to come, for the same reason. This needs two
//! more facts. The wait before the short read ended by an event of bytes alone, since an end of the stream, an error or
//! urgent data that was reported with them is not reported again. And all of that belongs to one [`Turn`](poller::Turn) of
//! one poller. Other kinds of streams may return less than they hold: a Unix socket does at messages that bear descriptors.

mod alarm;
#[cfg(all(test, not(loom)))]
mod fault;
mod model;
mod poll;
mod poller;
mod ring;
mod source;
#[cfg(all(test, not(loom)))]
mod tests;
mod wait;

pub(crate) use alarm::EventFd;
pub use model::IoModel;
pub use poll::poll;
pub(crate) use poller::{Interest, Poller, Turn};
pub(crate) use ring::complete;
pub use rustix::event::{PollFd, PollFlags};
pub(crate) use source::{Source, shortened, take_turns};
pub(crate) use wait::on_other_thread;
