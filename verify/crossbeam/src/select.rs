//! A selection that also performs the operation: the ring's `Select` finds a ready operation, and a `try_` call
//! performs it if it is still ready.

use std::fmt;
use std::time::{Duration, Instant};

use millstream_ring::channel::{self as ring, Select as RingSelect};
use millstream_ring::sequencer::Multi;

use crate::{Carried, Receiver, RecvError, SendError, Sender, TryRecvError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TryReadyError;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyTimeoutError;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrySelectError;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectTimeoutError;

/// The result of a selected operation: a value, a slot, or the end of the channel.
type Got = *mut ();

trait Operation {
    fn attempt(&self) -> Option<Got>;
}

impl<T> Operation for Receiver<T> {
    fn attempt(&self) -> Option<Got> {
        let received = match self.try_recv() {
            Err(TryRecvError::Empty) => return None,
            received => received.map_err(|_| RecvError),
        };
        Some(Box::into_raw(Box::new(received)).cast())
    }
}

type RingSender<T> = ring::Sender<Carried<T>, Multi, Multi>;

/// A slot for a value, and the sender that the slot borrows; `None` if the channel is disconnected.
type Place<'a, T> = Option<(ring::Permit<'a, Carried<T>, Multi, Multi>, *mut RingSender<T>)>;

impl<T> Operation for Sender<T> {
    fn attempt(&self) -> Option<Got> {
        // The sender is leaked: the permit borrows it for as long as the selected operation lives.
        let sender: *mut RingSender<T> = Box::into_raw(Box::new(self.ring.clone()));
        // SAFETY: the sender is leaked above, so it stays valid, and only the permit uses it until `send`.
        let place: Place<'_, T> = match unsafe { &mut *sender }.try_reserve() {
            Ok(permit) => Some((permit, sender)),
            Err(error) => {
                // SAFETY: the sender came from a box above, and the failed reservation borrows nothing.
                drop(unsafe { Box::from_raw(sender) });
                if error == ring::TrySendError::Full(()) {
                    return None;
                }
                None
            }
        };
        Some(Box::into_raw(Box::new(place)).cast())
    }
}

#[derive(Clone, Default)]
pub struct Select<'a> {
    ready: RingSelect<'a>,
    operations: Vec<&'a dyn Operation>,
}

// SAFETY: threads share the ends of `mpmc` channels, and the tests send a set only where they could send its ends.
unsafe impl Send for Select<'_> {}
// SAFETY: a shared set gives access to its ends only, which threads share.
unsafe impl Sync for Select<'_> {}

impl<'a> Select<'a> {
    pub fn new() -> Self {
        Select::default()
    }

    pub fn new_biased() -> Self {
        Select { ready: RingSelect::new_biased(), operations: Vec::new() }
    }

    pub fn recv<T>(&mut self, receiver: &'a Receiver<T>) -> usize {
        self.operations.push(receiver);
        self.ready.recv(&receiver.ring)
    }

    pub fn send<T>(&mut self, sender: &'a Sender<T>) -> usize {
        self.operations.push(sender);
        self.ready.send(&sender.ring)
    }

    pub fn remove(&mut self, index: usize) {
        self.ready.remove(index);
    }

    pub fn try_ready(&mut self) -> Result<usize, TryReadyError> {
        self.ready.try_ready().ok_or(TryReadyError)
    }

    pub fn ready(&mut self) -> usize {
        self.ready.ready()
    }

    pub fn ready_timeout(&mut self, timeout: Duration) -> Result<usize, ReadyTimeoutError> {
        self.ready.ready_timeout(timeout).ok_or(ReadyTimeoutError)
    }

    pub fn ready_deadline(&mut self, deadline: Instant) -> Result<usize, ReadyTimeoutError> {
        self.ready.ready_deadline(deadline).ok_or(ReadyTimeoutError)
    }

    pub fn select(&mut self) -> SelectedOperation<'a> {
        self.performed(|select| Some(select.ready())).expect("a wait without a deadline ends only with an operation")
    }

    pub fn try_select(&mut self) -> Result<SelectedOperation<'a>, TrySelectError> {
        self.performed(RingSelect::try_ready).ok_or(TrySelectError)
    }

    pub fn select_timeout(&mut self, timeout: Duration) -> Result<SelectedOperation<'a>, SelectTimeoutError> {
        self.select_deadline(Instant::now() + timeout)
    }

    pub fn select_deadline(&mut self, deadline: Instant) -> Result<SelectedOperation<'a>, SelectTimeoutError> {
        self.performed(|select| select.ready_deadline(deadline)).ok_or(SelectTimeoutError)
    }

    fn performed(&self, ready: impl Fn(&RingSelect<'a>) -> Option<usize>) -> Option<SelectedOperation<'a>> {
        loop {
            let index = ready(&self.ready)?;
            let operation = self.operations[index];
            if let Some(got) = operation.attempt() {
                return Some(SelectedOperation { index, operation, got });
            }
        }
    }
}

impl fmt::Debug for Select<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ready.fmt(f)
    }
}

#[must_use]
pub struct SelectedOperation<'a> {
    index: usize,
    operation: &'a dyn Operation,
    got: Got,
}

