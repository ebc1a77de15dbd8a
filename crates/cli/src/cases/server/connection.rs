//! Connections that lead to the answers of a case.

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
use crate::web_url;

impl Server {
    /// An agent whose requests come here.
    pub(crate) fn agent(&self, config: Config) -> Agent {
        Agent::with_parts(config, self.clone(), Nowhere)
    }

    /// The answer to the next request for a URL.
    fn next(&self, url: &str) -> Option<Vec<u8>> {
        let state = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting: Vec<usize> = (0..state.answers.len()).filter(|index| state.answers[*index].url == url).collect();
        let requests = state.requests.entry(url.to_owned()).or_default();
        let Some(given) = fitting.get(*requests).or(fitting.last()).copied() else {
            state.unanswered.insert(lack(url));
            return None;
        };
        *requests += 1;
        state.given.push(given);
        Some(message(&state.answers[given]))
    }
}

/// The sentence for a request without an answer.
fn lack(url: &str) -> String {
    format!(
        "the case has no answer for this URL: {}",
        String::from_utf8_lossy(&web_url::without_credentials(url.as_bytes()))
    )
}

/// The answer as a server sends it.
fn message(answer: &Answer) -> Vec<u8> {
    let reason = StatusCode::from_u16(answer.status).ok().and_then(|status| status.canonical_reason()).unwrap_or("");
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", answer.status);
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Length: {}\r\nConnection: close\r\n\r\n", answer.body.len());
    [head.as_bytes(), &answer.body].concat()
}

impl Connector for Server {
    type Out = Connection;

    fn connect(&self, details: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<Connection>, ureq::Error> {
        let url = details.uri.to_string();
        // As the case file has it.
        let url = web_url::parse(&url).map_or(url, String::from);
        let Some(answer) = self.next(&url) else {
            return Err(io::Error::other(lack(&url)).into());
        };
        Ok(Some(Connection {
            answer,
            sent: 0,
            tls: details.needs_tls(),
            buffers: LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size()),
        }))
    }
}

/// A connection for one request.
#[derive(Debug)]
pub(crate) struct Connection {
    answer: Vec<u8>,
    sent: usize,
    tls: bool,
    buffers: LazyBuffers,
}

impl Transport for Connection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, _amount: usize, _timeout: NextTimeout) -> Result<(), ureq::Error> {
        Ok(())
    }

    fn await_input(&mut self, _timeout: NextTimeout) -> Result<bool, ureq::Error> {
        let room = self.buffers.input_append_buf();
        let rest = &self.answer[self.sent..];
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

/// Every host has the same address, which leads nowhere.
#[derive(Debug)]
struct Nowhere;

impl Resolver for Nowhere {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut addresses = self.empty();
        addresses.push(SocketAddr::from(([0, 0, 0, 0], 0)));
        Ok(addresses)
    }
}
