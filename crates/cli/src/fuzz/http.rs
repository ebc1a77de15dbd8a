//! The responses of a hostile server to `http-get`.
//!
//! The first byte of an input is the maximum number of bytes that one read returns; 0 means no maximum. The other bytes
//! are the data that the server sends: a response for each request, separated by [`NEXT`]. In a response, the bytes
//! after [`AGAIN`] are sent repeatedly, as fast as the client reads them.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use millstream_runner::file::model::{HttpSpec, Method};
use millstream_runner::file::template::Template;
use millstream_runner::ops::http_over;
use millstream_runner::record::Record;
use ureq::Agent;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport};

use super::assert_taken;
use super::stage::in_stage;

/// Separates the responses to successive requests.
const NEXT: u8 = 0x1e;

/// The bytes after this byte are sent repeatedly, up to [`MAX_SENT`].
const AGAIN: u8 = 0x1c;

/// The maximum number of bytes that a server sends in response to one request: far more than the largest body that is
/// accepted.
const MAX_SENT: usize = 4 << 20;

/// The largest body that is accepted.
const MAX_BYTES: u64 = 1 << 20;

/// The maximum number of redirects that are followed.
const MAX_REDIRECTS: u64 = 4;

/// The maximum length of a failure's message, which quotes a bounded part of the server's text.
const MAX_MESSAGE: usize = 256 << 10;

/// Gets a URL from a server that sends `bytes`; returns whether there was a body.
///
/// # Panics
/// A body beyond `max_bytes`, use of memory far beyond that, a pause beyond `max_retry_after`, or a failure without a
/// message.
pub fn http(bytes: &[u8]) -> bool {
    let Some((piece, answers)) = bytes.split_first() else { return false };
    let script = Script {
        piece: if *piece == 0 { usize::MAX } else { usize::from(*piece) },
        answers: answers.split(|byte| *byte == NEXT).map(Answer::of).collect(),
    };
    let server = Server(Arc::new(Mutex::new(script)));
    let spec = HttpSpec {
        url: Template::parse("{line}").expect("a field is a template"),
        max_bytes: Some(MAX_BYTES),
        max_retry_after: None,
        max_redirects: Some(MAX_REDIRECTS),
        downgrade: true,
        headers: Vec::new(),
        method: Method::Get,
        body: None,
        fields: Vec::new(),
    };
    let over = |config: Config| Agent::with_parts(config, server, Nowhere);
    let op = http_over(over, &spec).expect("there are no headers to be wrong");
    let (record, result) = in_stage(move |cx| {
        let mut record = Record::line(b"http://fuzz.test/page".to_vec());
        let mut requests = 0;
        loop {
            requests += 1;
            assert!(requests <= MAX_REDIRECTS + 1, "no more redirects are followed than may be");
            let hops = |record: &Record| record.rare.hop.as_ref().map_or(0, |hop| hop.count);
            let before = hops(&record);
            let result = op.run(&mut record, cx);
            // If the unit was redirected, the op runs again for the next request.
            if result.is_ok() || hops(&record) == before {
                return (record, result);
            }
        }
    });
    match result {
        Ok(()) => {
            assert_taken(&record, MAX_BYTES);
            true
        }
        Err(failure) => {
            assert!(record.payload.is_empty(), "a failure leaves the record as it was");
            assert!(!failure.message().is_empty() && failure.message().len() <= MAX_MESSAGE, "{failure:?}");
            assert!(failure.pause().as_secs() <= 5 * 60, "{failure:?}");
            false
        }
    }
}

/// The responses that a server has not sent yet, on any of its connections.
#[derive(Debug)]
struct Script {
    piece: usize,
    answers: VecDeque<Answer>,
}

/// The bytes that are sent once, and the bytes that are sent repeatedly after them.
#[derive(Debug, Default)]
struct Answer {
    once: Vec<u8>,
    again: Vec<u8>,
}

impl Answer {
    fn of(text: &[u8]) -> Self {
        let mut parts = text.splitn(2, |byte| *byte == AGAIN).map(<[u8]>::to_vec);
        Self { once: parts.next().unwrap_or_default(), again: parts.next().unwrap_or_default() }
    }

    /// Writes the bytes from `at` on into `room`, and returns their number, 0 at the end. A call writes at most `piece`
    /// of the bytes that are sent once.
    fn send(&self, at: usize, piece: usize, room: &mut [u8]) -> usize {
        if let Some(rest @ [_, ..]) = self.once.get(at..) {
            let amount = rest.len().min(piece).min(room.len());
            room[..amount].copy_from_slice(&rest[..amount]);
            return amount;
        }
        let again = self.again.iter().cycle().skip((at - self.once.len()) % self.again.len().max(1));
        let amount = if self.again.is_empty() { 0 } else { room.len().min(MAX_SENT.saturating_sub(at)) };
        room[..amount].iter_mut().zip(again).for_each(|(to, from)| *to = *from);
        amount
    }
}

/// A server within this process.
#[derive(Debug, Clone)]
struct Server(Arc<Mutex<Script>>);

impl Connector for Server {
    type Out = Connection;

    fn connect(&self, details: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<Connection>, ureq::Error> {
        Ok(Some(Connection {
            server: self.clone(),
            answer: Answer::default(),
            sent: 0,
            tls: details.needs_tls(),
            buffers: LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size()),
        }))
    }
}

#[derive(Debug)]
struct Connection {
    server: Server,
    answer: Answer,
    sent: usize,
    tls: bool,
    buffers: LazyBuffers,
}

impl Connection {
    fn script(&self) -> std::sync::MutexGuard<'_, Script> {
        self.server.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for Connection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    /// Receives a request. Its response replaces the unread part of the previous response.
    fn transmit_output(&mut self, _amount: usize, _timeout: NextTimeout) -> Result<(), ureq::Error> {
        let next = self.script().answers.pop_front();
        (self.answer, self.sent) = (next.unwrap_or_default(), 0);
        Ok(())
    }

    fn await_input(&mut self, _timeout: NextTimeout) -> Result<bool, ureq::Error> {
        let piece = self.script().piece;
        let amount = self.answer.send(self.sent, piece, self.buffers.input_append_buf());
        self.buffers.input_appended(amount);
        self.sent += amount;
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        !self.script().answers.is_empty()
    }

    fn is_tls(&self) -> bool {
        self.tls
    }
}

/// A resolver that gives every host the same address. No connection to that address is made.
#[derive(Debug)]
struct Nowhere;

impl Resolver for Nowhere {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut addresses = self.empty();
        addresses.push(SocketAddr::from(([0, 0, 0, 0], 0)));
        Ok(addresses)
    }
}
