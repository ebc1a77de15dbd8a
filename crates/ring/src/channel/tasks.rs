//! Sending and receiving as a task.
//!
//! Several tasks may share an end that can be cloned. A sole sender or receiver is lent to one task at a time, and may
//! move between threads together with the task. The two cases differ only in how they borrow the end.

use std::ops::{Deref, Range};

use super::batch::Batch;
use super::core::Core;
use super::{Disconnected, Receiver, SendError, Sender};
use crate::sequencer::{Multi, Sequencer, SequencerParts, Single};

impl<T, P: SequencerParts, C: SequencerParts> Core<T, P, C> {
    /// Waits until there is a value to claim. The caller borrows the hand in the form, shared or exclusive, that lets
    /// the future move to another thread.
    pub(super) async fn wait_for_value_async(&self, hand: impl Deref<Target = C::Hand>) -> Result<(), Disconnected> {
        let check = move || self.value_or_closed(&hand);
        self.arrivals.notifier.wait_async(|| (), check).await.map_err(|_| Disconnected)
    }

    /// Waits for slots for at most `most` values; `None` if waiting is useless.
    async fn wait_for_places_async(&self, hand: impl Deref<Target = P::Hand>, most: u64) -> Option<Range<u64>> {
        self.free_space.wait_async(move || self.places_or_closed(&hand, 1, most)).await
    }

    /// Waits until there is a free slot, without claiming it, or until waiting is useless.
    pub(super) async fn wait_for_room_async(&self, hand: impl Deref<Target = P::Hand>) {
        self.free_space.wait_async(move || self.has_room_or_closed(&hand).then_some(())).await;
    }
}

macro_rules! receiving {
    ($C:ty, $($own:tt)+) => {
        impl<T, P: Sequencer> Receiver<T, P, $C> {
            /// Receives a value, waiting as a task. The future may be dropped while it waits; then no value was
            /// received.
            ///
            /// # Errors
            /// If all senders are gone and all their values have been received.
            pub async fn recv_async($($own)+ self) -> Result<T, Disconnected> {
                loop {
                    if let Some(value) = self.take(self.now()) {
                        return Ok(value);
                    }
                    self.core.wait_for_value_async($($own)+ self.hand).await?;
                }
            }

            /// Waits for at least one value as a task, then proceeds as [`recv_many`](Self::recv_many). The future may
            /// be dropped while it waits; then no value was received.
            ///
            /// # Errors
            /// If all senders are gone and all their values have been received.
            pub async fn recv_many_async($($own)+ self, into: &mut Vec<T>, most: usize) -> Result<usize, Disconnected> {
                if most == 0 {
                    return Ok(0);
                }
                loop {
                    match self.take_many(into, most, self.now()) {
                        0 => self.core.wait_for_value_async($($own)+ self.hand).await?,
                        received => return Ok(received),
                    }
                }
            }
        }
    };
}

receiving!(Multi, &);
receiving!(Single, &mut);

macro_rules! sending {
    ($P:ty, $($own:tt)+) => {
        impl<T, C: Sequencer> Sender<T, $P, C> {
            /// Sends a value, waiting for room as a task. The future may be dropped while it waits; then the value was
            /// not sent.
            ///
            /// For each slot that becomes free, about one waiting task is woken. In a channel with one receiver,
            /// exactly one task is woken, in the order in which the tasks began to wait. A woken task must be polled or
            /// dropped, because no other task was woken for its slot.
            ///
            /// # Errors
            /// If all receivers are gone or the channel is closed.
            pub async fn send_async($($own)+ self, value: T) -> Result<(), SendError<T>> {
                let claimed = self.core.claim_place(&self.hand).map(|place| place.position);
                let position = match claimed {
                    Some(position) => Some(position),
                    None => self.core.wait_for_places_async($($own)+ self.hand, 1).await.map(|claim| claim.start),
                };
                match position {
                    Some(position) if self.core.has_receivers() => self.fill(self.core.place(position), value),
                    Some(position) => {
                        self.give_up(position);
                        return Err(SendError(value));
                    }
                    None => return Err(SendError(value)),
                }
                Ok(())
            }

            /// Sends all values, waiting for room as [`send_async`](Self::send_async) does. Otherwise like
            /// [`send_many`](Self::send_many). The future may be dropped while it waits; then the vector holds the
            /// values not sent.
            ///
            /// # Errors
            /// If all receivers are gone or the channel is closed: the vector holds the values not sent.
            pub async fn send_many_async($($own)+ self, values: &mut Vec<T>) -> Result<(), Disconnected> {
                let mut batch = Batch::of(values);
                while batch.left() > 0 {
                    if !self.core.has_receivers() {
                        return Err(Disconnected);
                    }
                    let most = batch.left() as u64;
                    let claim = match self.core.claim_places(&self.hand, most) {
                        Some(claim) => claim,
                        None => {
                            let places = self.core.wait_for_places_async($($own)+ self.hand, most);
                            places.await.ok_or(Disconnected)?
                        }
                    };
                    self.fill_many(claim, &mut batch);
                }
                Ok(())
            }
        }
    };
}

sending!(Multi, &);
sending!(Single, &mut);
