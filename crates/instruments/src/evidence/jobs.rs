//! Running a command again and again, several runs at a time, without a bias towards fast runs.
//!
//! Fast runs end first. If runs counted in the order in which they end, an early decision would have seen only the fast
//! half of the runs that were started. If a success is a fast run, these would include too many successes. So outcomes
//! are reported in the order in which the runs were **started**. The observed sequence is then the same as that of runs
//! made one after another. The moment of the decision depends only on the outcomes before it, as the guarantee of a
//! confidence sequence requires. Runs that are still under way at that moment are stopped, and their outcomes are not
//! used.
//!
//! For the same reason, when the time runs out or at the first interrupt, the command waits for the runs that are under
//! way. A run that happens to be under way at a given moment tends to be longer than most. Only a second interrupt
//! drops these runs. In that case, [`End::Abandoned`] tells the caller not to save the observations as evidence.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use millstream_command::program::live;
use millstream_command::signals;
use signal_hook::iterator::Signals;

use super::error::{EvidenceError, UNDECIDED};
use super::program::{Program, Run};

/// The maximum number of runs, for each job, that may be started after the oldest run still under way.
const AHEAD: u64 = 16;

/// While no run ends, progress is shown and interrupts are checked at this interval.
const LOOK: Duration = Duration::from_millis(100);

/// The reason why there were no more runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The receiver of the outcomes does not need any more.
    Enough,
    /// The allowed number of runs was reached.
    Limit,
    /// The time ran out, and the runs that had been started have ended.
    Time,
    /// Interrupted once; the runs that had been started have ended.
    Interrupted,
    /// Interrupted twice; the runs under way were stopped, and their outcomes are missing.
    Abandoned,
}

/// The limits on the runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    /// The maximum number of runs.
    pub(super) runs: u64,
    /// The moment from which no more runs are started.
    pub(super) until: Option<Instant>,
    /// The number of runs at a time.
    pub(super) jobs: usize,
    /// The number of the first run.
    pub(super) first: u64,
}

/// A count of the signals that ask the command to end.
#[derive(Debug, Clone)]
pub(super) struct Interrupts {
    count: Arc<AtomicUsize>,
    /// Whether outcomes are no longer wanted.
    unwanted: Arc<AtomicBool>,
}

impl Interrupts {
    /// Returns a count of the signals from now on, for the rest of the process.
    pub(super) fn count() -> Result<Self, EvidenceError> {
        let interrupts = Self::none();
        interrupts.listen()?;
        Ok(interrupts)
    }

    /// Counts the signals of the process, too, from now on until the process ends.
    pub(super) fn listen(&self) -> Result<(), EvidenceError> {
        let heard = self.clone();
        let listen = || -> io::Result<()> {
            let mut signals = Signals::new(signals::ending())?;
            thread::Builder::new().name("signals".to_owned()).spawn(move || {
                for _ in signals.forever() {
                    if heard.unwanted.load(Ordering::Relaxed) {
                        // Only the clean-up and the answer remain. Either may block, so the time for both is limited.
                        signals::end_soon(UNDECIDED, &AtomicBool::new(false), live::end);
                    }
                    heard.note();
                }
            })?;
            Ok(())
        };
        listen().map_err(EvidenceError::system("listening for interrupts"))
    }

