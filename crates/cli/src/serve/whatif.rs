//! The what-if of a run's page: replays the run's units under other settings.
//!
//! A question changes nothing and so needs no token. Instead, the cost of the answers is bounded. A single thread
//! answers one question after another, the queue is short, and each client has at most one question in it. During a
//! run, a replay takes about [`REPLAY`]. It replays a window of the newest units, as many as this time allows. After an
//! initial second of processor time, all replays together get a quarter of a core. For a finished run, a replay uses
//! all units of the trace, or a sample if the trace is long.

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use millstream_flow::{LiveTrace, Trace, WhatIf};
use serde::Deserialize;
use serde_json::{Value, json};

use super::request::Request;
use super::response::Response;
use super::steering::is_same_origin;
use crate::whatif::{Answer, Doubt, changes, usable};

/// The time of one replay. An answer takes two replays, or three for a new window.
const REPLAY: Duration = Duration::from_millis(70);
/// The number of visits of units to stages in the first replay, before this machine's speed is known.
const VISITS: f64 = 20_000.0;
/// The range of the estimated number of visits that one replay can make within [`REPLAY`]. An estimate outside the
/// range is replaced by the nearer end of the range.
const VISITS_RANGE: (f64, f64) = (2_000.0, 200_000.0);
/// The assumed number of bytes per visit in the first replay, before the real number is known.
const VISIT_BYTES: f64 = 10.0;
/// The minimum number of units in a window.
const FEWEST_UNITS: u64 = 20;
/// The maximum age of a window of units.
const FRESH: Duration = Duration::from_secs(3);
/// The maximum number of waiting questions. The question that is being answered does not count.
const MAX_WAITING: usize = 8;
/// After this time, a client is told that its question will not be answered.
const PATIENCE: Duration = Duration::from_secs(10);
/// The thread's share of a core in the long run.
const SHARE: f64 = 0.25;
/// The processor time that the thread may use at once.
const CREDIT: Duration = Duration::from_secs(1);
/// The maximum length of a client's name.
const MAX_CLIENT_BYTES: usize = 64;
/// The maximum number of settings in a question.
const MAX_SETTINGS: usize = 64;
/// The maximum length of a setting.
const MAX_SETTING_BYTES: usize = 512;
/// The maximum number of answers that are remembered for one window.
const MAX_REMEMBERED: usize = 64;

/// The what-if of a page; see the [module](self). Its thread ends when this value is dropped.
#[derive(Debug)]
pub(super) struct WhatIfs {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Desk {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: VecDeque<Question>,
    over: bool,
}

#[derive(Debug)]
struct Question {
    client: String,
    settings: Vec<String>,
    answer: SyncSender<Value>,
}

/// The body of a request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    /// A name chosen by the client. A newer question of the same client replaces a waiting question.
    client: String,
    settings: Vec<String>,
}

impl WhatIfs {
    /// Starts the thread that answers questions from this trace.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(super) fn start(live: LiveTrace) -> std::io::Result<Self> {
        Self::answer_from(Replays::of(live))
    }

    /// Starts the thread that answers questions from the trace of a finished run. `as_it_was` is the result of a replay
    /// with the run's own settings.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(super) fn of(trace: Trace, as_it_was: Answer) -> std::io::Result<Self> {
        Self::answer_from(Replays::of_whole(trace, as_it_was))
    }

    fn answer_from(replays: Replays) -> std::io::Result<Self> {
        let desk = Arc::<Desk>::default();
        let theirs = Arc::clone(&desk);
        let thread = thread::Builder::new().name("what-if".to_owned()).spawn(move || serve(&theirs, replays))?;
        Ok(Self { desk, thread: Some(thread) })
    }

    /// Answers a request, perhaps after waiting for earlier questions.
    pub(super) fn answer(&self, request: &Request) -> Response {
        if !is_same_origin(request) {
            return Response::refusal(
                403,
                "only this server's own page may ask, but this request comes from another page",
            );
        }
        let media_type = request.header("content-type").unwrap_or_default();
        if media_type.split(';').next().is_none_or(|kind| !kind.trim().eq_ignore_ascii_case("application/json")) {
            return Response::refusal(415, "expected a body of type application/json");
        }
        let Body { client, settings } = match serde_json::from_slice(&request.body) {
            Ok(body) => body,
            Err(error) => return Response::refusal(400, format!("not understood: {error}")),
        };
        if client.len() > MAX_CLIENT_BYTES
            || settings.len() > MAX_SETTINGS
            || settings.iter().any(|setting| setting.len() > MAX_SETTING_BYTES)
        {
            let most = format!(
                "a client's name has at most {MAX_CLIENT_BYTES} bytes, and a question {MAX_SETTINGS} settings of \
                 {MAX_SETTING_BYTES} bytes"
            );
            return Response::refusal(413, most);
        }
        let (answer, answered) = sync_channel(1);
        if !self.desk.put(Question { client, settings, answer }) {
            let refusal = Response::refusal(503, format!("{MAX_WAITING} questions wait already; ask again"));
            return refusal.header("Retry-After", "1");
        }
        match answered.recv_timeout(PATIENCE) {
            Ok(answer) => Response::of("application/json", answer.to_string().into_bytes()),
            Err(RecvTimeoutError::Timeout) => Response::refusal(503, "others asked first; ask again"),
            Err(RecvTimeoutError::Disconnected) => {
                Response::refusal(409, "a newer question of this client replaced this one, or the run is over")
            }
        }
    }
}

