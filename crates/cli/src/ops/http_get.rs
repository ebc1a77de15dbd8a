//! `http-get`: the body that a URL answers with becomes the payload.
//!
//! Connections are kept and used again by all workers of the stage. The body is read as it comes, into memory that is
//! granted first, up to a greatest size; a server that answers nothing for [`MOST_SILENCE`] is given up on, and the
//! stage's time limit bounds the whole. A status of 400 and above is a failure: permanent, but for 408, 429 and the
//! 500s, which the stage's retry policy may try again. It does so no sooner than the server asks for in `Retry-After`,
//! up to a longest pause.

use std::io::Read;
use std::time::{Duration, Instant, SystemTime};

use millstream_flow::{Cx, Failure};
use ureq::http::{HeaderName, Response, StatusCode};
use ureq::{Agent, Body};

use super::{Op, OpError, growing, retry_after};
use crate::file::template::Template;
use crate::file::time;
use crate::record::Record;

/// The largest body taken when the flow file does not say `max_bytes`.
const DEFAULT_MOST_BYTES: u64 = 256 << 20;

/// The longest pause that a server can ask for when the flow file does not say `max_retry_after`.
const DEFAULT_MAX_RETRY_AFTER: Duration = Duration::from_secs(5 * 60);

/// The longest that finding a host's address or connecting to it may take.
const MOST_CONNECTING: Duration = Duration::from_secs(10);

/// The longest that a connected server may say nothing.
const MOST_SILENCE: Duration = Duration::from_secs(30);

/// Connections kept for later requests: in all, and to one host.
const IDLE_CONNECTIONS: (usize, usize) = (256, 16);

/// Bytes read between two looks at the time limit and at cancellation.
const STEP: u64 = 256 << 10;

/// See the [module](self).
pub(super) struct HttpGet {
    url: Template,
    most_bytes: u64,
    max_retry_after: Duration,
    headers: Vec<(HeaderName, Template)>,
    agent: Agent,
}

