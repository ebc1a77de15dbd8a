//! The disruptor: a graph of consumers over one ring.
//!
//! Events are created once, when the ring is built, and then written in place, lap after lap; the ring neither
//! allocates nor moves them. Each consumer sees every event, in order, after the consumers that it *follows* have
//! handled it.
//!
//! | I want | do |
//! | --- | --- |
//! | several consumers, each sees all events (multicast) | [`Builder::handle`] several times, following `&[]` |
//! | one after the other (chain) | `handle(&[first], …)` |
//! | two in parallel, then a third (diamond) | `handle(&[a, b], …)` |
//! | a consumer that changes events for its followers | [`Builder::handle_mut`] |
//! | one of several threads to handle each event | [`Builder::pool`] |
//! | to consume on a thread of my own | [`Builder::poller`] |
//! | one more consumer while the ring runs | [`Running::add`], [`Running::add_poller`] |
//! | one producer, or many | [`Builder::single`], [`Builder::multi`] |
//!
//! ```
//! use millstream_ring::graph::Builder;
//! use std::sync::mpsc::channel;
//!
//! #[derive(Default)]
//! struct Order { cents: u64, with_tax: u64 }
//!
//! let (out, results) = channel();
//! let mut ring = Builder::single(64, Order::default);
//! let tax = ring.handle_mut(&[], |order, _| order.with_tax = order.cents * 119 / 100);
//! ring.handle(&[tax], move |order, place| out.send((place.position, order.with_tax)).unwrap());
//! let (mut producer, running) = ring.start();
//! for cents in [100, 200] {
//!     producer.publish(|order| order.cents = cents);
//! }
//! drop(producer); // consumers handle all published events, then end
//! running.join().unwrap();
//! assert_eq!(results.iter().collect::<Vec<_>>(), [(0, 119), (1, 238)]);
//! ```
//!
//! **The end.** When the last producer is dropped, consumers handle the remaining published events and end.
//!
//! **Panics.** A handler that panics is not called again: its consumer leaves, and producers and other consumers stop
//! waiting for it. [`Running::join`] reports the panic. The handler's captured values are dropped after its consumer
//! has left, so their destructors may publish or wait; a panic in them is reported, too. The followers continue, but
//! from then on their events lack the handler's work. The event at which the handler panicked may be half changed; in
//! later events, fields that only the handler writes have their values from the last lap. To stop the program instead,
//! check [`Producer::has_panicked`] or [`Running::has_panicked`]. In a pool, the remaining members continue and handle
//! all events except the one at which the handler panicked. When the last member panics, the pool leaves. A producer
//! that panics while it writes an event does not publish it: consumers skip the position.

mod builder;
mod claim;
mod consumer;
mod core;
mod leaves;
#[cfg(all(test, loom))]
mod models;
mod party;
mod plan;
mod poller;
mod producer;
mod running;

pub use builder::Builder;
pub use claim::{Claim, EventsMut};
pub use consumer::Place;
pub use plan::Node;
pub use poller::{Polled, Poller};
pub use producer::{Full, Producer};
pub use running::{HandlerPanicked, Running};
