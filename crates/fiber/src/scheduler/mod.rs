//! The scheduler: which worker runs which fiber, and what a worker does without one.
//!
//! # A fiber's way
//! *Spawned*, a fiber is a boxed body in the queue of unstarted fibers of one worker, from which any worker may take
//! it. *Started*, it has a stack and belongs to the worker that started it, until its end. It runs until it waits or
//! yields; its worker then runs another. A wake-up puts it into its worker's queue of ready fibers: directly from a
//! fiber of the same worker, through the worker's [inbox](inbox::Inbox) from elsewhere.
//!
//! A waiting fiber owns one reference to itself, which passes to the queue with the wake-up. So it lives as long as it
//! waits, even if no handle is left, and neither wait nor wake-up touches the reference count.
//!
//! # A worker's sleep
//! A worker without work takes a snapshot of its event count (its *bell*), enters the list of idle workers, looks once
//! more for fibers everywhere, and sleeps on the snapshot. No wake-up is lost:
//!
//! - A fiber made ready is pushed to the inbox before the bell rings. If the worker overlooked it, its snapshot is
//!   older than the ring, and the sleep ends at once.
//! - An unstarted fiber is added to a queue under the queue's mutex, and the idle list is read afterwards. The worker
//!   enters the list first and looks under the mutex afterwards. Whichever holds the mutex second sees the other:
//!   the worker the fiber, or the spawner the idle worker.
//!
//! A worker whose fibers wait for descriptors sleeps in its [poller](crate::io) instead, which the [bell](bell) ends as
//! well; and a worker that has other work looks into its poller now and then.
//!
//! `src/model.rs` explores the inbox and the bell with loom.

pub(crate) mod bell;
pub(crate) mod core;
pub(crate) mod idle;
pub(crate) mod inbox;
pub(crate) mod joiners;
pub(crate) mod local;
pub(crate) mod post;
pub(crate) mod registry;
pub(crate) mod shared;
pub(crate) mod state;
pub(crate) mod timers;
pub(crate) mod wait_state;
pub(crate) mod watch;
pub(crate) mod worker;
