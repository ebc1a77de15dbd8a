//! The scheduler assigns fibers to workers and puts idle workers to sleep.
//!
//! # The life of a fiber
//! A *spawned* fiber is a boxed function in one worker's queue of unstarted fibers, from which any worker may take it. A
//! *started* fiber has a stack and belongs to the worker that started it until it ends. The fiber runs until it waits or yields;
//! its worker then runs another fiber. A wake-up puts a waiting fiber into its worker's queue of ready fibers. If the waker runs
//! on the same worker, it does so directly; any other thread uses the worker's [inbox](inbox::Inbox).
//!
//! A waiting fiber owns one reference to itself, which the wake-up passes to the queue. The fiber therefore exists as long as it
//! waits, even if no handle is left, and neither a wait nor a wake-up changes the reference count.
//!
//! A spawn and a join on one worker take no lock. The control block is the one that the worker [freed last](blocks), and the
//! blocks also serve as the list of live fibers. If a worker has only one unstarted fiber, the fiber is in [a slot](post) in
//! front of the queue. A fiber's [joiner] is one word. Ended fibers are subtracted from the [number of live fibers](worker) in
//! batches.
//!
//! # A worker's sleep
//! A worker without work first spins and checks for work, for [at most as long as a sleep costs](alert). It then takes a snapshot
//! of its event count (its *bell*), enters the list of idle workers, searches all queues once more, and sleeps on the snapshot.
//! No wake-up is lost:
//!
//! - A ready fiber is pushed to the inbox before the bell rings. If the worker missed the fiber, the worker's snapshot is older
//!   than the ring, and its sleep ends immediately.
//! - An unstarted fiber is added to a queue under the queue's mutex, and the idle list is read afterwards. The worker
//!   enters the list first and checks the queue under the mutex afterwards. Whichever locks the mutex second sees the
//!   other's change: the worker sees the fiber, or the spawner sees the idle worker.
//!
//! A worker whose fibers wait for descriptors sleeps in its [poller](crate::io) instead; the [bell](bell) ends that sleep as
//! well. A worker that has ready fibers checks its poller periodically.
//!
//! `src/model.rs` explores the inbox and the bell with loom. `model.rs` in this folder explores joins, reused control blocks, the
//! slot of a sole unstarted fiber, and the [end] of a runtime.

mod alert;
pub(crate) mod bell;
mod blocks;
pub(crate) mod core;
pub(crate) mod core_ref;
pub(crate) mod end;
pub(crate) mod idle;
pub(crate) mod inbox;
pub(crate) mod joiner;
pub(crate) mod local;
#[cfg(all(test, loom))]
mod model;
pub(crate) mod post;
pub(crate) mod shared;
pub(crate) mod state;
pub(crate) mod timers;
pub(crate) mod traces;
pub(crate) mod wait_state;
pub(crate) mod watch;
pub(crate) mod worker;