impl HttpGet {
    pub(super) fn new(
        url: &Template,
        max_bytes: Option<u64>,
        max_retry_after: Option<Duration>,
        headers: &[(String, Template)],
    ) -> Result<Self, OpError> {
        let headers = headers
            .iter()
            .map(|(name, value)| match HeaderName::try_from(name) {
                Ok(name) => Ok((name, value.clone())),
                Err(_) => Err(OpError::new(
                    format!("`{name}` is not the name of a header"),
                    "header names are letters, digits and hyphens, like `Accept-Language`",
                )),
            })
            .collect::<Result<_, _>>()?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .user_agent(concat!("millstream/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(MOST_CONNECTING))
            .timeout_connect(Some(MOST_CONNECTING))
            .timeout_per_read(Some(MOST_SILENCE))
            .timeout_per_write(Some(MOST_SILENCE))
            .max_idle_connections(IDLE_CONNECTIONS.0)
            .max_idle_connections_per_host(IDLE_CONNECTIONS.1)
            .build();
        Ok(Self {
            url: url.clone(),
            most_bytes: max_bytes.unwrap_or(DEFAULT_MOST_BYTES),
            max_retry_after: max_retry_after.unwrap_or(DEFAULT_MAX_RETRY_AFTER),
            headers,
            agent: config.into(),
        })
    }

    fn get(&self, url: &str, record: &Record, cx: &mut Cx<'_>) -> Result<Vec<u8>, Failure> {
        let left = cx.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let mut request = self.agent.get(url).config().timeout_global(left).build();
        for (name, value) in &self.headers {
            let value = value.render(record).map_err(|error| Failure::from(error).to_permanent())?;
            request = request.header(name, value);
        }
        let response = request.call().map_err(|error| failure(&error, cx))?;
        let status = response.status();
        if status.is_client_error() || status.is_server_error() {
            return Err(self.refused(status, &response));
        }
        self.body(response, record.held(), cx)
    }

    /// Reads the body; `held` is what the unit holds already.
    fn body(&self, response: Response<Body>, held: u64, cx: &mut Cx<'_>) -> Result<Vec<u8>, Failure> {
        let body = response.into_body();
        let announced = body.content_length().unwrap_or(0);
        if announced > self.most_bytes {
            return Err(self.too_large(&format!("the body has {announced} bytes")));
        }
        cx.reserve(held + announced)?;
        let mut payload = growing::with_room(announced)?;
        let mut reader = body.into_reader();
        loop {
            let room = (payload.capacity() - payload.len()) as u64;
            if room == 0 {
                let mut next = [0];
                if reader.read(&mut next).map_err(|error| failure(&error.into(), cx))? == 0 {
                    break;
                }
                let capacity = growing::next_capacity(&payload);
                cx.reserve(held + capacity as u64)?;
                growing::grow_to(&mut payload, capacity)?;
                payload.push(next[0]);
            } else {
                let most = room.min(STEP);
                // Limited to the room there is, this does not grow the buffer.
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
        Failure::msg(message).not_before(pause)
    }

    fn too_large(&self, found: &str) -> Failure {
        Failure::permanent(format!("{found}, and `max_bytes` is {}", self.most_bytes))
    }
}

impl Op for HttpGet {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let url = self.url.render(record).map_err(|error| Failure::from(error).to_permanent())?;
        let url = str::from_utf8(url.trim_ascii())
            .map_err(|_| Failure::permanent(format!("`{}` is not a URL: it is not UTF-8", url.escape_ascii())))?;
        if !has_scheme(url) {
            return Err(Failure::permanent(format!(
                "`{url}` is not a URL: it starts neither with http:// nor with https://"
            )));
        }
        let body = self.get(url, record, cx).map_err(|failure| failure.context(format_args!("GET {url}")))?;
        record.payload = body.into();
        record.headroom = 0;
        Ok(())
    }

    fn blocking(&self, _has_needs: bool) -> bool {
        true
    }

    fn idempotent(&self) -> bool {
        true
    }
}

fn has_scheme(url: &str) -> bool {
    ["http://", "https://"]
        .iter()
        .any(|scheme| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
}

/// The failure for a request that got no answer, or not all of it.
fn failure(error: &ureq::Error, cx: &Cx<'_>) -> Failure {
    use ureq::{Error, Timeout};
    match error {
        Error::Timeout(Timeout::Global) => Failure::timeout("the stage's time limit passed"),
        Error::Timeout(Timeout::PerRead | Timeout::PerWrite) => {
            Failure::msg(format!("the server said nothing for {} s", MOST_SILENCE.as_secs()))
        }
        Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
            Failure::msg(format!("no connection within {} s", MOST_CONNECTING.as_secs()))
        }
        Error::HostNotFound => Failure::msg("the host's name has no address"),
        Error::BadUri(_) | Error::Http(_) | Error::TooManyRedirects | Error::InvalidProxyUrl => {
            Failure::permanent(error.to_string())
        }
        Error::Io(error) => match cx.check() {
            Err(failure) => failure,
            Ok(()) => Failure::msg(error.to_string()),
        },
        _ => Failure::msg(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::io::{BufRead, BufReader, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

    use super::HttpGet;
    use crate::file::template::Template;
    use crate::ops::one_stage::{run, run_all, run_within};
    use crate::record::Record;

    /// A server that answers by path and counts its connections.
    struct Server {
        address: String,
        connections: Arc<AtomicUsize>,
    }

    impl Server {
        fn start() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let connections = Arc::new(AtomicUsize::new(0));
            let counter = Arc::clone(&connections);
            let asked = Arc::new(Mutex::new(HashSet::new()));
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    counter.fetch_add(1, Ordering::Relaxed);
                    // A client that hangs up in the middle is part of the tests.
                    let asked = Arc::clone(&asked);
                    std::thread::spawn(move || drop(serve(&stream.unwrap(), &asked)));
                }
            });
            Self { address, connections }
        }

        fn record(&self, path: &str) -> Record {
            Record::line(format!("http://{}{path}", self.address).into_bytes())
        }
    }

    /// Answers requests by path; `asked` has those that were asked for before.
    fn serve(mut stream: &TcpStream, asked: &Mutex<HashSet<String>>) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream).lines();
        while let Some(request) = lines.next() {
            let request = request?;
            let mut accept = String::new();
            for header in lines.by_ref() {
                let header = header?;
                if header.is_empty() {
                    break;
                }
                if let Some(value) = header.to_ascii_lowercase().strip_prefix("x-unit: ") {
                    value.clone_into(&mut accept);
                }
            }
            let path = request.split(' ').nth(1).unwrap_or_default();
            let asked_before = !asked.lock().unwrap().insert(path.to_owned());
            let whole = |status: &str, headers: &str, body: &str| {
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
            };
            let answer = match path {
                "/hello" => whole("200 OK", "", "hello"),
                "/header" => whole("200 OK", "", &accept),
                "/large" => whole("200 OK", "", &"x".repeat(1_000_000)),
                "/chunked" => {
                    let chunk = format!("{:x}\r\n{}\r\n", 100_000, "y".repeat(100_000));
                    format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n", chunk.repeat(5))
                }
                "/moved" => whole("302 Found", "Location: /hello\r\n", ""),
                "/loop" => whole("302 Found", "Location: /loop\r\n", ""),
                "/busy" => whole("503 Service Unavailable", "Retry-After: 7\r\n", "later"),
                "/soon" if asked_before => whole("200 OK", "", "now"),
                "/soon" => whole("503 Service Unavailable", "Retry-After: 1\r\n", "later"),
                "/endless" if asked_before => whole("200 OK", "", "now"),
                "/endless" => whole("429 Too Many Requests", "Retry-After: 99999999999999999999\r\n", "later"),
                "/short" => {
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")?;
                    return Ok(());
                }
                "/stall" => {
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")?;
                    std::thread::sleep(Duration::from_secs(600));
                    return Ok(());
                }
                "/silent" => {
                    std::thread::sleep(Duration::from_secs(600));
                    return Ok(());
                }
                _ => whole("404 Not Found", "", "no such page"),
            };
            stream.write_all(answer.as_bytes())?;
        }
        Ok(())
    }

