//! The run's end of one client's connection: reads requests and writes answers, and never blocks.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::protocol::{self, Answer, REQUEST_BYTES};

/// A connection is closed after this time without a request.
const IDLE: Duration = Duration::from_secs(60);
/// A connection is closed after this time if a request is still incomplete or an answer is still unread.
const PATIENCE: Duration = Duration::from_secs(10);
/// The number of requests of one connection that are answered before other connections are served.
const ANSWERED_AT_ONCE: usize = 16;
/// The number of bytes that one read asks for.
const CHUNK: usize = 4096;

/// The reply to a line.
pub(super) struct Reply {
    /// The answer, with its line end.
    pub(super) line: Arc<[u8]>,
    /// Whether the line was a request. If not, the connection is closed, because the start of the next request is not
    /// known.
    pub(super) is_to_request: bool,
}

/// The state of a connection after it was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// The connection waits for the client.
    Waits,
    /// More requests have arrived already.
    HasMore,
    /// The connection must be closed.
    Over,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    /// The received bytes of one or several requests: at most [`REQUEST_BYTES`].
    received: Vec<u8>,
    /// The answer that is being sent, and the number of bytes sent so far. While an answer is being sent, no request is
    /// read.
    answer: Option<(Arc<[u8]>, usize)>,
    /// Whether the connection is closed after the current answer.
    ends: bool,
    /// The time at which the current step began. A step is the wait for a request, the receipt of a request, or the
    /// sending of an answer.
    since: Instant,
}

impl Connection {
    /// Serves a non-blocking stream.
    pub(super) fn new(stream: UnixStream, now: Instant) -> Self {
        Self { stream, received: Vec::new(), answer: None, ends: false, since: now }
    }

    pub(super) fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// The time at which the current step began.
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// The time at which the connection is closed, unless the current step ends earlier.
    pub(super) fn deadline(&self) -> Instant {
        let is_idle = self.received.is_empty() && self.answer.is_none();
        self.since + if is_idle { IDLE } else { PATIENCE }
    }

    pub(super) fn waits_for(&self) -> PollFlags {
        if self.answer.is_some() { PollFlags::OUT } else { PollFlags::IN }
    }

    /// Closes the connection. Sends the reason first, unless an answer is still being sent.
    pub(super) fn refuse(mut self, why: &Answer) {
        if self.answer.is_none() {
            let _ = self.stream.write(&protocol::line(why));
        }
    }

    /// Reads and answers requests without blocking, up to [`ANSWERED_AT_ONCE`].
    pub(super) fn turn(&mut self, now: Instant, answer: &mut dyn FnMut(&[u8]) -> Reply) -> Turn {
        for _ in 0..ANSWERED_AT_ONCE {
            match self.step(now, answer) {
                Ok(true) => {}
                Ok(false) if now >= self.deadline() => return Turn::Over,
                Ok(false) => return Turn::Waits,
                Err(_) => return Turn::Over,
            }
        }
        Turn::HasMore
    }

    /// Receives one request and answers it. Returns whether the whole answer was sent.
    fn step(&mut self, now: Instant, answer: &mut dyn FnMut(&[u8]) -> Reply) -> io::Result<bool> {
        if !self.send(now)? {
            return Ok(false);
        }
        let reply = match self.receive(now)? {
            Received::Part => return Ok(false),
            Received::Line(end) => {
                let answered = answer(&self.received[..end]);
                self.received.drain(..end);
                answered
            }
            Received::Wrong(why) => Reply { line: protocol::line(&Answer::error(why)).into(), is_to_request: false },
        };
        self.ends = !reply.is_to_request;
        self.answer = Some((reply.line, 0));
        self.since = now;
        self.send(now)
    }

