//! Makes the replays of a search: counts them, shows progress, and limits their total time.

use std::cell::Cell;
use std::time::{Duration, Instant};

use millstream_command::screen::out::complain;
use millstream_command::screen::text;
use millstream_flow::{ReplayError, Trace, WhatIf};
use rustix::stdio::stderr;
use rustix::termios::isatty;

use super::answer::Answer;

/// Progress is shown after this time. On a terminal, it is shown again each time the time has doubled.
const SLOW: Duration = Duration::from_secs(1);

/// The reason why there is no answer for a setting.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoReplay {
    /// The setting cannot be replayed.
    #[error(transparent)]
    Not(#[from] ReplayError),
    /// The time for the search is over.
    #[error("the search has made {replays} in {}, which is its limit: --within TIME gives it more", text::span(within.as_nanos() as u64))]
    Late { replays: String, within: Duration },
}

/// See the [module](self).
pub(super) struct Replays<'a> {
    pub(super) trace: &'a Trace,
    within: Duration,
    began: Instant,
    done: Cell<u64>,
    /// The time after which progress is shown next.
    tells_after: Cell<Duration>,
}

impl<'a> Replays<'a> {
    /// The replays of a trace, within a time limit that begins now.
    pub(super) fn of(trace: &'a Trace, within: Duration) -> Self {
        Replays { trace, within, began: Instant::now(), done: Cell::new(0), tells_after: Cell::new(SLOW) }
    }

    /// The answer to the changes.
    ///
    /// # Errors
    /// See [`NoReplay`].
    pub(super) fn to(&self, what_if: &WhatIf) -> Result<Answer, NoReplay> {
        self.counted(|| Answer::to(self.trace, what_if))
    }

    /// The answer to the changes; `None` if the changes exceed a limit of a setting.
    ///
    /// # Errors
    /// The time for the search is over.
    pub(super) fn tried(&self, what_if: &WhatIf) -> Result<Option<Answer>, NoReplay> {
        match self.to(what_if) {
            Ok(answer) => Ok(Some(answer)),
            Err(NoReplay::Not(_)) => Ok(None),
            Err(late) => Err(late),
        }
    }

    /// The answer of a replay with resampled units.
    ///
    /// # Errors
    /// See [`NoReplay`].
    pub(super) fn resampled(&self, what_if: &WhatIf, seed: u64) -> Result<Answer, NoReplay> {
        self.counted(|| self.trace.replay_resampled(what_if, seed).map(|replayed| Answer::of(self.trace, &replayed)))
    }

    fn counted(&self, replay: impl FnOnce() -> Result<Answer, ReplayError>) -> Result<Answer, NoReplay> {
        let elapsed = self.began.elapsed();
        if elapsed > self.within && self.done.get() > 0 {
            let replays = text::counted(self.done.get(), "replay");
            return Err(NoReplay::Late { replays, within: self.within });
        }
        if elapsed > self.tells_after.get() {
            self.tell(elapsed);
        }
        self.done.set(self.done.get() + 1);
        Ok(replay()?)
    }

    fn tell(&self, elapsed: Duration) {
        self.tells_after.set(if isatty(stderr()) { elapsed * 2 } else { Duration::MAX });
        let done = text::counted(self.done.get(), "replay");
        let (spent, within) = (text::span(elapsed.as_nanos() as u64), text::span(self.within.as_nanos() as u64));
        complain(format!("{done} in {spent}; the search goes on for at most {within}, and ^C ends it"));
    }
}
