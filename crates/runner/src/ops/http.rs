//! `http-get` and `http`: send a request; the body of the response becomes the payload.
//!
//! All workers of the stage share its connections, which stay open for later requests. The body is read as it arrives,
//! up to a maximum size. Its buffer grows only when it is full, so a server that announces a long body and sends little
//! of it occupies little memory. The op gives up on a server that sends nothing for [`MAX_SILENCE`], and the stage's
//! time limit bounds each request. A status of 400 or above is a failure. The failure is permanent, except for 408, 429
//! and 500 to 599, which the stage's retry policy may try again. A retry waits at least as long as the server asks for
//! in `Retry-After`, up to a maximum pause.
//!
//! If the stage's units run on fibers, the waits of a request suspend its fiber (see [`transport`]).
//!
//! After a redirect, the unit notes the new URL, releases its slots, and waits in the stage's queue for slots of the
//! new host (see [`redirect`]). A request that changes something is repeated only if the server permits that, and never
//! at another server. The system's certificate authorities vouch for the name of an `https` server (see [`trust`]).

mod buffers;
mod early;
mod redirect;
mod retry_after;
mod transport;
mod trust;

use std::borrow::Cow;
use std::io::Read;
use std::time::{Duration, Instant, SystemTime};

use millstream_command::time;
use millstream_flow::{Cx, Failure};
use ureq::http::header::AUTHORIZATION;
use ureq::http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use ureq::tls::TlsConfig;
use ureq::{Agent, AsSendBody, Body};
use url::Url;

use self::redirect::Redirects;
use self::trust::Trust;
use super::{Op, OpError, failing, growing, trace_context};
use crate::descriptors;
use crate::file::model::{HttpSpec, Method};
use crate::file::template::Template;
use crate::record::Record;
use crate::web_url;

pub use self::redirect::Hop;

/// The maximum size of a response's body if the flow file does not set `max_bytes`.
const DEFAULT_MAX_BYTES: u64 = 256 << 20;

/// The longest pause that a server can ask for if the flow file does not set `max_retry_after`.
const DEFAULT_MAX_RETRY_AFTER: Duration = Duration::from_secs(5 * 60);

/// The maximum time to look up a host's address, and the maximum time to connect to the host.
const MAX_CONNECT_TIME: Duration = Duration::from_secs(10);

/// How long a connected server may send nothing.
const MAX_SILENCE: Duration = Duration::from_secs(30);

/// The number of connections to one host that are kept for later requests.
const IDLE_CONNECTIONS_PER_HOST: usize = 16;

/// The number of bytes read between two checks of the time limit and of cancellation.
const STEP: u64 = 256 << 10;

/// The maximum memory that is requested for a body of announced length before its first byte arrives.
const FIRST_ROOM: u64 = 64 << 10;

/// The longest body of a redirect that is read to make the connection usable for another request.
const MAX_REDIRECT_BODY: u64 = 16 << 10;

/// See the [module](self).
pub(super) struct Http {
    url: Template,
    most_bytes: u64,
    max_retry_after: Duration,
    /// Whether the op waits as `Retry-After` asks. With a stand-in for the server, the op does not wait.
    waits: bool,
    redirects: Redirects,
    headers: Vec<(HeaderName, Template)>,
    method: Method,
    /// The body of a request. If this is `None`, a request that has a body sends the payload.
    body: Option<Template>,
    /// Fields, each with the response header that gives its value.
    fields: Vec<(String, HeaderName)>,
    agent: Agent,
}

/// The body of a request.
struct RequestBody<'a> {
    bytes: Cow<'a, [u8]>,
    /// The number of bytes that were allocated for the body, in addition to the memory that the unit occupies.
    made: u64,
}

/// The response of a server.
enum Answer {
    Body(HeaderMap, Vec<u8>),
    /// The response to a method whose responses have no body.
    Head(HeaderMap),
    /// The response redirects to another URL.
    Moved(StatusCode, Vec<u8>),
}

