//! Receiving in a loop.

use super::Receiver;
use crate::sequencer::Sequencer;

/// Each iterator is a way to receive; what ends it is the error of that.
macro_rules! iterator {
    ($(#[$doc:meta])* $name:ident, $receive:ident, $receiver:ty $(, $a:lifetime)?) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<$($a,)? T, P: Sequencer, C: Sequencer> {
            pub(super) receiver: $receiver,
        }

        impl<$($a,)? T, P: Sequencer, C: Sequencer> Iterator for $name<$($a,)? T, P, C> {
            type Item = T;

            #[inline(always)]
            fn next(&mut self) -> Option<T> {
                self.receiver.$receive().ok()
            }
        }
    };
}

iterator! {
    /// Values until all senders are gone; see [`Receiver::iter`].
    Iter, recv, &'a Receiver<T, P, C>, 'a
}

iterator! {
    /// Values that are there; see [`Receiver::try_iter`].
    TryIter, try_recv, &'a Receiver<T, P, C>, 'a
}

iterator! {
    /// Values until all senders are gone; owns the receiver.
    IntoIter, recv, Receiver<T, P, C>
}
