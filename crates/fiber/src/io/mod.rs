//! Waiting for descriptors, under four models behind one interface.
//!
//! | file | part |
//! | --- | --- |
//! | `model.rs` | the models, and which one the kernel offers |
//! | `source.rs` | a descriptor with its time limits: tries a call, and waits where it would block |
//! | `wait.rs` | one wait, under the model of the calling fiber, or on a thread |
//! | `poll.rs` | a wait for one of several descriptors |
//! | `poller.rs` | readiness: each worker's epoll instance |
//! | `ring.rs` | completion: each worker's io_uring instance |
//! | `alarm.rs` | the descriptor that ends a worker's sleep in its poller |
//!
//! # One loop above the models
//! Every descriptor that can wait is non-blocking. An operation makes its system call. If the call would block, the fiber waits
//! until the descriptor is ready and makes the call again. Interrupted calls, vanished peers, time limits and cancellation are
//! therefore handled once, in `source.rs`, and the models differ only in how they wait. A cancelled fiber unwinds in its wait or
//! before its call. It never unwinds between a call that has taken data and the return of that data.
//!
//! Files always count as ready. Their operations are [completions](IoModel::Completion), or calls on other threads.
//!
//! # Readiness without races
//! A started fiber stays on its worker, and a worker polls only between fibers, so the worker collects no events while a fiber
//! runs. If a call would block and the fiber then enters the poller, the event that makes the call possible is still to come.
//! Each descriptor is therefore registered only once, edge-triggered, and a wait costs no further system call. If fibers of
//! several workers use a descriptor, it is registered with the poller of each worker.
//!
//! A [`poll`] does not own its descriptors, and after its return the program may close them. It therefore registers a descriptor
//! only for its wait, unless a source or another fiber's `poll` has registered it already. The last `poll` that waits for the
//! descriptor ends such a registration.
//!
//! # The read that would find nothing
//! A TCP stream is empty after a read that returned less than its buffer. If the worker has not polled since then, the event of
//! the next bytes is still to come, as in the section above. The next read can therefore wait immediately, without the call
//! that would block. Two conditions must be met:
//!
//! First, the event that ended the wait before the short read reported bytes and nothing else. If it also reported the end of the
//! stream, an error or urgent data, these are not reported again, and the fiber would wait although its next read would return
//! them.
//!
//! Second, that event, the short read and the next read belong to one [`Turn`](poller::Turn) of one poller.
//!
//! This is done only for TCP. With other kinds of streams, a read may return less than its buffer although more bytes are
//! available: a Unix socket does so at messages that carry descriptors.

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
