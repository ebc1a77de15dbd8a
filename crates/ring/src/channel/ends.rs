//! What both ends of a channel have in common for their users.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};

use super::{Permit, Receiver, Sender};
use crate::primitive::Arc;
use crate::sequencer::{Multi, Sequencer};

macro_rules! end {
    ($end:ident) => {
        impl<T, P: Sequencer, C: Sequencer> $end<T, P, C> {
            /// The most values the channel holds: what it was made with.
            #[must_use]
            pub fn capacity(&self) -> usize {
                self.shared.capacity as usize
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

            /// Whether the channel is full, about.
            #[must_use]
            pub fn is_full(&self) -> bool {
                self.len() == self.capacity()
            }

            /// How many senders there are, about: others come and go meanwhile.
            #[must_use]
            pub fn sender_count(&self) -> usize {
                self.shared.senders()
            }

            /// How many receivers there are, about: others come and go meanwhile.
            #[must_use]
            pub fn receiver_count(&self) -> usize {
                self.shared.receivers()
            }

            /// Whether the other is an end of the same channel.
            #[must_use]
            pub fn same_channel(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.shared, &other.shared)
            }
        }

        impl<T, C: Sequencer> $end<T, Multi, C> {
            /// Lets nothing in any more: senders get their values back, those that wait at once. What is in the channel is
            /// still received, and then receivers are told that it is disconnected.
            ///
            /// Exact: a `send` that returned success before or meanwhile is received; none succeeds later. Cost: one atomic
            /// operation, a heavy fence and a wake-up of all waiters. Channels with a sole sender have no `close`, see the
            /// [module](super).
            ///
            /// ```
            /// use millstream_ring::channel::{self, Disconnected};
            ///
            /// let (sender, receiver) = channel::mpsc(4);
            /// sender.send("last orders").unwrap();
            /// receiver.close();
            /// assert_eq!(sender.send("too late").unwrap_err().into_inner(), "too late");
            /// assert_eq!(receiver.recv(), Ok("last orders"));
            /// assert_eq!(receiver.recv(), Err(Disconnected));
            /// ```
            pub fn close(&self) {
                self.shared.close();
            }
        }

        impl<T, P: Sequencer, C: Sequencer> fmt::Debug for $end<T, P, C> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (len, capacity) = (self.len(), self.capacity());
                f.debug_struct(stringify!($end)).field("len", &len).field("capacity", &capacity).finish_non_exhaustive()
            }
        }

        // A panic leaves no operation half-done: a value is in the channel or is not.
        impl<T, P: Sequencer, C: Sequencer> UnwindSafe for $end<T, P, C> {}
        impl<T, P: Sequencer, C: Sequencer> RefUnwindSafe for $end<T, P, C> {}
    };
}

end!(Sender);
end!(Receiver);

impl<T, P: Sequencer, C: Sequencer> fmt::Debug for Permit<'_, T, P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}
