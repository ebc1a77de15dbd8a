//! A client of the run's HTTP server that sends any bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::support::{PATIENCE, Running};

/// The address in the line of standard error that begins with `what`.
pub(crate) fn address(running: &mut Running, what: &str) -> SocketAddr {
    let line = running.line_with(&format!("{what} at http://"));
    let url = line.split("http://").nth(1).expect("a URL");
    url.split('/').next().expect("an address").parse().unwrap_or_else(|error| panic!("{error}: {line}"))
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the run listens");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The parts of a response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The head in lower case, without the first line.
    pub(crate) headers: String,
    pub(crate) body: String,
}

/// Sends bytes and reads until the server closes the connection.
pub(crate) fn exchange(address: SocketAddr, bytes: &[u8]) -> Answer {
    let mut stream = connect(address);
    // The write may fail, because the server may refuse a request before it has read all of it.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).expect("UTF-8");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    let (status, headers) = head.split_once("\r\n").expect("headers");
    let status = status.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).expect("a status line");
    Answer { status: status.parse().unwrap(), headers: headers.to_lowercase(), body: body.to_owned() }
}

/// Sends a `GET` request. `headers` are further headers, each with its line end.
pub(crate) fn get(address: SocketAddr, path: &str, headers: &str) -> Answer {
    exchange(address, format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n").as_bytes())
}