    fn get_with(max_bytes: Option<u64>, headers: &[(&str, &str)]) -> HttpGet {
        let headers: Vec<(String, Template)> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), Template::parse(value).unwrap())).collect();
        HttpGet::new(&Template::parse("{line}").unwrap(), max_bytes, Some(Duration::ZERO), &headers).unwrap()
    }

    fn get() -> HttpGet {
        get_with(None, &[])
    }

    #[test]
    fn the_body_is_the_payload() {
        let server = Server::start();
        let body = |path| run(get(), server.record(path)).unwrap().payload;
        assert_eq!(body("/hello"), b"hello");
        assert_eq!(body("/moved"), b"hello");
        assert_eq!(body("/large"), vec![b'x'; 1_000_000]);
        assert_eq!(body("/chunked"), vec![b'y'; 500_000]);
        let op = get_with(None, &[("X-Unit", "<{host}>")]);
        assert_eq!(run(op, server.record("/header")).unwrap().payload, format!("<{}>", server.address).into_bytes());
    }

    #[test]
    fn connections_are_used_again() {
        let server = Server::start();
        let records = run_all(get(), (0..200).map(|_| server.record("/hello"))).unwrap();
        assert_eq!(records.len(), 200);
        let connections = server.connections.load(Ordering::Relaxed);
        assert!(connections <= 4, "200 requests by two workers made {connections} connections");
    }

    #[test]
    fn errors_say_what_was_asked_and_what_happened() {
        let server = Server::start();
        for (path, expected) in [
            ("/nothing", "status 404 Not Found"),
            ("/busy", "status 503 Service Unavailable; the server asks to retry after 7"),
            ("/loop", "redirect"),
            ("/short", ""),
        ] {
            let error = run(get(), server.record(path)).unwrap_err();
            assert!(error.starts_with(&format!("GET http://{}{path}: ", server.address)), "{error}");
            assert!(error.contains(expected), "{error}");
        }
        // Nobody listens at a socket that is bound, and nobody else can have its port.
        let bound = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&bound, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let closed = SocketAddr::try_from(getsockname(&bound).unwrap()).unwrap();
        let error = run(get(), Record::line(format!("http://{closed}/").into_bytes())).unwrap_err();
        assert!(error.contains("refused"), "{error}");
    }

    #[test]
    fn a_server_that_asks_for_a_pause_gets_it_up_to_the_limit() {
        let server = Server::start();
        let op = |limit| HttpGet::new(&Template::parse("{line}").unwrap(), None, limit, &[]).unwrap();
        let start = Instant::now();
        assert_eq!(run(op(None), server.record("/soon")).unwrap().payload, b"now");
        assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
        // Without the limit it would never end.
        assert_eq!(run(op(Some(Duration::from_millis(1))), server.record("/endless")).unwrap().payload, b"now");
    }

    #[test]
    fn a_body_beyond_the_limit_is_not_taken() {
        let server = Server::start();
        for path in ["/large", "/chunked"] {
            let error = run(get_with(Some(400_000), &[]), server.record(path)).unwrap_err();
            assert!(error.contains("`max_bytes` is 400000"), "{error}");
        }
        assert!(run(get_with(Some(1_000_000), &[]), server.record("/large")).is_ok());
        assert!(run(get_with(Some(500_000), &[]), server.record("/chunked")).is_ok());
    }

    #[test]
    fn the_time_limit_ends_a_request_wherever_it_is() {
        let server = Server::start();
        for path in ["/silent", "/stall"] {
            let start = Instant::now();
            let error = run_within(get(), server.record(path), Duration::from_millis(200)).unwrap_err();
            assert!(error.contains("time limit"), "{error}");
            assert!(start.elapsed() < Duration::from_secs(60), "{path}: {:?}", start.elapsed());
        }
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for line in [&b"example.com"[..], b"ftp://h/", b"", b"http://\xFF/", b"http://", b"http://a b/"] {
            let error = run(get(), Record::line(line.to_vec())).unwrap_err();
            assert!(!error.contains("panicked"), "{error}");
        }
        let headers = [("no header".to_owned(), Template::parse("x").unwrap())];
        assert!(HttpGet::new(&Template::parse("{line}").unwrap(), None, None, &headers).is_err());
        let bad_value = get_with(None, &[("X-Unit", "{line}")]);
        assert!(run(bad_value, Record::line(b"http://127.0.0.1:9/\n".to_vec())).is_err());
    }
}
