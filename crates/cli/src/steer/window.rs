//! The live trace of a run, sent in parts.
//!
//! The server stores one trace at a time. Clients that send requests at nearly the same time get the same trace. A
//! client that requests a further part of a trace that is no longer stored must begin again.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use millstream_flow::LiveTrace;

use super::protocol::{Answer, TracePart};

/// The size of a part in bytes.
const PART_BYTES: usize = 256 << 10;
/// A trace that is older than this is not sent to another client.
const FRESH: Duration = Duration::from_millis(200);
/// A trace is dropped after this time without a request for a part of it.
const KEPT: Duration = Duration::from_secs(10);

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Windows {
    live: Option<LiveTrace>,
    held: Option<Held>,
    /// The number of traces so far, which is the number of the newest trace.
    taken: u64,
}

#[derive(Debug)]
struct Held {
    number: u64,
    /// The number of the first unit that was admitted after the settings last changed.
    since: Option<u64>,
    taken: Instant,
    asked: Instant,
    bytes: Vec<u8>,
}

impl Windows {
    pub(super) fn of(live: Option<LiveTrace>) -> Self {
        Self { live, held: None, taken: 0 }
    }

    /// Leaves the units so far out of all later traces, because settings have changed.
    pub(super) fn restart(&self) {
        if let Some(live) = &self.live {
            live.restart();
        }
    }

    /// Drops the trace if none of its parts was requested for [`KEPT`].
    pub(super) fn tidy(&mut self, now: Instant) {
        self.held.take_if(|held| now > held.asked + KEPT);
    }

    /// The part that begins at byte `from` of the trace with this number, or of a new trace.
    pub(super) fn part(&mut self, number: Option<u64>, from: u64, now: Instant) -> Answer {
        let Some(live) = &self.live else { return Answer::error("this run keeps no trace") };
        live.begin();
        let since = live.first_unit();
        let is_fresh = |held: &Held| held.since == since && now <= held.taken + FRESH;
        if number.is_none() && !self.held.as_ref().is_some_and(is_fresh) {
            self.taken += 1;
            let bytes = live.window(live.most_bytes());
            self.held = Some(Held { number: self.taken, since, taken: now, asked: now, bytes });
        }
        let Some(held) = self.held.as_mut().filter(|held| number.is_none_or(|number| number == held.number)) else {
            return Answer::error("the trace has made room for a newer one: ask from its beginning");
        };
        held.asked = now;
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(held.bytes.len());
        let part = &held.bytes[from..(from + PART_BYTES).min(held.bytes.len())];
        let part = TracePart { number: held.number, total: held.bytes.len() as u64, bytes: STANDARD.encode(part) };
        Answer { ok: true, trace: Some(part), ..Answer::default() }
    }
}
