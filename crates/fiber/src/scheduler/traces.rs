//! Backtraces of fibers that wait: each fiber takes its own.
//!
//! A suspended stack can be unwound from its own top alone, with the means that a program has. So a dump marks the fibers
//! and wakes each of them for no reason, which every wait allows for. The fiber sees the mark when it is back, takes its
//! backtrace, and its caller waits again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex as Lock;
use rustc_hash::{FxHashMap, FxHashSet};

use super::core::Core;
use super::core_ref::CoreRef;
use crate::backtrace::Backtrace;
use crate::park::deadline_after;
use crate::sync::{Event, Mutex};

/// The backtraces of fibers, by their numbers. Equal ones are shared.
pub(crate) type Found = FxHashMap<u64, Arc<Backtrace>>;

/// The time between two looks for fibers that have ended without an answer.
const LOOK: Duration = Duration::from_millis(5);

/// The place where fibers leave their backtraces.
#[derive(Default)]
pub(crate) struct Traces {
    /// Held by the one who asks.
    turn: Mutex<()>,
    question: Lock<Option<Question>>,
    is_answered: Event,
}

/// A question that not all fibers have answered yet.
#[derive(Default)]
struct Question {
    awaited: usize,
    found: Found,
    distinct: FxHashSet<Arc<Backtrace>>,
}

impl Traces {
    /// Asks the fibers for their backtraces, and waits for `limit` at most. Fibers whose worker does not come to them in
    /// that time are missing, and so are those whose stack has no room for it.
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
        // A fiber that ends looks for a question just before, and may miss this one.
        let ended = |fiber: &&CoreRef| fiber.joiner.has_ended() && fiber.take_ask_for_trace();
        while !self.is_answered.wait_timeout(LOOK) && end.is_none_or(|end| Instant::now() < end) {
            fibers.iter().filter(ended).for_each(|fiber| self.answer(fiber, None));
        }
        asked.end().map(|question| question.found).unwrap_or_default()
    }

    /// Leaves the answer of a fiber, unless it comes too late.
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
        // An answer to an earlier question may come as one to this, which then ends a fiber early.
        asked.awaited = asked.awaited.saturating_sub(1);
        if asked.awaited == 0 {
            // Under the lock that the asker takes at its end: the next question's wait does not see this.
            self.is_answered.set();
        }
    }
}

/// A question to fibers, which ends with the wait for their answers, however that ends.
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
