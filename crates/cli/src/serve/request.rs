//! Reads a request from an untrusted peer, within limits of size and time. An ambiguous request is refused.
//!
//! A connection carries one request. Bytes after this request are never parsed as another request, so request smuggling
//! is impossible.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::response::Response;

/// The maximum size of the request line and headers.
pub(super) const MAX_HEAD_BYTES: usize = 16 << 10;
/// The maximum number of headers.
pub(super) const MAX_HEADERS: usize = 64;
/// The maximum size of a body.
pub(super) const MAX_BODY_BYTES: usize = 64 << 10;
/// The whole request must arrive within this time.
const PATIENCE: Duration = Duration::from_secs(5);
/// The number of bytes that one read asks for.
const CHUNK: usize = 4096;

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    Post,
}

/// A request for a resource of this server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: Method,
    /// The path, without the query.
    pub(super) path: String,
    pub(super) host: String,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// Returns the value of a header that occurs exactly once.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let value = values.next()?.1.as_str();
        values.next().is_none().then_some(value)
    }

    /// Returns whether a header occurs at all.
    pub(super) fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
    }
}

/// The reason why a connection ends without a request.
#[derive(Debug)]
pub(super) enum NoRequest {
    /// The request is refused with this response.
    Refused(Response),
    /// The peer has disconnected, or has not sent its request in time.
    Gone,
}

impl From<io::Error> for NoRequest {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// Reads the request of a connection.
pub(super) fn read(stream: &TcpStream) -> Result<Request, NoRequest> {
    let deadline = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    let (mut request, head, body) = loop {
        if let Some(parsed) = parse(&bytes).map_err(NoRequest::Refused)? {
            break parsed;
        }
        if bytes.len() >= MAX_HEAD_BYTES {
            let why = format!("the request line and headers are longer than {MAX_HEAD_BYTES} bytes");
            return Err(NoRequest::Refused(Response::refusal(431, why)));
        }
        let room = MAX_HEAD_BYTES - bytes.len();
        more(stream, &mut bytes, room, deadline)?;
    };
    bytes.drain(..head);
    while bytes.len() < body {
        let room = body - bytes.len();
        more(stream, &mut bytes, room, deadline)?;
    }
    bytes.truncate(body);
    request.body = bytes;
    Ok(request)
}

/// Reads at most `most` more bytes.
fn more(mut stream: &TcpStream, bytes: &mut Vec<u8>, most: usize, deadline: Instant) -> Result<(), NoRequest> {
    let late = || {
        let why = format!("the request did not arrive within {} s", PATIENCE.as_secs());
        NoRequest::Refused(Response::refusal(408, why))
    };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(if bytes.is_empty() { NoRequest::Gone } else { late() });
    }
    stream.set_read_timeout(Some(left))?;
    let mut chunk = [0; CHUNK];
    match stream.read(&mut chunk[..CHUNK.min(most)]) {
        Ok(0) => Err(NoRequest::Gone),
        Ok(read) => {
            bytes.extend_from_slice(&chunk[..read]);
            Ok(())
        }
        // The caller then checks the deadline.
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Parses the head. Returns the request without its body, the length of the head and the length of the body. Returns
/// `None` if the head is incomplete.
fn parse(bytes: &[u8]) -> Result<Option<(Request, usize, usize)>, Response> {
    let bad = |why: String| Response::refusal(400, why);
    let mut slots = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut slots);
    let head = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(Response::refusal(431, format!("there are more than {MAX_HEADERS} headers")));
        }
        Err(error) => return Err(bad(format!("this is not an HTTP request: {error}"))),
    };
    let method = match parsed.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        Some("POST") => Method::Post,
        _ => return Err(Response::refusal(405, "expected GET, HEAD or POST").header("Allow", "GET, HEAD, POST")),
    };
    let target = parsed.path.filter(|target| target.starts_with('/'));
    let target = target.ok_or_else(|| bad("expected a path as the target of the request".to_owned()))?;
    let path = target.split(['?', '#']).next().unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    for header in parsed.headers {
        let value = std::str::from_utf8(header.value)
            .map_err(|_| bad(format!("the header {} is not UTF-8", header.name)))?
            .trim();
        headers.push((header.name.to_owned(), value.to_owned()));
    }
    let mut request = Request { method, path, host: String::new(), headers, body: Vec::new() };
    request.host = request.header("host").ok_or_else(|| bad("expected one Host header".to_owned()))?.to_owned();
    if request.has("transfer-encoding") {
        return Err(bad("a body needs a Content-Length and no Transfer-Encoding".to_owned()));
    }
    let body = match (request.has("content-length"), request.header("content-length")) {
        (false, _) => 0,
        (true, Some(length)) if !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit()) => {
            let length = length.parse().ok().filter(|length| *length <= MAX_BODY_BYTES);
            length.ok_or_else(|| Response::refusal(413, format!("the body is longer than {MAX_BODY_BYTES} bytes")))?
        }
        (true, _) => return Err(bad("expected one Content-Length, a number of bytes".to_owned())),
    };
    if body > 0 && method != Method::Post {
        return Err(bad("only a POST may have a body".to_owned()));
    }
    Ok(Some((request, head, body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(request: &str) -> u16 {
        match parse(request.as_bytes()) {
            Ok(Some(_)) => 200,
            Ok(None) => 0,
            Err(response) => response.status(),
        }
    }

    #[test]
    fn a_request_has_one_meaning_or_is_refused() {
        for (head, expected) in [
            ("GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n", 200),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n", 200),
            ("GET / HTTP/1.1\r\nHost: a\r\n", 0),
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\n b: c\r\n\r\n", 400),
            ("GET / HTTP/9.1\r\nHost: a\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n", 400),
            ("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 405),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x3\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n", 413),
            ("\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        ] {
            assert_eq!(status(head), expected, "{head:?}");
        }
        let crowd = "x: y\r\n".repeat(MAX_HEADERS);
        assert_eq!(status(&format!("GET / HTTP/1.1\r\nHost: a\r\n{crowd}\r\n")), 431);
    }

    #[test]
    fn the_query_is_not_part_of_the_path() {
        let (request, head, body) = parse(b"GET /metrics?a=/b HTTP/1.1\r\nHost: a \r\n\r\nmore").unwrap().unwrap();
        assert_eq!((request.path.as_str(), request.host.as_str()), ("/metrics", "a"));
        assert_eq!((head, body), (40, 0));
    }
}
