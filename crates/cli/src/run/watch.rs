//! The main loop of a run: shows progress, reports interrupts, and waits for the end.

use std::any::Any;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use millstream_command::screen::text;
use millstream_flow::{Control, Report, Snapshot, SourceEnd};
use millstream_runner::machine::Machine;
use millstream_runner::printer::Printer;

use super::halt::Reason;
use crate::screen::Screen;
use crate::screen::throughput::{Sample, Throughput};
use crate::serve::feed::Feed;

/// The time between two updates of the progress.
const TICK: Duration = Duration::from_millis(100);
/// How long standard output may remain unread before the run reports it.
const LONG: Duration = Duration::from_secs(2);
/// How long the main loop waits for an abandoned flow. This is longer than the flow itself waits for running code. It
/// is less than a second, because a run must end within a second after the second signal.
const GRACE: Duration = Duration::from_millis(900);

/// An event of a run.
#[derive(Debug)]
pub(super) enum Event {
    /// No more units will be admitted.
    Fed(SourceEnd),
    /// A signal stops admission. Contains the flow's state just before.
    Stopped(Box<Snapshot>),
    /// A request at the control socket stops admission. Contains the flow's state just before.
    Asked(Box<Snapshot>),
    /// The run has halted of its own accord.
    Halted(Reason),
    /// A second signal abandons the units in flight. Contains the flow's state just before.
    Abandoned(Box<Snapshot>),
    /// A message for the terminal.
    Said(String),
    /// The flow is over.
    Drained(Box<Report>),
}

/// The facts about the end of a run.
#[derive(Debug)]
pub(super) struct Ending {
    /// The flow's report; `None` if the flow was abandoned and did not end in time.
    pub(super) report: Option<Box<Report>>,
    /// Whether a signal has stopped admission.
    pub(super) interrupted: bool,
    /// The reason why the run has halted of its own accord, if it has halted.
    pub(super) halted: Option<Reason>,
    /// Whether the source was read to its end.
    pub(super) whole: bool,
    /// The panic of the source, if it panicked.
    pub(super) panic: Option<Box<dyn Any + Send>>,
    /// The state of the flow when it was abandoned, if it was abandoned.
    pub(super) abandoned: Option<Box<Snapshot>>,
    /// The number of units that had left the flow, over time.
    pub(super) throughput: Throughput,
}

/// Causes of waiting other than resources of the flow.
pub(super) struct Waits {
    pub(super) printer: Arc<Printer>,
    pub(super) machine: Arc<Machine>,
}

