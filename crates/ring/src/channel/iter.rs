//! Iterators over received values.

use std::fmt;
use std::iter::FusedIterator;

use super::Receiver;
use crate::sequencer::Sequencer;

/// Defines an iterator that receives until the channel is disconnected.
macro_rules! iterator {
    ($(#[$doc:meta])* $name:ident, $receiver:ty $(, $a:lifetime)?) => {
        $(#[$doc])*
        pub struct $name<$($a,)? T, P: Sequencer, C: Sequencer> {
            pub(super) receiver: $receiver,
        }

        impl<$($a,)? T, P: Sequencer, C: Sequencer> Iterator for $name<$($a,)? T, P, C> {
            type Item = T;

            #[inline(always)]
            fn next(&mut self) -> Option<T> {
                self.receiver.recv().ok()
            }
        }

        impl<$($a,)? T, P: Sequencer, C: Sequencer> fmt::Debug for $name<$($a,)? T, P, C> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.receiver).finish()
            }
        }
    };
}

iterator! {
    /// Iterates over values until all senders are gone; see [`Receiver::iter`].
    Iter, &'a Receiver<T, P, C>, 'a
}

iterator! {
    /// Iterates over values until all senders are gone; owns the receiver.
    IntoIter, Receiver<T, P, C>
}

// A disconnected channel stays disconnected.
impl<T, P: Sequencer, C: Sequencer> FusedIterator for Iter<'_, T, P, C> {}
impl<T, P: Sequencer, C: Sequencer> FusedIterator for IntoIter<T, P, C> {}
