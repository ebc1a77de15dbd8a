//! The methods that both ends of a channel share.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};

use super::{Permit, Receiver, Sender};
use crate::primitive::Arc;
use crate::sequencer::{Multi, Sequencer};

macro_rules! end {
    ($end:ident) => {
        impl<T, P: Sequencer, C: Sequencer> $end<T, P, C> {
            /// The capacity that the channel was created with: the maximum number of values in it.
            #[must_use]
            pub fn capacity(&self) -> usize {
                self.core.capacity as usize
            }

            /// The number of values in the channel; approximate, because other threads send and receive at the same
            /// time.
            #[must_use]
            pub fn len(&self) -> usize {
                self.core.len() as usize
            }

            /// Whether the channel is empty, approximately.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Whether the channel is full, approximately.
            #[must_use]
            pub fn is_full(&self) -> bool {
                self.len() == self.capacity()
            }

            /// Whether `other` is an end of the same channel.
            #[must_use]
            pub fn same_channel(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.core, &other.core)
            }
        }

        impl<T, C: Sequencer> $end<T, Multi, C> {
            /// Closes the channel to new values: senders, even waiting ones, get their values back. Receivers still get
            /// the values in the channel, and then learn that the channel is disconnected.
            ///
            /// Closing is exact: if a `send` that began earlier succeeds, its value is received, and no `send` that
            /// begins later succeeds. Cost: two atomic operations, a heavy fence and a wake-up of all waiters. Channels
            /// with a sole sender have no `close`; the [module](super) says why.
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
                self.core.close();
            }
        }

        impl<T, P: Sequencer, C: Sequencer> fmt::Debug for $end<T, P, C> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (len, capacity) = (self.len(), self.capacity());
                f.debug_struct(stringify!($end)).field("len", &len).field("capacity", &capacity).finish_non_exhaustive()
            }
        }

        // A panic leaves no operation half-done: a value is either in the channel or not.
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
