//! Halts a run of its own accord: because too many units have failed for good, or because standard output cannot be
//! written.
//!
//! A run that halts admits no more units and starts no more work. Running work continues to its end, unless the policy
//! says `now`. Waiting units stay in the flow. The thread that detects the reason stops admission and sets the stages'
//! flag ([`Halt::word`]) at once. The main loop abandons the flow with its waiting units as soon as no stage is
//! working.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};

use millstream_command::screen::text;
use millstream_flow::Control;
use millstream_runner::file::HaltPolicy;
use millstream_runner::printer::Trouble;

use super::watch::Event;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Halt {
    policy: Option<HaltPolicy>,
    /// The number of units that have failed for good. Relaxed: only the count matters.
    dead: AtomicU64,
    word: Arc<AtomicBool>,
    run: OnceLock<(Control, Sender<Event>)>,
}

/// The reason why a run has halted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    /// Too many units have failed for good.
    Failures {
        /// The number of units that have failed for good.
        dead: u64,
        /// Whether running work was ended.
        now: bool,
    },
    /// Standard output cannot be written.
    Output(Trouble),
}

impl Halt {
    pub(super) fn new(policy: Option<HaltPolicy>) -> Self {
        Self { policy, dead: AtomicU64::new(0), word: Arc::default(), run: OnceLock::new() }
    }

    /// The flag that tells stages to start no more work. Relaxed: the flag publishes no other data.
    pub(super) fn word(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.word)
    }

    /// Sets the run that [`Halt::halt`] halts. Called before the run starts.
    pub(super) fn attach(&self, control: Control, events: Sender<Event>) {
        let first = self.run.set((control, events)).is_ok();
        assert!(first, "a run has one halt");
    }

    /// Notes that a unit has failed for good.
    pub(super) fn dies(&self) {
        let Some(policy) = self.policy else { return };
        let dead = self.dead.fetch_add(1, Ordering::Relaxed) + 1;
        let Some((control, _)) = self.run.get() else { return };
        let ended = || {
            let now = control.snapshot();
            now.retired + now.dead_lettered
        };
        if policy.is_reached(dead, ended) {
            self.halt(Reason::Failures { dead, now: policy.now });
        }
    }

    /// Halts the run, unless it has halted already.
    pub(super) fn halt(&self, reason: Reason) {
        let Some((control, events)) = self.run.get() else { return };
        if self.word.swap(true, Ordering::Relaxed) {
            return;
        }
        control.stop();
        if matches!(reason, Reason::Failures { now: true, .. }) {
            control.abandon();
        }
        let _ = events.send(Event::Halted(reason));
    }
}

impl Reason {
    /// The reason as one line of text.
    pub(super) fn message(&self) -> String {
        match self {
            Self::Failures { dead, now } => {
                let what =
                    if *now { "running work is ended" } else { "running work goes on to its end, and nothing starts" };
                format!("halted after {}: {what}", text::counted(*dead, "failure"))
            }
            Self::Output(Trouble::ReaderGone) => {
                "halted: standard output has no reader any more; nothing starts".to_owned()
            }
            Self::Output(Trouble::Failed(reason)) => {
                format!("halted: cannot write to standard output: {reason}; nothing starts")
            }
        }
    }
}
