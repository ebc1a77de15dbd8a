//! The part of `crossbeam-channel`'s interface that its tests use, on Millstream's channels.
//!
//! A channel is an `mpmc` ring. An unbounded channel is a ring of [`UNBOUNDED`] slots, and a channel of capacity 0
//! panics (see [`ONE_FOR_ZERO`]).

mod select;
mod time;

use std::fmt;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

use millstream_ring::channel as ring;
use millstream_ring::sequencer::Multi;

pub use ring::{Disconnected as RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError};
pub use select::{ReadyTimeoutError, Select, SelectTimeoutError, SelectedOperation, TryReadyError, TrySelectError};
pub use time::{after, never, tick};

/// The capacity of an unbounded channel.
pub const UNBOUNDED: usize = 1 << 16;

/// The environment variable with which a channel of capacity 0 holds one value instead. It distinguishes the tests that
/// need a rendezvous from those that only create such a channel.
const ONE_FOR_ZERO: &str = "MILLSTREAM_ONE_FOR_ZERO";

/// A value in a channel. The tests create channels of any type, but send only values that are `Send`.
pub(crate) struct Carried<T>(pub(crate) T);

// SAFETY: values are reached only through the ends of a channel, which are `Send` only if the type is.
unsafe impl<T> Send for Carried<T> {}

type RingSender<T> = ring::Sender<Carried<T>, Multi, Multi>;
type RingReceiver<T> = ring::Receiver<Carried<T>, Multi, Multi>;

pub struct Sender<T> {
    pub(crate) ring: RingSender<T>,
    bounded: bool,
    carries: PhantomData<*mut T>,
}

pub struct Receiver<T> {
    pub(crate) ring: RingReceiver<T>,
    bounded: bool,
    carries: PhantomData<*mut T>,
}

macro_rules! end {
    ($end:ident) => {
        // SAFETY: values of type `T`, which is `Send`, may move to another thread.
        unsafe impl<T: Send> Send for $end<T> {}
        // SAFETY: sharing an end only moves values of type `T`, which is `Send`, between threads.
        unsafe impl<T: Send> Sync for $end<T> {}
        impl<T> UnwindSafe for $end<T> {}
        impl<T> RefUnwindSafe for $end<T> {}

        impl<T> Clone for $end<T> {
            fn clone(&self) -> Self {
                $end { ring: self.ring.clone(), ..*self }
            }
        }

        impl<T> fmt::Debug for $end<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.ring.fmt(f)
            }
        }

        impl<T> $end<T> {
            pub fn len(&self) -> usize {
                self.ring.len()
            }

            pub fn is_empty(&self) -> bool {
                self.ring.is_empty()
            }

            pub fn is_full(&self) -> bool {
                self.ring.is_full()
            }

            pub fn capacity(&self) -> Option<usize> {
                self.bounded.then(|| self.ring.capacity())
            }

            pub fn same_channel(&self, other: &Self) -> bool {
                self.ring.same_channel(&other.ring)
            }
        }
    };
}

end!(Sender);
end!(Receiver);

pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let capacity = if capacity == 0 && std::env::var_os(ONE_FOR_ZERO).is_some() { 1 } else { capacity };
    assert!(capacity > 0, "a capacity of 0 (a rendezvous) is not supported");
    ends(capacity, true)
}

pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    ends(UNBOUNDED, false)
}

fn ends<T>(capacity: usize, bounded: bool) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = ring::mpmc(capacity);
    let carries = PhantomData;
    (Sender { ring: sender, bounded, carries }, Receiver { ring: receiver, bounded, carries })
}

impl<T> Sender<T> {
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.ring.send(Carried(value)).map_err(|error| SendError(error.into_inner().0))
    }

    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.ring.try_send(Carried(value)).map_err(|error| match error {
            TrySendError::Full(Carried(value)) => TrySendError::Full(value),
            TrySendError::Disconnected(Carried(value)) => TrySendError::Disconnected(value),
        })
    }

    pub fn send_timeout(&self, value: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        self.ring.send_timeout(Carried(value), timeout).map_err(late)
    }

    pub fn send_deadline(&self, value: T, deadline: Instant) -> Result<(), SendTimeoutError<T>> {
        self.ring.send_deadline(Carried(value), deadline).map_err(late)
    }
}

fn late<T>(error: SendTimeoutError<Carried<T>>) -> SendTimeoutError<T> {
    match error {
        SendTimeoutError::Timeout(Carried(value)) => SendTimeoutError::Timeout(value),
        SendTimeoutError::Disconnected(Carried(value)) => SendTimeoutError::Disconnected(value),
    }
}

impl<T> Receiver<T> {
    pub fn recv(&self) -> Result<T, RecvError> {
        self.ring.recv().map(|Carried(value)| value)
    }

    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.ring.try_recv().map(|Carried(value)| value)
    }

    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.ring.recv_timeout(timeout).map(|Carried(value)| value)
    }

    pub fn recv_deadline(&self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.ring.recv_deadline(deadline).map(|Carried(value)| value)
    }

    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self)
    }

    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter(self)
    }
}

pub struct Iter<'a, T>(&'a Receiver<T>);
pub struct TryIter<'a, T>(&'a Receiver<T>);
pub struct IntoIter<T>(Receiver<T>);

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}
