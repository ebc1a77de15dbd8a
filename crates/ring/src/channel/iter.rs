//! Receiving in a loop.

use super::Receiver;
use crate::sequencer::Sequencer;

/// Values until all senders are gone; see [`Receiver::iter`].
#[derive(Debug)]
pub struct Iter<'a, T, P: Sequencer, C: Sequencer> {
    pub(super) receiver: &'a Receiver<T, P, C>,
}

impl<T, P: Sequencer, C: Sequencer> Iterator for Iter<'_, T, P, C> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

/// Values that are there; see [`Receiver::try_iter`].
#[derive(Debug)]
pub struct TryIter<'a, T, P: Sequencer, C: Sequencer> {
    pub(super) receiver: &'a Receiver<T, P, C>,
}

impl<T, P: Sequencer, C: Sequencer> Iterator for TryIter<'_, T, P, C> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.receiver.try_recv().ok()
    }
}

/// Values until all senders are gone; owns the receiver.
#[derive(Debug)]
pub struct IntoIter<T, P: Sequencer, C: Sequencer> {
    pub(super) receiver: Receiver<T, P, C>,
}

impl<T, P: Sequencer, C: Sequencer> Iterator for IntoIter<T, P, C> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}