impl Http {
    /// `fibers` tells whether the stage's units run on fibers.
    pub(super) fn new(spec: &HttpSpec, fibers: bool) -> Result<Self, OpError> {
        let headers =
            spec.headers.iter().map(|(name, value)| Ok((header(name)?, value.clone()))).collect::<Result<_, _>>()?;
        let fields = spec.fields.iter().map(|(name, of)| Ok((name.clone(), header(of)?))).collect::<Result<_, _>>()?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .tls_config(TlsConfig::builder().root_certs(Trust::of_process().roots.clone()).build())
            .user_agent(concat!("millstream/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(MAX_CONNECT_TIME))
            .timeout_connect(Some(MAX_CONNECT_TIME))
            .timeout_per_read(Some(MAX_SILENCE))
            .timeout_per_write(Some(MAX_SILENCE))
            .max_idle_connections(descriptors::idle_connections())
            .max_idle_connections_per_host(IDLE_CONNECTIONS_PER_HOST.min(descriptors::idle_connections()))
            .build();
        Ok(Self {
            url: spec.url.clone(),
            most_bytes: spec.max_bytes.unwrap_or(DEFAULT_MAX_BYTES),
            max_retry_after: spec.max_retry_after.unwrap_or(DEFAULT_MAX_RETRY_AFTER),
            waits: true,
            redirects: Redirects {
                most: spec.max_redirects.unwrap_or(redirect::DEFAULT_MAX_REDIRECTS),
                downgrade: spec.downgrade,
            },
            headers,
            method: spec.method,
            body: spec.body.clone(),
            fields,
            agent: if fibers { transport::of_fibers(config) } else { transport::of_threads(config) },
        })
    }

    /// The method of the next request.
    fn method(&self, hop: &Hop) -> Method {
        if hop.gets { Method::Get } else { self.method }
    }

    /// The body of the request, if it has one.
    fn request_body<'a>(
        &self,
        hop: &Hop,
        record: &'a Record,
        cx: &mut Cx<'_>,
    ) -> Result<Option<RequestBody<'a>>, Failure> {
        if !self.method(hop).has_body() {
            return Ok(None);
        }
        let (made, body) = match &self.body {
            Some(body) => {
                let body = body.render(record).map_err(|error| Failure::from(error).to_permanent())?;
                (body.len() as u64, Some(body))
            }
            None => (record.payload.to_make(cx)?, None),
        };
        if made > 0 {
            // Nothing has been sent, so the unit can still wait for memory.
            cx.reserve_first(record.held().saturating_add(made))?;
        }
        let bytes = match body {
            Some(body) => Cow::Owned(body),
            None => record.payload.in_memory(made, cx)?,
        };
        Ok(Some(RequestBody { bytes, made }))
    }

    /// Sends one request and receives the response.
    fn ask(&self, hop: &Hop, record: &Record, cx: &mut Cx<'_>) -> Result<Answer, Failure> {
        let left = cx.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let headers = || self.headers.iter().filter(|_| hop.at_home);
        let (url, login) = web_url::without_login(&hop.url);
        let body = self.request_body(hop, record, cx)?;
        let made = body.as_ref().map_or(0, |body| body.made);
        let mut request = Request::builder().method(self.method(hop).name()).uri(url.as_str());
        if let Some(login) = login.filter(|_| headers().all(|(name, _)| name != AUTHORIZATION)) {
            request = request.header(AUTHORIZATION, login);
        }
        for (name, value) in headers() {
            let value = value.render(record).map_err(|error| Failure::from(error).to_permanent())?;
            request = request.header(name, value);
        }
        let has_context = self.headers.iter().any(|(name, _)| name == trace_context::HEADER);
        if let Some(context) = trace_context::of_attempt().filter(|_| !has_context) {
            request = request.header(trace_context::HEADER, context);
        }
        let response = match &body {
            Some(body) => {
                request.body(&*body.bytes).map_err(ureq::Error::from).and_then(|request| self.send(request, left))
            }
            None => request.body(()).map_err(ureq::Error::from).and_then(|request| self.send(request, left)),
        };
        let response = response.map_err(|error| failure(&error, cx))?;
        let status = response.status();
        if let Some(location) = redirect::location(status, response.headers()) {
            let location = location.to_owned();
            discard(response);
            return Ok(Answer::Moved(status, location));
        }
        if !status.is_success() {
            return Err(self.refused(status, &response));
        }
        let headers = response.headers().clone();
        if self.method(hop) == Method::Head {
            return Ok(Answer::Head(headers));
        }
        self.body(response, record.held() + made, cx).map(|payload| Answer::Body(headers, payload))
    }