    /// Sends the rest of the answer. Returns whether the whole answer has been sent.
    fn send(&mut self, now: Instant) -> io::Result<bool> {
        while let Some((line, sent)) = &mut self.answer {
            match without_waiting(self.stream.write(&line[*sent..]))? {
                None => return Ok(false),
                Some(0) => return Err(io::ErrorKind::WriteZero.into()),
                Some(bytes) => *sent += bytes,
            }
            if *sent == line.len() {
                self.answer = None;
                self.since = now;
                if self.ends {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
            }
        }
        Ok(true)
    }

    fn receive(&mut self, now: Instant) -> io::Result<Received> {
        let mut looked = 0;
        loop {
            if let Some(end) = self.received[looked..].iter().position(|byte| *byte == b'\n') {
                return Ok(Received::Line(looked + end + 1));
            }
            looked = self.received.len();
            let room = REQUEST_BYTES - looked;
            if room == 0 {
                return Ok(Received::Wrong(format!("a request is longer than {REQUEST_BYTES} bytes")));
            }
            let mut chunk = [0; CHUNK];
            match without_waiting(self.stream.read(&mut chunk[..CHUNK.min(room)]))? {
                None => return Ok(Received::Part),
                Some(0) if looked == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                Some(0) => return Ok(Received::Wrong("the stream ended within a line".to_owned())),
                Some(bytes) => {
                    if looked == 0 {
                        self.since = now;
                    }
                    self.received.extend_from_slice(&chunk[..bytes]);
                }
            }
        }
    }
}

/// The received part of a request.
enum Received {
    Part,
    /// A whole line, which ends before this offset.
    Line(usize),
    /// The bytes cannot become a line. The text states the reason.
    Wrong(String),
}

/// Turns the error of a call that would block into `None`.
fn without_waiting(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (UnixStream, Connection, Instant) {
        let (client, served) = UnixStream::pair().unwrap();
        served.set_nonblocking(true).unwrap();
        let now = Instant::now();
        (client, Connection::new(served, now), now)
    }

    fn echo(line: &[u8]) -> Reply {
        Reply { line: line.into(), is_to_request: line != b"no\n" }
    }

    #[test]
    fn requests_are_answered_in_order_however_they_come() {
        let (mut client, mut served, now) = pair();
        for part in ["o", "ne\ntw", "o\nthree\n"] {
            client.write_all(part.as_bytes()).unwrap();
            assert_eq!(served.turn(now, &mut echo), Turn::Waits);
        }
        let mut answers = [0; 14];
        client.read_exact(&mut answers).unwrap();
        assert_eq!(&answers, b"one\ntwo\nthree\n");
    }

    #[test]
    fn a_line_that_is_not_a_request_is_answered_and_ends_the_connection() {
        for (sent, expected) in
            [(b"no\nmore\n".to_vec(), "no\n"), (vec![b'x'; 65_536], "longer than"), (b"x".to_vec(), "within")]
        {
            let (mut client, mut served, now) = pair();
            client.write_all(&sent).unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
            while served.turn(now, &mut echo) != Turn::Over {}
            drop(served);
            let mut answer = String::new();
            let _ = client.read_to_string(&mut answer);
            assert!(answer.contains(expected) && answer.lines().count() == 1, "{answer}");
        }
    }

    #[test]
    fn a_request_that_does_not_end_and_an_answer_that_is_not_read_have_a_deadline() {
        let (mut client, mut served, start) = pair();
        assert_eq!(served.turn(start, &mut echo), Turn::Waits);
        assert_eq!(served.deadline(), start + IDLE);
        let begun = start + IDLE / 2;
        client.write_all(b"x").unwrap();
        assert_eq!(served.turn(begun, &mut echo), Turn::Waits);
        for second in 1..10 {
            client.write_all(b"x").unwrap();
            assert_eq!(served.turn(begun + Duration::from_secs(second), &mut echo), Turn::Waits);
        }
        assert_eq!(served.turn(begun + PATIENCE, &mut echo), Turn::Over);

        let (mut client, mut served, start) = pair();
        client.write_all(b"much\n").unwrap();
        let mut much = |_: &[u8]| Reply { line: vec![0; 64 << 20].into(), is_to_request: true };
        assert_eq!(served.turn(start, &mut much), Turn::Waits);
        client.write_all(b"much\n").unwrap();
        assert_eq!(served.turn(start, &mut much), Turn::Waits);
        assert!(served.received.is_empty(), "nothing is read while an answer waits");
        assert_eq!(served.turn(start + PATIENCE, &mut much), Turn::Over);
    }

    #[test]
    fn a_client_that_asks_without_end_gives_others_their_turn() {
        let (mut client, mut served, now) = pair();
        client.write_all(&b"x\n".repeat(100)).unwrap();
        let mut turns = 1;
        while served.turn(now, &mut echo) == Turn::HasMore {
            turns += 1;
        }
        assert!(turns > 4, "{turns}");
        let mut answers = [0; 200];
        client.read_exact(&mut answers).unwrap();
    }
}