/// Watches a flow until it ends. `total` returns the number of units that will be admitted, if that number is known.
/// `drain` is called once, when admission has ended, and causes [`Event::Drained`] when all units have left.
pub(super) fn watch(
    control: &Control,
    events: &Receiver<Event>,
    screen: &mut Screen,
    total: &dyn Fn() -> Option<u64>,
    waits: &Waits,
    feed: &Feed,
    drain: impl FnOnce(),
) -> Ending {
    let mut drain = Some(drain);
    let mut ending = Ending {
        report: None,
        interrupted: false,
        halted: None,
        whole: false,
        panic: None,
        abandoned: None,
        throughput: Throughput::default(),
    };
    let mut give_up: Option<Instant> = None;
    let mut unread = Unread::default();
    let mut refused = Refused::default();
    let mut busy = false;
    let mut idle = 0;
    loop {
        match events.recv_timeout(TICK) {
            Ok(Event::Fed(end)) => {
                ending.whole = matches!(end, SourceEnd::Exhausted);
                if let SourceEnd::Panicked(panic) = end {
                    ending.panic = Some(panic);
                }
                if let Some(drain) = drain.take() {
                    drain();
                }
            }
            Ok(Event::Stopped(now)) => {
                ending.interrupted = true;
                // The signals thread also stops admission, but only after it has sent this event. The message below
                // must be true when it appears.
                control.stop();
                waits.machine.end();
                screen.say(&format!(
                    "interrupted: no more units are admitted; again abandons the {} in flight",
                    now.in_flight
                ));
                if let Some(drain) = drain.take() {
                    drain();
                }
            }
            Ok(Event::Asked(now)) => {
                ending.interrupted = true;
                control.stop();
                waits.machine.end();
                screen.say(&format!(
                    "drained by request: no more units are admitted; {} in flight are finished",
                    now.in_flight
                ));
                if let Some(drain) = drain.take() {
                    drain();
                }
            }
            Ok(Event::Halted(reason)) => {
                waits.machine.end();
                screen.warn(&reason.message());
                if matches!(reason, Reason::Failures { now: true, .. }) {
                    give_up = Some(Instant::now() + GRACE);
                }
                ending.halted = Some(reason);
                if let Some(drain) = drain.take() {
                    drain();
                }
            }
            Ok(Event::Abandoned(then)) => {
                ending.abandoned = Some(then);
                give_up = Some(Instant::now() + GRACE);
            }
            Ok(Event::Said(line)) => screen.say(&line),
            Ok(Event::Drained(report)) => {
                ending.report = Some(report);
                break;
            }
            Err(RecvTimeoutError::Timeout) => {}
            // Unreachable in practice: the flow and the signals thread have senders as long as the process lives.
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if give_up.is_some_and(|moment| Instant::now() >= moment) {
            break;
        }
        let now = control.snapshot();
        // The machine was too busy for some units, which were sent back to their queues with a pause that outlasts the
        // run. After an interrupt, the run does not wait for these units. For units in a pause before a retry, it
        // waits, because these run again soon. The numbers do not distinguish the two pauses, so the flow is abandoned
        // once several checks in a row have found all its units in a pause.
        let only_pauses = now.in_flight > 0 && now.in_flight == now.delayed;
        let given_up = ending.interrupted && waits.machine.has_sent_back() && only_pauses;
        idle = if given_up { idle + 1 } else { 0 };
        if idle > 2 {
            control.abandon();
        }
        if ending.halted.is_some() && now.stages.iter().all(|stage| stage.running == 0) {
            // The run has halted and no stage is working any more, so no waiting unit will run.
            control.abandon();
        }
        if unread.is_long(&waits.printer) {
            screen.say("programs wait until standard output is read");
        }
        if let Some(reason) = refused.reason(control, &now) {
            screen.warn(&format!("units wait, for no fiber could be started: {reason}"));
        }
        let short = waits.machine.short();
        if let Some(short) = short.as_ref().filter(|_| !busy) {
            screen.say(&format!("programs wait for the machine: {short}"));
        }
        // A limit that is reached repeatedly is reported only once.
        busy |= short.is_some();
        let (retired, dead_lettered) = (now.retired, now.dead_lettered);
        ending.throughput.note(Sample { at_s: now.wall_ns as f64 / 1e9, retired, dead_lettered });
        let total = if ending.whole { Some(now.admitted) } else { total() };
        feed.note(&now, total);
        screen.show(&now, total);
    }
    screen.clear();
    ending
}

/// Waits until the outputs of a finished flow are written. After an interrupt, or if the flow was abandoned before, the
/// wait continues only as long as the reader reads.
pub(super) fn print_out(printer: &Printer, events: &Receiver<Event>, screen: &mut Screen, ending: &mut Ending) {
    printer.close();
    let mut read = (printer.written(), Instant::now());
    let mut gives_up = ending.abandoned.is_some() || matches!(ending.halted, Some(Reason::Failures { now: true, .. }));
    let mut unread = Unread::default();
    while !printer.is_done_within(TICK) {
        if printer.written() != read.0 {
            read = (printer.written(), Instant::now());
        }
        match events.try_recv() {
            Ok(Event::Stopped(_) | Event::Abandoned(_)) => {
                ending.interrupted = true;
                gives_up = true;
            }
            Ok(Event::Halted(reason)) => ending.halted = ending.halted.take().or(Some(reason)),
            _ => {}
        }
        if gives_up && read.1.elapsed() >= 2 * TICK {
            screen.warn("outputs are lost: standard output is not read");
            break;
        }
        if unread.is_long(printer) {
            screen.say("outputs wait until standard output is read");
        }
    }
    if let (None, Some(trouble)) = (&ending.halted, printer.trouble()) {
        let reason = Reason::Output(trouble);
        screen.warn(&reason.message());
        ending.halted = Some(reason);
    }
}

/// Detects that standard output is not read.
#[derive(Debug, Default)]
struct Unread {
    /// The number of bytes written, and when that number was first seen.
    since: Option<(u64, Instant)>,
    told: bool,
}

impl Unread {
    /// Whether outputs have waited for the reader for a long time. Returns `true` only once.
    fn is_long(&mut self, printer: &Printer) -> bool {
        let written = printer.written();
        match self.since {
            Some((before, since)) if before == written => {
                let long = !self.told && printer.awaits_reader() && since.elapsed() >= LONG;
                self.told |= long;
                long
            }
            _ => {
                self.since = Some((written, Instant::now()));
                false
            }
        }
    }
}

/// Detects that units wait for fibers and that no fiber could be started.
#[derive(Debug, Default)]
struct Refused {
    /// The time of the last check.
    looked: Option<Instant>,
    told: bool,
}

impl Refused {
    /// The reason why no fiber could be started, if a stage has granted units and none of these units runs. The reason
    /// is returned only once.
    fn reason(&mut self, control: &Control, now: &Snapshot) -> Option<String> {
        let stands = now.stages.iter().any(|stage| stage.granted > 0 && stage.running == 0 && stage.workers_busy == 0);
        if self.told || !stands || self.looked.is_some_and(|looked| looked.elapsed() < LONG) {
            return None;
        }
        self.looked = Some(Instant::now());
        let reason = control.fibers().trouble.latest_refusal?;
        self.told = true;
        Some(reason)
    }
}

/// Where a flow's units in flight are, in words: `3 running and 9 waiting in zstd, 1 in a pause`. The sum of the
/// numbers is the number of units in flight.
pub(super) fn whereabouts(now: &Snapshot) -> String {
    let mut places: Vec<String> = now
        .stages
        .iter()
        .filter(|stage| stage.running + stage.waiting > 0)
        .map(|stage| {
            let name = text::printable(&stage.name);
            match (stage.running, stage.waiting) {
                (running, 0) => format!("{running} running in {name}"),
                (0, waiting) => format!("{waiting} waiting in {name}"),
                (running, waiting) => format!("{running} running and {waiting} waiting in {name}"),
            }
        })
        .collect();
    let in_stages: u64 = now.stages.iter().map(|stage| stage.running + stage.waiting).sum();
    let elsewhere = now.in_flight.saturating_sub(in_stages + now.delayed + now.waiting_for_memory);
    for (units, place) in
        [(now.delayed, "in a pause"), (now.waiting_for_memory, "waiting for memory"), (elsewhere, "between stages")]
    {
        if units > 0 {
            places.push(format!("{units} {place}"));
        }
    }
    places.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::sample::snapshot;

    #[test]
    fn units_are_listed_stage_by_stage() {
        let mut now = snapshot();
        for (stage, (running, waiting)) in now.stages.iter_mut().zip([(0, 0), (1, 0), (0, 2), (3, 4)]) {
            (stage.running, stage.waiting) = (running, waiting);
        }
        (now.in_flight, now.delayed) = (10, 0);
        assert_eq!(whereabouts(&now), "1 running in blake3, 2 waiting in zstd, 3 running and 4 waiting in write");
    }

    #[test]
    fn units_between_stages_are_listed_too() {
        let mut now = snapshot();
        now.stages.iter_mut().for_each(|stage| (stage.running, stage.waiting) = (0, 0));
        now.stages[0].running = 2;
        (now.in_flight, now.delayed, now.waiting_for_memory) = (7, 3, 1);
        assert_eq!(whereabouts(&now), "2 running in read, 3 in a pause, 1 waiting for memory, 1 between stages");
    }
}
