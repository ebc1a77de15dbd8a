//! Channels as streams and sinks of the `futures` crates.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::{FusedStream, Stream};
use futures_sink::Sink;

use super::{Receiver, SendError, Sender, TryRecvError, TrySendError};
use crate::sequencer::{Multi, Sequencer, Single};

type Waiting<R> = Pin<Box<dyn Future<Output = R> + Send>>;

/// A stream of a channel's values until all senders are gone; see [`Receiver::into_stream`].
pub struct ReceiverStream<T, P: Sequencer = Multi, C: Sequencer = Single> {
    state: Receiving<Receiver<T, P, C>>,
}

enum Receiving<R> {
    Idle(R),
    Waiting(Waiting<R>),
    Ended,
}

impl<T: Send + 'static, P: Sequencer, C: Sequencer> Receiver<T, P, C> {
    /// The channel's values as a [`Stream`], which ends when all senders are gone. A wait allocates; a value that is
    /// available at once does not.
    #[must_use]
    pub fn into_stream(self) -> ReceiverStream<T, P, C> {
        ReceiverStream { state: Receiving::Idle(self) }
    }
}

// The stream need not be pinned, because each wait has its own box.
impl<T, P: Sequencer, C: Sequencer> Unpin for ReceiverStream<T, P, C> {}

impl<T: Send + 'static, P: Sequencer, C: Sequencer> Stream for ReceiverStream<T, P, C> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        loop {
            self.state = match std::mem::replace(&mut self.state, Receiving::Ended) {
                Receiving::Ended => return Poll::Ready(None),
                Receiving::Idle(receiver) => match receiver.try_recv() {
                    Err(TryRecvError::Disconnected) => return Poll::Ready(None),
                    Err(TryRecvError::Empty) => Receiving::Waiting(Box::pin(once_there(receiver))),
                    Ok(value) => {
                        self.state = Receiving::Idle(receiver);
                        return Poll::Ready(Some(value));
                    }
                },
                Receiving::Waiting(mut waiting) => match waiting.as_mut().poll(context) {
                    Poll::Ready(receiver) => Receiving::Idle(receiver),
                    Poll::Pending => {
                        self.state = Receiving::Waiting(waiting);
                        return Poll::Pending;
                    }
                },
            }
        }
    }
}

/// Waits until the receiver has a value or the channel has ended, and returns the receiver.
async fn once_there<T, P: Sequencer, C: Sequencer>(mut receiver: Receiver<T, P, C>) -> Receiver<T, P, C> {
    // An error needs no handling here: the receiver's next check finds the end.
    let _ = receiver.core.wait_for_value_async(&mut receiver.hand).await;
    receiver
}

impl<T: Send + 'static, P: Sequencer, C: Sequencer> FusedStream for ReceiverStream<T, P, C> {
    fn is_terminated(&self) -> bool {
        matches!(self.state, Receiving::Ended)
    }
}

/// A sink that sends the values fed to it; see [`Sender::into_sink`].
pub struct SenderSink<T, P: Sequencer = Multi, C: Sequencer = Single> {
    state: Sending<T, Sender<T, P, C>>,
}

enum Sending<T, S> {
    Idle(S),
    Waiting(Waiting<(S, Result<(), SendError<T>>)>),
    Closed,
}

macro_rules! into_sink {
    ($P:ty) => {
        impl<T: Send + 'static, C: Sequencer> Sender<T, $P, C> {
            /// The channel as a [`Sink`]. While the channel is full, the sink stores one more value, and sends that
            /// value first. A wait for room allocates. Closing the sink drops the sender. A closed sink is always
            /// ready, and returns each value in an error.
            ///
            /// The error contains the value that the sink could not send.
            #[must_use]
            pub fn into_sink(self) -> SenderSink<T, $P, C> {
                SenderSink { state: Sending::Idle(self) }
            }
        }

        impl<T: Send + 'static, C: Sequencer> Sink<T> for SenderSink<T, $P, C> {
            type Error = SendError<T>;

            fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
                self.poll_flush(context)
            }

            /// Returns the value in an error if the receivers are gone, the channel is closed, or the sink is closed.
            ///
            /// # Panics
            /// If `poll_ready` has not reported that the sink is ready.
            fn start_send(mut self: Pin<&mut Self>, value: T) -> Result<(), SendError<T>> {
                let sender = match &self.state {
                    Sending::Idle(sender) => sender,
                    Sending::Waiting(_) => {
                        panic!("start_send was called before poll_ready reported that the sink is ready")
                    }
                    Sending::Closed => return Err(SendError(value)),
                };
                match sender.try_send(value) {
                    Ok(()) => Ok(()),
                    Err(TrySendError::Disconnected(value)) => Err(SendError(value)),
                    Err(TrySendError::Full(value)) => {
                        let Sending::Idle(sender) = std::mem::replace(&mut self.state, Sending::Closed) else {
                            unreachable!("the sink was idle above")
                        };
                        #[allow(unused_mut, reason = "a sole sender is lent exclusively")]
                        let mut sender = sender;
                        self.state = Sending::Waiting(Box::pin(async move {
                            let sent = sender.send_async(value).await;
                            (sender, sent)
                        }));
                        Ok(())
                    }
                }
            }

            fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
                let Sending::Waiting(waiting) = &mut self.state else { return Poll::Ready(Ok(())) };
                let (sender, sent) = ready!(waiting.as_mut().poll(context));
                self.state = Sending::Idle(sender);
                Poll::Ready(sent)
            }

            fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
                let flushed = ready!(self.as_mut().poll_flush(context));
                self.state = Sending::Closed;
                Poll::Ready(flushed)
            }
        }
    };
}

into_sink!(Multi);
into_sink!(Single);

// The sink need not be pinned, because each wait has its own box.
impl<T, P: Sequencer, C: Sequencer> Unpin for SenderSink<T, P, C> {}

impl<T, P: Sequencer, C: Sequencer> fmt::Debug for ReceiverStream<T, P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiverStream").finish_non_exhaustive()
    }
}

impl<T, P: Sequencer, C: Sequencer> fmt::Debug for SenderSink<T, P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SenderSink").finish_non_exhaustive()
    }
}
