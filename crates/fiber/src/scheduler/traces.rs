//! Backtraces of waiting fibers. Each fiber captures its own.
//!
//! A program's unwinder can unwind only the stack on which it runs, not the stack of a suspended fiber. A dump therefore sets a
//! flag in each fiber and wakes it. A fiber that resumes and finds the flag captures its backtrace. To its caller, this is a
//! spurious wake-up, so the caller waits again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex as Lock;
use rustc_hash::{FxHashMap, FxHashSet};

use super::core::Core;
use super::core_ref::CoreRef;
use crate::backtrace::Backtrace;
use crate::park::deadline_after;
use crate::sync::{Event, Mutex};

/// Backtraces, keyed by the numbers of their fibers. Equal backtraces are shared.
pub(crate) type Found = FxHashMap<u64, Arc<Backtrace>>;

/// The time between two checks for fibers that have ended without answering.
const LOOK: Duration = Duration::from_millis(5);

/// Collects the backtraces of fibers.
#[derive(Default)]
pub(crate) struct Traces {
    /// The requester holds this lock, so there is one request at a time.
    turn: Mutex<()>,
    question: Lock<Option<Question>>,
    is_answered: Event,
}

/// A request for backtraces that some of the fibers have not answered yet.
#[derive(Default)]
struct Question {
    awaited: usize,
    found: Found,
    distinct: FxHashSet<Arc<Backtrace>>,
}

impl Traces {
    /// Asks the fibers for their backtraces, and waits for at most `limit`. The result omits each fiber that its worker does
    /// not resume in that time, and each fiber whose stack has too little room.
    #[track_caller]
    pub(crate) fn ask(&self, fibers: &[CoreRef], limit: Duration) -> Found {
        if fibers.is_empty() {
            return Found::default();
        }
        let _turn = self.turn.lock();
        self.is_answered.reset();
        *self.question.lock() = Some(Question { awaited: fibers.len(), ..Question::default() });
        let asked = Asked { traces: self, fibers };
        fibers.iter().for_each(|fiber| fiber.ask_for_trace());
        let end = deadline_after(limit);
        // A fiber that is about to end may miss the request.
        let ended = |fiber: &&CoreRef| fiber.joiner.has_ended() && fiber.take_ask_for_trace();
        while !self.is_answered.wait_timeout(LOOK) && end.is_none_or(|end| Instant::now() < end) {
            fibers.iter().filter(ended).for_each(|fiber| self.answer(fiber, None));
        }
        asked.end().map(|question| question.found).unwrap_or_default()
    }

    /// Stores the answer of a fiber. Does nothing if the request has ended.
    pub(crate) fn answer(&self, fiber: &Core, backtrace: Option<Backtrace>) {
        let mut question = self.question.lock();
        let Some(asked) = &mut *question else { return };
        if let Some(backtrace) = backtrace {
            let shared = asked.distinct.get(&backtrace).cloned().unwrap_or_else(|| {
                let shared = Arc::new(backtrace);
                asked.distinct.insert(Arc::clone(&shared));
                shared
            });
            asked.found.insert(fiber.id, shared);
        }
        // A late answer to an earlier request is counted here as well. The current request may then end before its last answer.
        asked.awaited = asked.awaited.saturating_sub(1);
        if asked.awaited == 0 {
            // The event is set under the lock. The requester takes that lock to end its request, so a late answer cannot set
            // the event during the next request.
            self.is_answered.set();
        }
    }
}

/// An open request. It ends when this guard is dropped, even if the requester unwinds.
struct Asked<'a> {
    traces: &'a Traces,
    fibers: &'a [CoreRef],
}

impl Asked<'_> {
    fn end(&self) -> Option<Question> {
        let question = self.traces.question.lock().take();
        for fiber in self.fibers {
            fiber.take_ask_for_trace();
        }
        question
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
