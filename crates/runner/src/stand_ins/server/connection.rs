//! Connections that return the responses of a case.

use std::io;
use std::net::SocketAddr;
use std::sync::PoisonError;

use ureq::Agent;
use ureq::config::Config;
use ureq::http::{StatusCode, Uri};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport};

use super::Server;
use crate::file::cases::Answer;
use crate::stand_ins::difference;
use crate::web_url;

/// The maximum number of headers in a request of an op.
const MAX_HEADERS: usize = 256;

impl Server {
    /// An agent whose requests get the responses of the case.
    pub fn agent(&self, config: Config) -> Agent {
        Agent::with_parts(config, self.clone(), Nowhere)
    }

    /// The response to a request, as a server sends it.
    ///
    /// # Errors
    /// The case has no response for the URL, or expects another request.
    fn answer(&self, url: &str, request: &Received<'_>) -> Result<Vec<u8>, String> {
        let state = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |answer: &Answer| {
            answer.url == url && answer.method.as_ref().is_none_or(|method| *method == request.method)
        };
        let fitting: Vec<usize> = (0..state.answers.len()).filter(|index| fits(&state.answers[*index])).collect();
        let requests = state.requests.entry((url.to_owned(), request.method.to_owned())).or_default();
        let lack = match fitting.get(*requests).or(fitting.last()).copied() {
            None => lack(url),
            Some(given) => {
                *requests += 1;
                state.given.push(given);
                let answer = &state.answers[given];
                let expected = answer.request.as_ref();
                match expected
                    .and_then(|expected| difference::bytes_differ("the request's body", expected, request.body))
                {
                    None => return Ok(message(answer, request.method != "HEAD")),
                    Some(difference) => difference,
                }
            }
        };
        state.unanswered.insert(lack.clone());
        Err(lack)
    }
}

/// The sentence for a request without a response.
fn lack(url: &str) -> String {
    format!(
        "the case has no response for this URL: {}",
        String::from_utf8_lossy(&web_url::without_credentials(url.as_bytes()))
    )
}

/// The response as a server sends it.
fn message(answer: &Answer, has_body: bool) -> Vec<u8> {
    let reason = StatusCode::from_u16(answer.status).ok().and_then(|status| status.canonical_reason()).unwrap_or("");
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", answer.status);
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Length: {}\r\nConnection: close\r\n\r\n", answer.body.len());
    [head.as_bytes(), if has_body { &answer.body } else { b"" }].concat()
}

impl Connector for Server {
    type Out = Connection;

    fn connect(&self, details: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<Connection>, ureq::Error> {
        let url = details.uri.to_string();
        // The URL is normalised in the same way as the URLs of the case file.
        let url = web_url::parse(&url).map_or(url, String::from);
        Ok(Some(Connection {
            server: self.clone(),
            url,
            received: Vec::new(),
            answer: None,
            sent: 0,
            tls: details.needs_tls(),
            buffers: LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size()),
        }))
    }
}

/// A connection for one request.
#[derive(Debug)]
pub struct Connection {
    server: Server,
    url: String,
    /// The bytes of the request so far.
    received: Vec<u8>,
    /// The response, once the request has been understood.
    answer: Option<Vec<u8>>,
    sent: usize,
    tls: bool,
    buffers: LazyBuffers,
}

/// A request as it was received.
struct Received<'a> {
    method: &'a str,
    body: &'a [u8],
}

impl Connection {
    /// Finds the response to the received request.
    fn find_answer(&mut self) -> io::Result<()> {
        if self.answer.is_none() {
            let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut head = httparse::Request::new(&mut headers);
            let parsed = head.parse(&self.received).map_err(io::Error::other)?;
            let httparse::Status::Complete(end) = parsed else {
                return Err(io::Error::other("the request breaks off within its head"));
            };
            let request = Received { method: head.method.unwrap_or_default(), body: &self.received[end..] };
            self.answer = Some(self.server.answer(&self.url, &request).map_err(io::Error::other)?);
        }
        Ok(())
    }
}

impl Transport for Connection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, _timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.received.extend_from_slice(&self.buffers.output()[..amount]);
        Ok(())
    }

    fn await_input(&mut self, _timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.find_answer()?;
        let rest = &self.answer.as_deref().unwrap_or_default()[self.sent..];
        let room = self.buffers.input_append_buf();
        let amount = rest.len().min(room.len());
        room[..amount].copy_from_slice(&rest[..amount]);
        self.buffers.input_appended(amount);
        self.sent += amount;
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        false
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