    /// Counts one interrupt.
    pub(super) fn note(&self) {
        if self.count.fetch_add(1, Ordering::Relaxed) > 0 {
            self.unwanted.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether there was an interrupt.
    pub(super) fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Returns a count of zero, which ignores signals until [`listen`](Self::listen) is called.
    pub(super) fn none() -> Self {
        Self { count: Arc::new(AtomicUsize::new(0)), unwanted: Arc::new(AtomicBool::new(false)) }
    }

    /// Returns the flag that is set once the outcomes of runs are no longer wanted.
    pub(super) fn unwanted(&self) -> &AtomicBool {
        &self.unwanted
    }

    /// Returns the reason why no more runs are started, if there is one.
    pub(super) fn stop(&self, allowance: &Allowance, started: u64) -> Option<End> {
        match self.count.load(Ordering::Relaxed) {
            0 if started >= allowance.runs => Some(End::Limit),
            0 => allowance.until.filter(|until| Instant::now() >= *until).map(|_| End::Time),
            1 => Some(End::Interrupted),
            _ => Some(End::Abandoned),
        }
    }
}

/// Runs the program and passes the outcome of each run to `take`, in the order of the starts, until `take` returns
/// `Break`. `look` is called from time to time.
pub(super) fn run(
    program: &Program,
    allowance: &Allowance,
    interrupts: &Interrupts,
    mut take: impl FnMut(Run) -> Result<ControlFlow<()>, EvidenceError>,
    mut look: impl FnMut(),
) -> Result<End, EvidenceError> {
    if allowance.jobs > 1 {
        return side_by_side(program, allowance, interrupts, take, look);
    }
    let runner = program.runner()?;
    for started in 0.. {
        if let Some(end) = interrupts.stop(allowance, started) {
            return Ok(end);
        }
        match runner.run(allowance.first + started, &interrupts.unwanted)? {
            Some(run) => {
                if take(run)?.is_break() {
                    return Ok(End::Enough);
                }
            }
            None => return Ok(End::Abandoned),
        }
        look();
    }
    Ok(End::Limit)
}

/// The state of several jobs.
struct Turn {
    /// The number of runs that were started.
    started: u64,
    /// The number of outcomes that were reported.
    taken: u64,
    /// The reason why no more runs are started.
    end: Option<End>,
}

type Outcome = (u64, Result<Option<Run>, EvidenceError>);

fn side_by_side(
    program: &Program,
    allowance: &Allowance,
    interrupts: &Interrupts,
    mut take: impl FnMut(Run) -> Result<ControlFlow<()>, EvidenceError>,
    mut look: impl FnMut(),
) -> Result<End, EvidenceError> {
    let turn = Mutex::new(Turn { started: 0, taken: 0, end: None });
    let moved = Condvar::new();
    let lock = || turn.lock().unwrap_or_else(PoisonError::into_inner);
    let (send, outcomes) = channel();
    let runners = (0..allowance.jobs).map(|_| program.runner()).collect::<Result<Vec<_>, _>>()?;
    thread::scope(|scope| {
        for runner in &runners {
            let send: Sender<Outcome> = send.clone();
            scope.spawn(|| {
                let send = send;
                while let Some(number) = next(lock(), &moved, allowance, interrupts) {
                    if send.send((number, runner.run(allowance.first + number, &interrupts.unwanted))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        let mut early: BTreeMap<u64, Result<Option<Run>, EvidenceError>> = BTreeMap::new();
        let mut result = Ok(None);
        'runs: loop {
            match outcomes.recv_timeout(LOOK) {
                Ok((number, outcome)) => drop(early.insert(number, outcome)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let mut taken = lock().taken;
            while let Some(outcome) = early.remove(&taken) {
                taken += 1;
                result = match outcome {
                    Ok(Some(run)) => take(run).map(|flow| flow.is_break().then_some(End::Enough)),
                    Ok(None) => Ok(Some(End::Abandoned)),
                    Err(error) => Err(error),
                };
                if !matches!(result, Ok(None)) {
                    break 'runs;
                }
            }
            lock().taken = taken;
            moved.notify_all();
            look();
        }
        if !matches!(result, Ok(None)) {
            // No more outcomes are wanted: no run is started, and the runs under way are stopped.
            interrupts.unwanted.store(true, Ordering::Relaxed);
            lock().end.get_or_insert(End::Enough);
            moved.notify_all();
        }
        let end = lock().end;
        result.map(|found| found.or(end).unwrap_or(End::Limit))
    })
}

/// Returns the number of the next run to start; waits while too many runs have been started after the oldest run under way.
fn next(
    mut turn: MutexGuard<'_, Turn>,
    moved: &Condvar,
    allowance: &Allowance,
    interrupts: &Interrupts,
) -> Option<u64> {
    loop {
        if turn.end.is_none() {
            turn.end = interrupts.stop(allowance, turn.started);
        }
        if turn.end.is_some() {
            return None;
        }
        if turn.started < turn.taken + AHEAD * allowance.jobs as u64 {
            turn.started += 1;
            return Some(turn.started - 1);
        }
        (turn, _) = moved.wait_timeout(turn, LOOK).unwrap_or_else(PoisonError::into_inner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program::new(&["sh".into(), "-c".into(), script.into()], None, true).unwrap()
    }

    fn allowance(runs: u64, jobs: usize) -> Allowance {
        Allowance { runs, until: None, jobs, first: 1 }
    }

    #[test]
    fn every_start_is_handed_out_once() {
        for jobs in [1, 2, 5] {
            let folder = tempfile::tempdir().unwrap();
            let program = shell(&format!("echo >>{}/starts", folder.path().display()));
            let mut taken = 0;
            let take = |_| {
                taken += 1;
                Ok(ControlFlow::Continue(()))
            };
            let end = run(&program, &allowance(40, jobs), &Interrupts::none(), take, || ());
            assert_eq!((end.unwrap(), taken), (End::Limit, 40), "{jobs} jobs");
            let starts = std::fs::read(folder.path().join("starts")).unwrap();
            assert_eq!(starts.len(), 40, "{jobs} jobs");
        }
    }

    #[test]
    fn slow_runs_are_not_overtaken() {
        for jobs in [1, 2, 7] {
            let program = shell("[ $((MILLSTREAM_RUN % 4)) = 1 ] && sleep 0.1; echo $MILLSTREAM_RUN");
            let mut numbers = Vec::new();
            let take = |run: Run| {
                numbers.push(String::from_utf8(run.output).unwrap().trim().parse::<u64>().unwrap());
                Ok(ControlFlow::Continue(()))
            };
            run(&program, &allowance(24, jobs), &Interrupts::none(), take, || ()).unwrap();
            assert_eq!(numbers, (1..=24).collect::<Vec<_>>(), "{jobs} jobs");
        }
    }

    #[test]
    fn nothing_is_handed_out_after_enough() {
        for jobs in [1, 3] {
            let mut seen = 0;
            let end = run(
                &shell("sleep 0.01"),
                &allowance(1000, jobs),
                &Interrupts::none(),
                |_| {
                    seen += 1;
                    Ok(if seen == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
                },
                || (),
            );
            assert_eq!((end.unwrap(), seen), (End::Enough, 5), "{jobs} jobs");
        }
    }

    #[test]
    fn runs_started_before_the_time_runs_out_count() {
        let folder = tempfile::tempdir().unwrap();
        // Returns the number of runs that were started before the time ran out.
        let started = |jobs: usize, time_ms: u64, run_s: &str| {
            let file = folder.path().join(format!("starts-{jobs}-{time_ms}"));
            let program = shell(&format!("echo >>{}; sleep {run_s}", file.display()));
            let until = Some(Instant::now() + Duration::from_millis(time_ms));
            let mut seen = 0;
            let take = |_| {
                seen += 1;
                Ok(ControlFlow::Continue(()))
            };
            let end = run(&program, &Allowance { runs: 1000, until, jobs, first: 1 }, &Interrupts::none(), take, || ());
            let starts = std::fs::read(file).map_or(0, |starts| starts.len());
            assert_eq!((end.unwrap(), seen), (End::Time, starts), "all that were started are seen");
            seen
        };
        for jobs in [1, 2] {
            // A busy machine may take a long time to start the runs, so later attempts allow more time.
            let all = [(50, "0.3"), (1000, "1.5"), (10_000, "12")]
                .iter()
                .any(|(time, run)| started(jobs, *time, run) == jobs);
            assert!(all, "{jobs} jobs");
        }
    }

    #[test]
    fn the_first_interrupt_waits_and_the_second_stops() {
        for jobs in [1, 2] {
            let interrupts = Interrupts::none();
            interrupts.count.store(1, Ordering::Relaxed);
            let end = run(&shell("exit 0"), &allowance(9, jobs), &interrupts, |_| Ok(ControlFlow::Continue(())), || ());
            assert_eq!(end.unwrap(), End::Interrupted);
            let interrupts = Interrupts::none();
            interrupts.unwanted.store(true, Ordering::Relaxed);
            let end =
                run(&shell("sleep 60"), &allowance(9, jobs), &interrupts, |_| Ok(ControlFlow::Continue(())), || ());
            assert_eq!(end.unwrap(), End::Abandoned);
        }
    }
}
