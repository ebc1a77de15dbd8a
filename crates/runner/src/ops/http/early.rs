//! Responses that arrive before the server has read the whole request.
//!
//! A server that refuses a request because of the request's head responds at once and closes the connection, so the
//! client cannot write the rest of the request. The response explains more than the error of the failed write.
//! Therefore a write to a closed connection counts as done, and its error becomes the request's error only if no
//! response arrives.

use std::io;

use ureq::Error;
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, Transport};

/// A connector that makes early responses readable on the connections of the previous connector in the chain.
#[derive(Debug)]
pub(super) struct ReadsEarlyAnswers;

/// A connection whose other end may have sent a response and closed the connection.
#[derive(Debug)]
pub(super) struct Answered<C> {
    connection: C,
    /// Whether a write has found the connection closed.
    closed: bool,
    /// The error of that write. It is cleared when the first bytes of a response arrive.
    unsent: Option<io::Error>,
}

impl<In: Transport> Connector<In> for ReadsEarlyAnswers {
    type Out = Answered<In>;

    fn connect(&self, _: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<Self::Out>, Error> {
        Ok(chained.map(|connection| Answered { connection, closed: false, unsent: None }))
    }
}

impl<C: Transport> Transport for Answered<C> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.connection.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        if self.closed {
            return Ok(());
        }
        match self.connection.transmit_output(amount, timeout) {
            Err(Error::Io(error)) if is_closed(&error) => {
                self.closed = true;
                self.unsent = Some(error);
                Ok(())
            }
            sent => sent,
        }
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let read = self.connection.await_input(timeout);
        match (self.unsent.take(), read) {
            (Some(unsent), Ok(false)) => Err(unsent.into()),
            (Some(unsent), Err(Error::Io(error))) if is_closed(&error) => Err(unsent.into()),
            (_, read) => read,
        }
    }

    fn is_open(&mut self) -> bool {
        !self.closed && self.connection.is_open()
    }

    fn is_tls(&self) -> bool {
        self.connection.is_tls()
    }
}

/// Whether the other end has closed the connection.
fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}
