//! The stream of states to one client, as server-sent events.
//!
//! Per client, the server has at most one event in memory, in addition to the socket's buffer. A client that does not
//! read for [`PATIENCE`] is disconnected, and its browser connects again.

use std::fmt::Write as _;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::feed::{Feed, State};
use super::response::{self, Response, write_within};
use super::server::MAX_CONNECTIONS;

/// The maximum number of open streams. The other connections are left for metrics and the page.
const MAX_STREAMS: usize = MAX_CONNECTIONS - 8;
/// How long a client may leave an event unread.
const PATIENCE: Duration = Duration::from_secs(5);
/// After this time without a new state, the server sends a comment, which also detects a client that has disconnected.
const QUIET: Duration = Duration::from_secs(15);

/// The number of open streams.
#[derive(Debug, Default)]
pub(super) struct Streams(AtomicUsize);

/// Counts an open stream until it is dropped.
struct Entry<'a>(&'a AtomicUsize);

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        // Relaxed: the number publishes nothing.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Streams {
    /// Sends the feed to a client until the run is over or the client disconnects.
    ///
    /// # Errors
    /// Returns the errors of the connection.
    pub(super) fn send(&self, stream: &TcpStream, feed: &Feed, steerable: bool) -> io::Result<()> {
        // Relaxed: the number publishes nothing.
        let open = self.0.fetch_add(1, Ordering::Relaxed);
        let _entry = Entry(&self.0);
        if open >= MAX_STREAMS {
            let why = format!("{MAX_STREAMS} pages are open already");
            return Response::refusal(503, why).write(stream, false);
        }
        let mut event = response::head_of_stream("text/event-stream; charset=utf-8");
        let _ = write!(event, "event: flow\ndata: {}\n\n", feed.flow(steerable));
        let (mut seen, mut sent) = (0, State::new());
        loop {
            write_within(stream, event.as_bytes(), PATIENCE)?;
            event.clear();
            match feed.after(seen, QUIET) {
                None => event.push_str(":\n\n"),
                Some(news) => {
                    seen = news.version;
                    write_changes(&mut event, &sent, &news.state);
                    sent = news.state;
                    if news.is_last {
                        event.push_str("event: end\ndata: {}\n\n");
                        return write_within(stream, event.as_bytes(), PATIENCE);
                    }
                }
            }
        }
    }
}

/// Writes the members of a state that have changed.
fn write_changes(event: &mut String, before: &State, state: &State) {
    event.push_str("event: state\ndata: {");
    let mut first = true;
    for (name, value) in state {
        let same = |(other, known): &(&str, Arc<str>)| other == name && known == value;
        if !before.iter().any(same) {
            let comma = if std::mem::take(&mut first) { "" } else { "," };
            let _ = write!(event, "{comma}\"{name}\":{value}");
        }
    }
    event.push_str("}\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_members_that_changed_are_sent() {
        let before: State = vec![("a", "1".into()), ("b", "2".into())];
        let after: State = vec![("a", "1".into()), ("b", "3".into())];
        let mut event = String::new();
        write_changes(&mut event, &before, &after);
        assert_eq!(event, "event: state\ndata: {\"b\":3}\n\n");
    }
}