    fn send(&self, request: Request<impl AsSendBody>, left: Option<Duration>) -> Result<Response<Body>, ureq::Error> {
        self.agent.run(self.agent.configure_request(request).timeout_global(left).build())
    }

    /// Sets the fields whose headers are in the response.
    fn set_fields(&self, headers: &HeaderMap, record: &mut Record) {
        for (name, header) in &self.fields {
            if let Some(value) = headers.get(header) {
                record.set_field(name.clone(), value.as_bytes().to_vec());
            }
        }
    }

    /// Reads the body. `held` is the number of bytes that the unit occupies already.
    fn body(&self, response: Response<Body>, held: u64, cx: &mut Cx<'_>) -> Result<Vec<u8>, Failure> {
        let body = response.into_body();
        let announced = body.content_length();
        if let Some(bytes) = announced.filter(|bytes| *bytes > self.most_bytes) {
            return Err(self.too_large(&format!("the body has {bytes} bytes")));
        }
        let first = announced.unwrap_or(0).min(FIRST_ROOM);
        cx.reserve(held + first)?;
        let mut payload = growing::with_room(first)?;
        let mut reader = body.into_reader();
        loop {
            let room = (payload.capacity() - payload.len()) as u64;
            if room == 0 {
                let mut next = [0];
                if reader.read(&mut next).map_err(|error| failure(&error.into(), cx))? == 0 {
                    break;
                }
                let mut capacity = growing::next_capacity(&payload);
                if let Some(all) = announced.map(|bytes| bytes as usize).filter(|all| *all > payload.len()) {
                    capacity = capacity.min(all);
                }
                cx.reserve(held + capacity as u64)?;
                growing::grow_to(&mut payload, capacity)?;
                payload.push(next[0]);
            } else {
                let most = room.min(STEP);
                // The read is limited to the buffer's spare capacity, so the buffer does not grow.
                let read = reader.by_ref().take(most).read_to_end(&mut payload);
                if (read.map_err(|error| failure(&error.into(), cx))? as u64) < most {
                    break;
                }
            }
            if payload.len() as u64 > self.most_bytes {
                return Err(self.too_large("the body goes on"));
            }
            cx.check()?;
        }
        if payload.len() as u64 > self.most_bytes {
            return Err(self.too_large(&format!("the body has {} bytes", payload.len())));
        }
        growing::trim(&mut payload);
        Ok(payload)
    }

    /// The failure for an error status.
    fn refused(&self, status: StatusCode, response: &Response<Body>) -> Failure {
        let mut message = format!("status {status}");
        let mut pause = Duration::ZERO;
        if let Some(asked) = response.headers().get("retry-after").and_then(|value| value.to_str().ok()) {
            message.push_str(&format!("; the server asks to retry after {asked}"));
            pause = retry_after::pause(asked, SystemTime::now()).unwrap_or(Duration::ZERO);
        }
        let passing =
            status.is_server_error() || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
        if !passing {
            return Failure::permanent(message);
        }
        if pause > self.max_retry_after {
            pause = self.max_retry_after;
            message.push_str(&format!(", and `max_retry_after` is {}", time::show(pause)));
        }
        Failure::msg(message).not_before(if self.waits { pause } else { Duration::ZERO })
    }

    fn too_large(&self, found: &str) -> Failure {
        Failure::permanent(format!("{found}, and `max_bytes` is {}", self.most_bytes))
    }
}

