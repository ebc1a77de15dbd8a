//! What both ends can tell of the channel: how large it is and how full.

use super::{Receiver, Sender};
use crate::sequencer::Sequencer;

macro_rules! level {
    ($end:ident) => {
        impl<T, P: Sequencer, C: Sequencer> $end<T, P, C> {
            /// The most values the channel holds.
            #[must_use]
            pub fn capacity(&self) -> usize {
                self.shared.slots.capacity() as usize
            }

            /// How many values are in the channel, about: others send and receive meanwhile.
            #[must_use]
            pub fn len(&self) -> usize {
                self.shared.len() as usize
            }

            /// Whether the channel is empty, about.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }
    };
}

level!(Sender);
level!(Receiver);
