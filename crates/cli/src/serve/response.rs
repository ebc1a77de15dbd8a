//! Responses, and their delivery to a peer that may be slow to read.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The peer must read the whole response within this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// The headers of every response. They forbid caching, guesses of the media type, display in a frame, and access by
/// pages of other servers.
const HEADERS: &str = "Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
                       Cross-Origin-Resource-Policy: same-origin\r\nReferrer-Policy: no-referrer\r\n";

/// The content policy of the page: it allows scripts, styles and connections of this server only.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                           base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The content policy of a response that is not the page.
const NO_CONTENT_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

/// A response whose whole body is in memory.
#[derive(Debug)]
pub(super) struct Response {
    status: u16,
    media_type: &'static str,
    policy: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Cow<'static, [u8]>,
}

impl Response {
    /// Creates a response with a body of this media type.
    pub(super) fn of(media_type: &'static str, body: impl Into<Cow<'static, [u8]>>) -> Self {
        Self { status: 200, media_type, policy: NO_CONTENT_POLICY, headers: Vec::new(), body: body.into() }
    }

    /// Creates the response with the page.
    pub(super) fn page(body: impl Into<Cow<'static, str>>) -> Self {
        let body = match body.into() {
            Cow::Borrowed(body) => Cow::Borrowed(body.as_bytes()),
            Cow::Owned(body) => Cow::Owned(body.into_bytes()),
        };
        Self { policy: PAGE_POLICY, ..Self::of("text/html; charset=utf-8", body) }
    }

    /// Creates a response with a line of text.
    pub(super) fn text(status: u16, line: impl Into<String>) -> Self {
        let body = (line.into() + "\n").into_bytes();
        Self { status, ..Self::of("text/plain; charset=utf-8", body) }
    }

    /// Creates a refusal, with its reason as a line of text.
    pub(super) fn refusal(status: u16, why: impl Into<String>) -> Self {
        Self::text(status, why)
    }

    /// Returns the response with another status.
    pub(super) fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Returns the response with one more header.
    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    #[cfg(test)]
    pub(super) fn status(&self) -> u16 {
        self.status
    }

    /// Writes the response. The response to a `HEAD` request is written without its body.
    ///
    /// # Errors
    /// Returns the errors of the stream, and `TimedOut` if the peer does not read in time.
    pub(super) fn write(&self, stream: &TcpStream, is_head: bool) -> io::Result<()> {
        let mut head = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nContent-Security-Policy: {}\r\n{HEADERS}",
            self.status,
            reason(self.status),
            self.media_type,
            self.body.len(),
            self.policy,
        );
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let mut bytes = (head + "\r\n").into_bytes();
        if !is_head {
            bytes.extend_from_slice(&self.body);
        }
        write_within(stream, &bytes, PATIENCE)
    }
}

/// Returns the head of a response whose body ends when the connection closes.
pub(super) fn head_of_stream(media_type: &str) -> String {
    let policy = NO_CONTENT_POLICY;
    format!("HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Security-Policy: {policy}\r\n{HEADERS}\r\n")
}

/// Writes all bytes within `time`.
///
/// # Errors
/// Returns the errors of the stream, and `TimedOut` when the time is over.
pub(super) fn write_within(mut stream: &TcpStream, mut bytes: &[u8], time: Duration) -> io::Result<()> {
    let deadline = Instant::now() + time;
    while !bytes.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Error",
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_peer_that_does_not_read_is_dropped() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _silent = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let began = Instant::now();
        let error = write_within(&stream, &vec![0; 64 << 20], Duration::from_millis(200)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
    }
}