impl Op for Http {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let text = self.url.render(record).map_err(|error| Failure::from(error).to_permanent())?;
        let hop = match &record.rare.hop {
            Some(hop) => (**hop).clone(),
            None => Hop::first(parse(&text)?),
        };
        let said = |failure: Failure| match hop.count {
            0 => failure.context(format_args!("{} {}", self.method.name(), shown(&text))),
            _ => failure.context(format_args!(
                "{} {}: redirected to {}",
                self.method.name(),
                shown(&text),
                web_url::shown(&hop.url)
            )),
        };
        match self.ask(&hop, record, cx).map_err(said)? {
            Answer::Head(headers) => {
                self.set_fields(&headers, record);
                record.rare.forget_hop();
                Ok(())
            }
            Answer::Body(headers, payload) => {
                self.set_fields(&headers, record);
                record.payload = payload.into();
                record.headroom = 0;
                record.rare.forget_hop();
                Ok(())
            }
            Answer::Moved(status, location) => {
                let next = self.redirects.follow(&hop, status, &location, self.method(&hop)).map_err(said)?;
                let moved = said(Failure::requeue(format!("redirected to {}", web_url::shown(&next.url))));
                record.rare.hop = Some(Box::new(next));
                Err(moved)
            }
        }
    }

    fn blocking(&self, _has_needs: bool) -> bool {
        true
    }

    fn idempotent(&self) -> bool {
        self.method.is_idempotent()
    }
}

fn header(name: &str) -> Result<HeaderName, OpError> {
    HeaderName::try_from(name).map_err(|_| {
        OpError::new(
            format!("`{name}` is not the name of a header"),
            "header names are letters, digits and hyphens, like `Accept-Language`",
        )
    })
}

fn parse(text: &[u8]) -> Result<Url, Failure> {
    let url = str::from_utf8(text).map_err(|_| "it is not UTF-8".to_owned()).and_then(web_url::parse);
    url.map_err(|reason| Failure::permanent(format!("`{}` is not a URL: {reason}", shown(text))))
}

/// The text of a URL without its credentials, for a message.
fn shown(text: &[u8]) -> String {
    let shown = web_url::without_credentials(text.trim_ascii());
    match str::from_utf8(&shown) {
        Ok(text) => text.to_owned(),
        Err(_) => shown.escape_ascii().to_string(),
    }
}

/// Reads and discards the body of a response if it is short, so that the next request can use the connection.
fn discard(response: Response<Body>) {
    let body = response.into_body();
    if body.content_length().is_some_and(|bytes| bytes <= MAX_REDIRECT_BODY) {
        // A connection that fails here is not used again.
        let _ = std::io::copy(&mut body.into_reader(), &mut std::io::sink());
    }
}

/// The failure of a request that got no response, or only a part of a response.
fn failure(error: &ureq::Error, cx: &Cx<'_>) -> Failure {
    use ureq::{Error, Timeout};
    match error {
        Error::Timeout(Timeout::Global) => Failure::timeout("the stage's time limit passed"),
        Error::Timeout(Timeout::PerRead | Timeout::PerWrite) => {
            Failure::msg(format!("the server sent nothing for {} s", MAX_SILENCE.as_secs()))
        }
        Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
            Failure::msg(format!("no connection within {} s", MAX_CONNECT_TIME.as_secs()))
        }
        Error::HostNotFound => Failure::msg("the host's name has no address"),
        Error::BadUri(_) | Error::Http(_) | Error::InvalidProxyUrl => Failure::permanent(error.to_string()),
        Error::Io(error) => match cx.check() {
            Err(failure) => failure,
            Ok(()) => failing::starved(error).unwrap_or_else(|| Failure::msg(told(error))),
        },
        _ => Failure::msg(error.to_string()),
    }
}

/// The message about a failed connection. For a refused certificate, the message names the authorities.
fn told(error: &std::io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(reason)) => {
            format!("the server's certificate is refused: {reason}; authorities: {}", Trust::of_process())
        }
        _ => error.to_string(),
    }
}

/// An op that sends its requests through the agent that `agent` makes from the op's settings, and that ignores
/// `Retry-After`.
///
/// # Errors
/// A header's name is not valid.
pub fn http_over(agent: impl FnOnce(ureq::config::Config) -> Agent, spec: &HttpSpec) -> Result<Box<dyn Op>, OpError> {
    let mut op = Http::new(spec, false)?;
    op.agent = agent(op.agent.config().clone());
    op.waits = false;
    Ok(Box::new(op))
}

#[cfg(test)]
mod tests;
