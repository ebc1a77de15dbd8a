//! A consumer that its owner drives by polling.

use std::time::Instant;

use super::consumer::{Consumer, Place, Waited};
use crate::sequencer::{Sequencer, Single};

/// Consumes events on the caller's thread. Producers wait for the poller until it is dropped.
#[derive(Debug)]
pub struct Poller<E, P: Sequencer> {
    consumer: Consumer<E, P, Single>,
}

/// The outcome of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Polled {
    /// The number of positions that the poll passed, including those given up.
    Events(u64),
    /// There are no events now.
    Idle,
    /// There will be no more events: the producers are gone.
    Ended,
}

impl<E, P: Sequencer> Poller<E, P> {
    pub(super) fn new(consumer: Consumer<E, P, Single>) -> Self {
        Poller { consumer }
    }

    /// Calls `handle` for the available events, at most `most`. Never waits; wait-free, except for `handle`.
    ///
    /// Followers see the events of a batch (up to a quarter of the ring) when all of them are handled. If `handle`
    /// panics at an event, the next poll sees that event again.
    ///
    /// ```
    /// use millstream_ring::graph::{Builder, Polled};
    ///
    /// let mut ring = Builder::single(8, || 0u32);
    /// let (_, mut poller) = ring.poller(&[]);
    /// let (mut producer, running) = ring.start();
    /// producer.publish(|event| *event = 7);
    /// drop(producer);
    /// assert_eq!(poller.poll(64, |event, _| assert_eq!(*event, 7)), Polled::Events(1));
    /// assert_eq!(poller.poll(64, |_, _| ()), Polled::Ended);
    /// running.join().unwrap();
    /// ```
    pub fn poll(&mut self, most: u64, mut handle: impl FnMut(&E, Place)) -> Polled {
        // SAFETY: the plan keeps every writer away from events while this consumer has them.
        let passed = self.consumer.consume(most, |cell, place| cell.with(|event| handle(unsafe { &*event }, place)));
        match passed {
            0 if self.consumer.peek() == Waited::Ended => Polled::Ended,
            0 => Polled::Idle,
            passed => Polled::Events(passed),
        }
    }

    /// Waits, with the ring's wait strategy, until a poll would find an event or the end.
    pub fn wait(&self) {
        let _ = self.consumer.wait(None);
    }

    /// Waits until a poll would find an event or the end; `false` if the deadline passes first.
    #[must_use]
    pub fn wait_deadline(&self, deadline: Instant) -> bool {
        self.consumer.wait(Some(deadline)) != Waited::TimedOut
    }

    /// Waits as a task until a poll would find an event or the end.
    pub async fn wait_async(&mut self) {
        let _ = self.consumer.wait_async().await;
    }
}
