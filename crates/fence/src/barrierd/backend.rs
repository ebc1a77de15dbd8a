//! The daemon's page as a back-end.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::client::{Client, VirtualTime};
use crate::backend::{Backend, Tickets};
use crate::stand_in;

pub(crate) const BACKEND: Backend = Backend {
    name: "barrierd",
    about: "the page of barrierd tells when every processor has passed a barrier of its own accord; nothing on the light side",
    asymmetric: true,
    tickets: Tickets::ByPage,
    prepare,
    heavy,
};

/// At this age, a ticket begins to check whether the daemon still exists.
const PATIENCE: Duration = Duration::from_millis(20);
/// At this age, a ticket passes another fence, even if the daemon exists.
const LIMIT: Duration = Duration::from_millis(250);

struct Page {
    client: Client,
    /// The back-end that replaces the daemon when it has ended.
    stand_in: &'static Backend,
    /// Whether this process has noticed that the daemon has ended. From then on, the process behaves as if there were no
    /// daemon, and does not search for another one.
    gone: AtomicBool,
}

static PAGE: OnceLock<Page> = OnceLock::new();

fn prepare() -> Result<(), String> {
    if PAGE.get().is_some() {
        return Ok(());
    }
    let client = Client::connect().map_err(|refused| refused.to_string())?;
    let stand_in = stand_in::first().ok_or("no other fence could stand in for a daemon that ends")?;
    // If another thread was faster, this thread's connection is dropped.
    PAGE.get_or_init(|| Page { client, stand_in, gone: AtomicBool::new(false) });
    Ok(())
}

fn page() -> &'static Page {
    PAGE.get().expect("a back-end is prepared before it is used")
}

fn heavy() -> Result<(), String> {
    let mark = Mark::draw();
    while !mark.look()? {
        mark.wait(None);
    }
    Ok(())
}

/// A moment in virtual time, and the clock time at which it was drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    since: VirtualTime,
    drawn: Instant,
}

impl Mark {
    pub(crate) fn draw() -> Mark {
        let Page { client, gone, .. } = page();
        let since = client.now();
        if !gone.load(Ordering::Relaxed) {
            client.ask_in_time(since);
        }
        Mark { since, drawn: Instant::now() }
    }

    /// Returns whether all processors have passed. If the page does not show this in time, passes the stand-in's fence.
    pub(crate) fn is_done(self) -> bool {
        self.look().unwrap_or(false)
    }

    /// Like [`is_done`](Self::is_done), but returns an error if the stand-in's fence is refused.
    fn look(self) -> Result<bool, String> {
        let Page { client, stand_in, gone } = page();
        if client.has_passed(self.since) {
            return Ok(true);
        }
        if !gone.load(Ordering::Relaxed) {
            let waited = self.drawn.elapsed();
            if waited < PATIENCE {
                client.ask_in_time(self.since);
                return Ok(false);
            }
            if client.is_alive() {
                if waited < LIMIT {
                    client.ask(self.since);
                    return Ok(false);
                }
            } else {
                gone.store(true, Ordering::Relaxed);
            }
        }
        stand_in::pass(stand_in).map(|()| true)
    }

    /// Returns whether the page will show that all processors have passed, so that no stand-in is needed.
    pub(crate) fn comes_by_itself() -> bool {
        !page().gone.load(Ordering::Relaxed)
    }

    /// Sleeps until all processors may have passed, at most until the deadline.
    pub(crate) fn wait(self, deadline: Option<Instant>) {
        let look = Instant::now() + PATIENCE;
        let Page { client, gone, .. } = page();
        if client.wait(self.since, deadline.map_or(look, |deadline| deadline.min(look))).is_err() {
            gone.store(true, Ordering::Relaxed);
        }
    }
}
