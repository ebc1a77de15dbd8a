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
//! Every descriptor that can wait is non-blocking. An operation tries its call; if the call would block, the fiber waits
//! until the descriptor is ready and tries again. Interrupted calls, vanished peers, time limits and cancellation are
//! therefore handled once, in `source.rs`, and the models differ only in how they wait. A cancelled fiber unwinds in its
//! wait or before its call, and never between a call that took data and the return of that data.
//!
//! Files always count as ready. Their operations are [completions](IoModel::Completion), or calls on other threads.
//!
//! # Readiness without races
//! A started fiber stays on its worker, and a worker polls only between fibers, so no event is taken while a fiber runs. If
//! a call would block and the fiber then enters the poller, the event that makes the call possible is therefore still to
//! come. For this reason, descriptors can be registered once, edge-triggered, and a wait costs no system call beyond the
//! call that would have blocked. A descriptor that fibers of several workers use is registered with each of their pollers.
//!
//! A [`poll`] does not own its descriptors, which others may close afterwards. It therefore registers them only for the time
//! of its wait, unless a source or another fiber's `poll` has registered them; the last `poll` to leave ends a registration
//! that was made for this.
//!
//! # The read that would find nothing
//! A TCP stream is empty after a read that returned less than its buffer. If the worker has not polled since, the event
//! of the next bytes is still to come, as in the section above. The next read therefore waits at once, without the call
//! that would block. This requires two more facts. First, the event that ended the wait before the short read reported
//! bytes and nothing else: an end of the stream, an error or urgent data that was reported with the bytes is not reported
//! again. Second, that event, the short read and the next read belong to one [`Turn`](poller::Turn) of one poller. Other
//! kinds of streams may return less than they hold: a Unix socket does so at messages that carry descriptors.

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