impl Drop for WhatIfs {
    fn drop(&mut self) {
        let mut inner = self.desk.inner();
        inner.over = true;
        inner.waiting.clear();
        drop(inner);
        self.desk.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Desk {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a question. If the same client has a question in the queue, the new question replaces it. Returns whether
    /// there was room.
    fn put(&self, question: Question) -> bool {
        let mut inner = self.inner();
        if inner.over {
            return false;
        }
        let is_full = inner.waiting.len() == MAX_WAITING;
        match inner.waiting.iter_mut().find(|waiting| waiting.client == question.client) {
            Some(older) => *older = question,
            None if is_full => return false,
            None => inner.waiting.push_back(question),
        }
        self.changed.notify_all();
        true
    }

    /// Waits for the next question and removes it from the queue. Returns `None` once [`WhatIfs`] is dropped.
    fn take(&self) -> Option<Question> {
        let waits = |inner: &mut Inner| inner.waiting.is_empty() && !inner.over;
        let mut inner = self.changed.wait_while(self.inner(), waits).unwrap_or_else(PoisonError::into_inner);
        inner.waiting.pop_front().filter(|_| !inner.over)
    }

    /// Waits until `time` has passed or [`WhatIfs`] is dropped.
    fn pause(&self, time: Duration) {
        let goes_on = |inner: &mut Inner| !inner.over;
        drop(self.changed.wait_timeout_while(self.inner(), time, goes_on).unwrap_or_else(PoisonError::into_inner));
    }
}

fn serve(desk: &Desk, mut replays: Replays) {
    let mut purse = Purse::full(Instant::now());
    while let Some(Question { settings, answer, .. }) = desk.take() {
        let began = Instant::now();
        // An error means that the client no longer waits, and is ignored.
        let _ = answer.try_send(replays.answer(&settings, began));
        if replays.live.is_some() {
            desk.pause(purse.pay(began, Instant::now()));
        }
    }
}

/// The processor time that the thread may use.
#[derive(Debug)]
struct Purse {
    credit_s: f64,
    at: Instant,
}

impl Purse {
    fn full(now: Instant) -> Self {
        Self { credit_s: CREDIT.as_secs_f64(), at: now }
    }

    /// Pays for the time since `began`. Returns how long the next question has to wait.
    fn pay(&mut self, began: Instant, now: Instant) -> Duration {
        let earned = now.saturating_duration_since(self.at).as_secs_f64() * SHARE;
        self.credit_s = (self.credit_s + earned).min(CREDIT.as_secs_f64());
        self.credit_s -= now.saturating_duration_since(began).as_secs_f64();
        self.at = now;
        Duration::from_secs_f64((-self.credit_s / SHARE).max(0.0))
    }
}

/// The units on which answers are based, and the speed of this machine's replays.
#[derive(Debug)]
struct Replays {
    /// The trace of the live run; `None` for a finished run, whose whole trace is the only window.
    live: Option<LiveTrace>,
    /// The number of visits that are replayed within [`REPLAY`].
    visits: f64,
    visit_bytes: f64,
    window: Option<Window>,
}

#[derive(Debug)]
struct Window {
    taken: Instant,
    /// The number of the first unit that was admitted after the settings last changed.
    since: Option<u64>,
    trace: Trace,
    before: Answer,
    miss: f64,
    contradiction: Option<String>,
    remembered: HashMap<Vec<String>, Value>,
}

impl Replays {
    fn of(live: LiveTrace) -> Self {
        Self { live: Some(live), visits: VISITS, visit_bytes: VISIT_BYTES, window: None }
    }

    fn of_whole(trace: Trace, as_it_was: Answer) -> Self {
        let window = Some(Window::of(trace, as_it_was, None, Instant::now()));
        Self { live: None, visits: VISITS, visit_bytes: VISIT_BYTES, window }
    }

    fn answer(&mut self, settings: &[String], now: Instant) -> Value {
        self.try_answer(settings, now).unwrap_or_else(|error| json!({ "ok": false, "error": error }))
    }

    fn try_answer(&mut self, settings: &[String], now: Instant) -> Result<Value, String> {
        if let Some(live) = self.live.clone() {
            let since = live.first_unit();
            let is_fresh = |window: &Window| window.since == since && now < window.taken + FRESH;
            if !self.window.as_ref().is_some_and(is_fresh) {
                self.window = None;
                self.window = Some(self.take_window(&live, since, now)?);
            }
        }
        let Some(window) = &mut self.window else { return Err("there are no units".to_owned()) };
        if let Some(answer) = window.remembered.get(settings) {
            return Ok(answer.clone());
        }
        let what_if = changes(settings, &window.trace).map_err(|error| error.to_string())?;
        let after = Answer::to(&window.trace, &what_if).map_err(|error| error.to_string())?;
        let units = if window.trace.is_live() { window.trace.departed() } else { window.trace.units() as u64 };
        let answer = json!({
            "ok": true,
            "units": units,
            // The number of units that the replayed units represent.
            "of": (units as f64 * window.trace.weight()).round() as u64,
            "waiting": window.trace.waiting(),
            "miss": window.miss,
            "contradiction": window.contradiction,
            "before": window.before,
            "after": after,
            "took_ms": now.elapsed().as_millis() as u64,
        });
        if window.remembered.len() < MAX_REMEMBERED {
            window.remembered.insert(settings.to_vec(), answer.clone());
        }
        Ok(answer)
    }

    /// A new window of the newest units: as many as can be replayed in time.
    fn take_window(&mut self, live: &LiveTrace, since: Option<u64>, now: Instant) -> Result<Window, String> {
        let newest = |bytes: usize| -> Result<(Vec<u8>, Trace), String> {
            let bytes = live.window(bytes);
            let trace = Trace::read(&*bytes).map_err(|error| error.to_string())?;
            Ok((bytes, trace))
        };
        let (mut bytes, mut trace) = newest((self.visits * self.visit_bytes) as usize)?;
        if usable(&trace) < FEWEST_UNITS {
            // If queues are long, the newest units have not left the flow yet. The window must be large enough to
            // contain units that have left.
            (bytes, trace) = newest(live.most_bytes())?;
        }
        if usable(&trace) < FEWEST_UNITS {
            let units = usable(&trace);
            return Err(format!("{units} of the {FEWEST_UNITS} units that an answer needs have left so far"));
        }
        let visits = trace.visits() as f64;
        self.visit_bytes = (bytes.len() as f64 / visits).clamp(1.0, 1000.0);
        // The trace computes this loss only once. Without this call, the first replay would compute it, and the time
        // measured below would be too long.
        let _ = trace.crowding_loss();
        let began = Instant::now();
        let before = Answer::to(&trace, &WhatIf::default()).map_err(|error| error.to_string())?;
        let in_time = visits * REPLAY.as_secs_f64() / began.elapsed().as_secs_f64().max(1e-6);
        // The estimate moves only halfway, because other work may have delayed this replay.
        self.visits = ((self.visits + in_time) / 2.0).clamp(VISITS_RANGE.0, VISITS_RANGE.1);
        Ok(Window::of(trace, before, since, now))
    }
}

impl Window {
    fn of(trace: Trace, before: Answer, since: Option<u64>, taken: Instant) -> Self {
        let doubt = Doubt::of(&trace, &before);
        let (miss, contradiction) = (doubt.miss(), doubt.contradiction);
        Window { taken, since, trace, before, miss, contradiction, remembered: HashMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(client: &str) -> (Question, std::sync::mpsc::Receiver<Value>) {
        let (answer, answered) = sync_channel(1);
        (Question { client: client.to_owned(), settings: Vec::new(), answer }, answered)
    }

    #[test]
    fn a_client_has_one_question_in_line_and_the_line_has_an_end() {
        let desk = Desk::default();
        let (first, replaced) = question("a");
        let (second, _answered) = question("a");
        assert!(desk.put(first) && desk.put(second));
        assert!(replaced.recv().is_err(), "its sender is gone");
        let mut kept = Vec::new();
        for client in 1..MAX_WAITING {
            let (question, answered) = question(&client.to_string());
            assert!(desk.put(question));
            kept.push(answered);
        }
        assert!(!desk.put(question("z").0));
        assert_eq!(desk.take().unwrap().client, "a");
        assert!(desk.put(question("z").0));
    }

    #[test]
    fn many_questions_get_a_share_of_a_core() {
        let start = Instant::now();
        let mut purse = Purse::full(start);
        let (mut now, mut used) = (start, Duration::ZERO);
        while now < start + Duration::from_secs(100) {
            let began = now;
            now += Duration::from_millis(200);
            used += Duration::from_millis(200);
            now += purse.pay(began, now);
        }
        let share = used.as_secs_f64() / 100.0;
        assert!((0.2..0.3).contains(&share), "{share}");
        let mut purse = Purse::full(start);
        let first = start + Duration::from_millis(300);
        assert_eq!(purse.pay(start, first), Duration::ZERO, "a client that asks now and then does not wait");
    }
}