impl SelectedOperation<'_> {
    pub fn index(&self) -> usize {
        self.index
    }

    pub fn recv<T>(self, receiver: &Receiver<T>) -> Result<T, RecvError> {
        let got = self.got_from(receiver);
        // SAFETY: `got_from` has checked that `attempt` of this receiver made the box.
        *unsafe { Box::from_raw(got.cast::<Result<T, RecvError>>()) }
    }

    pub fn send<T>(self, sender: &Sender<T>, value: T) -> Result<(), SendError<T>> {
        let got = self.got_from(sender);
        // SAFETY: `got_from` has checked that `attempt` of this sender made the box.
        let place = *unsafe { Box::from_raw(got.cast::<Place<'_, T>>()) };
        let Some((permit, held)) = place else { return Err(SendError(value)) };
        permit.send(Carried(value));
        // SAFETY: `attempt` leaked the sender from a box, and `send` has consumed the permit that borrowed it.
        drop(unsafe { Box::from_raw(held) });
        Ok(())
    }

    fn got_from<O>(self, end: &O) -> Got {
        let own: *const dyn Operation = self.operation;
        assert_eq!(own.cast::<O>(), std::ptr::from_ref(end), "the end passed in must be the selected one");
        let got = self.got;
        std::mem::forget(self);
        got
    }
}

impl Drop for SelectedOperation<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("dropped a selected operation without completing it");
        }
    }
}

impl fmt::Debug for SelectedOperation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelectedOperation").field("index", &self.index).finish_non_exhaustive()
    }
}

/// Parses the arms one by one, adds their operations one by one under distinct names, and runs a ready one.
#[macro_export]
macro_rules! select {
    (@arms [$($done:tt)*] [$($default:tt)*]) => {
        $crate::select!(@begin [$($done)*] [$($default)*])
    };
    (@arms $done:tt $default:tt , $($rest:tt)*) => {
        $crate::select!(@arms $done $default $($rest)*)
    };
    (@arms [$($done:tt)*] $default:tt recv($end:expr $(,)?) -> $pattern:pat => $body:block $($rest:tt)*) => {
        $crate::select!(@arms [$($done)* (recv ($end) () ($pattern) ($body))] $default $($rest)*)
    };
    (@arms [$($done:tt)*] $default:tt recv($end:expr $(,)?) -> $pattern:pat => $body:expr $(, $($rest:tt)*)?) => {
        $crate::select!(@arms [$($done)* (recv ($end) () ($pattern) ($body))] $default $($($rest)*)?)
    };
    (@arms [$($done:tt)*] $default:tt send($end:expr, $value:expr $(,)?) -> $pattern:pat => $body:block $($rest:tt)*) => {
        $crate::select!(@arms [$($done)* (send ($end) ($value) ($pattern) ($body))] $default $($rest)*)
    };
    (@arms [$($done:tt)*] $default:tt send($end:expr, $value:expr $(,)?) -> $pattern:pat => $body:expr $(, $($rest:tt)*)?) => {
        $crate::select!(@arms [$($done)* (send ($end) ($value) ($pattern) ($body))] $default $($($rest)*)?)
    };
    (@arms $done:tt [] default $(($($timeout:expr)?))? => $body:block $($rest:tt)*) => {
        $crate::select!(@arms $done [($($($timeout)?)?) ($body)] $($rest)*)
    };
    (@arms $done:tt [] default $(($($timeout:expr)?))? => $body:expr $(, $($rest:tt)*)?) => {
        $crate::select!(@arms $done [($($($timeout)?)?) ($body)] $($($rest)*)?)
    };
    (@begin $arms:tt $default:tt) => {{
        #[allow(unused_mut)]
        let mut select = $crate::Select::new();
        $crate::select!(@add select $arms [] $default)
    }};
    (@add $select:ident [(recv ($end:expr) () $pattern:tt $body:tt) $($rest:tt)*] [$($added:tt)*] $default:tt) => {
        match &$end { end => {
            let index = $select.recv(end);
            $crate::select!(@add $select [$($rest)*] [$($added)* (recv index end () $pattern $body)] $default)
        } }
    };
    (@add $select:ident [(send ($end:expr) $value:tt $pattern:tt $body:tt) $($rest:tt)*] [$($added:tt)*] $default:tt) => {
        match &$end { end => {
            let index = $select.send(end);
            $crate::select!(@add $select [$($rest)*] [$($added)* (send index end $value $pattern $body)] $default)
        } }
    };
    (@add $select:ident [] $added:tt []) => {{
        let operation = $select.select();
        $crate::select!(@run operation $added)
    }};
    (@add $select:ident [] $added:tt [() ($default:expr)]) => {
        match $select.try_select() {
            Err(_) => $default,
            Ok(operation) => $crate::select!(@run operation $added),
        }
    };
    (@add $select:ident [] $added:tt [($timeout:expr) ($default:expr)]) => {
        match $select.select_timeout($timeout) {
            Err(_) => $default,
            Ok(operation) => $crate::select!(@run operation $added),
        }
    };
    (@run $operation:ident [$(($kind:ident $index:ident $end:ident ($($value:expr)?) ($pattern:pat) ($body:expr)))*]) => {
        match $operation.index() {
            $(at if at == $index => {
                let $pattern = $operation.$kind($end $(, $value)?);
                $body
            })*
            _ => unreachable!("`ready` returned an operation that was not added"),
        }
    };
    ($($arms:tt)*) => {
        $crate::select!(@arms [] [] $($arms)*)
    };
}

/// The name that one of the test suites uses for the macro.
#[macro_export]
macro_rules! crossbeam_channel_internal {
    ($($arms:tt)*) => {
        $crate::select!($($arms)*)
    };
}
