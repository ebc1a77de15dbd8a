//! Consumers in a graph over one ring: the disruptor.
//!
//! Events are made once, when the ring is built, and then written in place, lap after lap: the ring neither allocates
//! nor moves them. Each consumer sees every event, in order, after the consumers that it *follows* are through with it.
//!
//! | I want | do |
//! | --- | --- |
//! | several consumers, each sees all events (multicast) | [`Builder::handle`] several times, following `&[]` |
//! | one after the other (chain) | `handle(&[first], …)` |
//! | two side by side, then a third (diamond) | `handle(&[a, b], …)` |
//! | a consumer that changes events for those after it | [`Builder::handle_mut`] |
//! | each event handled by one of several threads | [`Builder::pool`] |
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
//! **The end.** When the last producer is dropped, consumers handle all published events and end.
//!
//! **Panics.** A handler that panics is not called again: its consumer leaves, and neither producers nor other
//! consumers wait for it any more. [`Running::join`] reports it. The handler's captured values are dropped after its
//! consumer has left, so their drop may publish, or wait; if it panics, that is reported, too. The followers go on, and
//! their events from then on lack a step: the event at which the handler panicked may be half changed, and in later
//! ones the fields that it would have written hold values of the last lap. A program that should stop instead checks
//! [`Producer::has_panicked`] or [`Running::has_panicked`]. In a pool the other members go on, and all events are
//! handled except the one at which it panicked, until the last member panics. A producer that panics while it writes an
//! event does not publish it: consumers skip the position.

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
