//! A lane: a stage's code, with its types. It runs batches of rows, and reports the outcome of each unit.

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::batch_run::Run;
use super::front::{Front, late};
use super::settlement::{StageRun, Verdict};
use crate::contain::{Contained, contain, drop_panic};
use crate::cx::Cx;
use crate::engine::claims::{NO_STAGE, UNDECIDED};
use crate::engine::units::column::Row;
use crate::engine::units::groups::GroupRules;
use crate::engine::units::record::UnitRef;
use crate::exit::{Aim, Route};
use crate::failure::{Failure, Requeue};
use crate::stage::Stage;

/// A stage as workers see it, with its payload types erased.
pub trait Lane: Send + Sync {
    /// Runs the stage on every row, and reports the outcome of each unit.
    fn run(&self, rows: &mut [Row], run: &mut Run<'_>);
    /// Takes a unit's payload out of its cell, for a dead letter.
    fn take_input(&self, row: &mut Row) -> Option<Box<dyn Any + Send>>;
    /// Whether the stage gathers the children of one parent.
    fn gathers_families(&self) -> bool {
        false
    }
    /// The payload of a unit that waits for the stage. The caller owns the unit, and no code changes the payload
    /// meanwhile.
    fn peek<'a>(&'a self, row: &'a Row) -> Option<&'a dyn Any>;
}

/// A stage's code before its *exit* is known, that is, before it is known where the stage's results go. Code and exit
/// together make the stage's lane.
pub trait Code<In>: Send + Sync + Sized + 'static {
    /// The type of the results, which go to the exit.
    type Out;
    /// Whether the stage splits its units.
    const SPLITS: bool = false;
    /// The rules of the stage's groups, if it gathers its units.
    #[doc(hidden)]
    fn groups(&self) -> Option<GroupRules> {
        None
    }
    #[doc(hidden)]
    fn lane<X: Route<Self::Out>>(self, front: Front<In>, exit: X) -> Box<dyn Lane>;
}

/// How a stage's code returns its result: as a new value, or as its input changed in place.
pub(crate) trait Body<In>: Send + Sync + 'static {
    /// The result is the input, changed in place.
    const IN_PLACE: bool;
    type Made;
    type Out;
    fn run(&self, input: &mut In, cx: &mut Cx<'_>) -> Result<Self::Made, Failure>;
    fn view<'a>(made: &'a Self::Made, input: &'a In) -> &'a Self::Out;
    fn take(made: Self::Made, cell: &mut Option<In>) -> Self::Out;
    /// Called after the last unit of a batch.
    fn batch_done(&self);
}

/// A stage that makes a new value.
pub(crate) struct Making<S>(pub(crate) S);

impl<In, S: Stage<In>> Body<In> for Making<S> {
    const IN_PLACE: bool = false;
    type Made = S::Out;
    type Out = S::Out;

    #[inline]
    fn run(&self, input: &mut In, cx: &mut Cx<'_>) -> Result<S::Out, Failure> {
        self.0.run(input, cx)
    }

    #[inline]
    fn view<'a>(made: &'a S::Out, _: &'a In) -> &'a S::Out {
        made
    }

    /// Keeps the result even if the input's destructor panics.
    #[inline]
    fn take(made: S::Out, cell: &mut Option<In>) -> S::Out {
        if std::mem::needs_drop::<In>() {
            contain(|| *cell = None);
        } else {
            *cell = None;
        }
        made
    }

    fn batch_done(&self) {
        self.0.batch_done();
    }
}

/// A stage that changes its input in place.
pub(crate) struct Updating<F>(pub(crate) F);

impl<T, F> Body<T> for Updating<F>
where
    F: Fn(&mut T, &mut Cx<'_>) -> Result<(), Failure> + Send + Sync + 'static,
{
    const IN_PLACE: bool = true;
    type Made = ();
    type Out = T;

    #[inline]
    fn run(&self, input: &mut T, cx: &mut Cx<'_>) -> Result<(), Failure> {
        (self.0)(input, cx)
    }

    #[inline]
    fn view<'a>((): &'a (), input: &'a T) -> &'a T {
        input
    }

    #[inline]
    fn take((): (), cell: &mut Option<T>) -> T {
        cell.take().expect("a running unit has its payload")
    }

    fn batch_done(&self) {}
}

impl<In: Send + 'static, S: Stage<In>> Code<In> for Making<S> {
    type Out = S::Out;

    fn lane<X: Route<S::Out>>(self, front: Front<In>, exit: X) -> Box<dyn Lane> {
        Box::new(TypedLane { front, body: self, exit })
    }
}

impl<T, F> Code<T> for Updating<F>
where
    T: Send + 'static,
    F: Fn(&mut T, &mut Cx<'_>) -> Result<(), Failure> + Send + Sync + 'static,
{
    type Out = T;

    fn lane<X: Route<T>>(self, front: Front<T>, exit: X) -> Box<dyn Lane> {
        Box::new(TypedLane { front, body: self, exit })
    }
}

/// A stage, with its front, its code and its exit.
pub(crate) struct TypedLane<In, B, X> {
    pub(crate) front: Front<In>,
    pub(crate) body: B,
    pub(crate) exit: X,
}

impl<In, B, X> Lane for TypedLane<In, B, X>
where
    In: Send + 'static,
    B: Body<In>,
    X: Route<B::Out>,
{
    fn run(&self, rows: &mut [Row], run: &mut Run<'_>) {
        let site = run.site;
        let units = rows.len() as u64;
        let mut progress = Progress { next: 0, landing: false, clock: run.started_ns };
        run.settlement.to = UNDECIDED;
        run.settlement.plain = run.plain;
        // One `catch_unwind` serves many units. After a panic it is entered again, past the unit that panicked.
        while progress.next < rows.len() {
            let unwound = catch_unwind(AssertUnwindSafe(|| self.run_units(rows, run, &mut progress)));
            if let Err(panic) = unwound {
                let outcome = if std::mem::take(&mut progress.landing) {
                    // The delivery of the result has panicked; the unit itself is done.
                    Verdict::Retire
                } else {
                    self.front.fail(&Failure::panic(&*panic), &mut rows[progress.next], run)
                };
                drop_panic(panic);
                progress.end_unit(outcome, run);
            }
        }
        // A panic here does not fail any unit, because all units of the batch are done.
        contain(|| self.body.batch_done());
        let ended = if run.time_each { progress.clock } else { site.now() };
        run.settlement.ended_ns = ended;
        if !run.time_each {
            run.settlement.timings.push(((ended - run.started_ns) / units.max(1), units));
        }
        let (busy_ns, timed) = (ended - run.started_ns, run.settlement.timings.len());
        run.settlement.stage_runs.push(StageRun { stage: run.stage, busy_ns, timed });
    }

    fn take_input(&self, row: &mut Row) -> Option<Box<dyn Any + Send>> {
        self.front.take_input(row)
    }

    fn peek<'a>(&'a self, row: &'a Row) -> Option<&'a dyn Any> {
        self.front.peek(row)
    }
}

impl<In, B, X> TypedLane<In, B, X>
where
    In: Send + 'static,
    B: Body<In>,
    X: Route<B::Out>,
{
    /// Runs units to the end of the batch, or until one panics.
    ///
    /// Plain units take the shortest path if the stage has one exit and the batch is timed as a whole. (It is timed as
    /// a whole if it has several short units; see `Run::time_each`.) All other units run one by one. A change to one
    /// path must also be made to the other.
    fn run_units(&self, rows: &mut [Row], run: &mut Run<'_>, progress: &mut Progress) {
        let direct = self.exit.direct().filter(|_| run.plain && !run.time_each);
        while let Some(row) = rows.get_mut(progress.next) {
            if let Some(to) = direct {
                run.settlement.to = to;
                self.run_plain(rows, to, run, progress);
                continue;
            }
            let ended = self.run_unit(row, run, progress);
            progress.note(ended, run);
        }
    }

    /// Runs plain units that all go to `to`, up to the end of the batch, or until one fails, is left behind, or changes
    /// its record. This is the shortest path through a stage.
    fn run_plain(&self, rows: &mut [Row], to: u16, run: &mut Run<'_>, progress: &mut Progress) {
        let site = run.site;
        let Some((row, _)) = rows.split_first() else { return };
        // SAFETY: the code below uses the other handles to the rows for columns of payloads only.
        let unit = unsafe { UnitRef::new(site.records(), row) };
        let taken = RefCell::default();
        let mut cx = Cx {
            site,
            advance: run.advance,
            unit,
            attempts: 0,
            stage: run.stage,
            deadline: None,
            taken,
            not_send: PhantomData,
        };
        let takes_objects = !site.stage(run.stage).objects.is_empty();
        while let Some(row) = rows.get_mut(progress.next) {
            if site.is_abandoned() {
                let ended = self.run_unit(row, run, progress);
                return progress.note(ended, run);
            }
            // SAFETY: the code below uses the other handles to the rows for columns of payloads only.
            unsafe { cx.unit.turn_to(row) };
            if takes_objects {
                cx.taken.get_mut().clear();
            }
            let cell = self.front.cell(row);
            let input = cell.as_mut().expect("a granted unit has its payload");
            let made = match self.body.run(input, &mut cx) {
                Ok(made) => made,
                Err(failure) => {
                    let outcome = self.front.fail(&failure, row, run);
                    return progress.note(Ended::As(outcome), run);
                }
            };
            if !(B::IN_PLACE && X::SAME_COLUMN && to != NO_STAGE) {
                let out = B::take(made, cell);
                progress.landing = true;
                self.exit.land(out, Aim::at(to), row, false);
                progress.landing = false;
            }
            if cx.unit.take_touched() {
                let ended = self.end_touched(&mut cx.unit, to, None, 0, run);
                return progress.note(ended, run);
            }
            progress.next += 1;
        }
    }

    #[inline]
    fn run_unit(&self, row: &mut Row, run: &mut Run<'_>, progress: &mut Progress) -> Ended {
        let site = run.site;
        if site.is_abandoned() {
            self.front.tickets.abandoned(row);
            return Ended::As(Verdict::LeftBehind);
        }
        let config = site.stage(run.stage);
        // SAFETY: the code below uses `row` for columns of payloads only, in `cell` and everywhere else.
        let unit = unsafe { UnitRef::new(site.records(), row) };
        let (attempts, bytes_before) = if run.plain { (0, 0) } else { (unit.look().attempts(), unit.look().bytes()) };
        if !run.plain
            && let Some(refused) = unit.look().refused()
        {
            let failure = Failure::permanent(refused);
            return Ended::As(self.front.fail(&failure, row, run));
        }
        let cell = self.front.cell(row);
        let input = cell.as_mut().expect("a granted unit has its payload");
        let started = || site.instant(progress.clock);
        let deadline = config.timeout.and_then(|limit| started().checked_add(limit));
        let taken = RefCell::default();
        let mut cx =
            Cx { site, advance: run.advance, unit, attempts, stage: run.stage, deadline, taken, not_send: PhantomData };
        let mut result = self.body.run(input, &mut cx).map(Contained::new);
        let mut unit = cx.unit;
        if let Some((deadline, limit)) = deadline.zip(config.timeout)
            && Instant::now() > deadline
            && !changes_needs(&result)
        {
            result = Err(late(deadline, limit, &result));
        }
        let made = match result {
            Ok(made) => made,
            Err(failure) => return Ended::As(self.front.fail(&failure, row, run)),
        };
        let aim = self.exit.aim(B::view(&made, input), &mut unit);
        // Only units of idempotent stages may be cancelled to stay within the byte budget, because a cancelled unit
        // runs again when there is room.
        let grows = aim.bytes.filter(|&bytes| config.idempotent && bytes > unit.look().bytes());
        if let Some(bytes) = grows.filter(|&bytes| !run.advance.grow(unit.change(), bytes, true)) {
            return Ended::As(self.front.fail(&Failure::over_budget(bytes), row, run));
        }
        // The result of a last stage is delivered even after the flow was abandoned. The other units are left behind.
        if aim.stage != NO_STAGE && site.is_abandoned() {
            self.front.tickets.abandoned(row);
            return Ended::As(Verdict::LeftBehind);
        }
        let stays = B::IN_PLACE && X::SAME_COLUMN && aim.stage != NO_STAGE;
        if !stays {
            let out = B::take(made.into_inner(), cell);
            progress.landing = true;
            self.exit.land(out, aim, row, !run.plain && unit.look().is_ticketed());
            progress.landing = false;
        }
        if run.plain && !unit.is_touched() && aim.bytes.is_none_or(|bytes| bytes == 0) {
            return Ended::Moves { to: aim.stage };
        }
        self.end_touched(&mut unit, aim.stage, aim.bytes, bytes_before, run)
    }

    /// Ends the run of a unit whose record may differ from that of a plain unit.
    fn end_touched(
        &self,
        unit: &mut UnitRef<'_>,
        to: u16,
        bytes: Option<u64>,
        before: u64,
        run: &mut Run<'_>,
    ) -> Ended {
        let record = unit.look();
        let (accounted, next) = (record.bytes(), record.next_bytes(bytes, before));
        if to == NO_STAGE && !record.moves_on() {
            return Ended::As(Verdict::Retire);
        }
        if to != NO_STAGE && (!record.moves_on() || next > accounted) {
            return Ended::As(Verdict::Go { stage: to, bytes: Some(next) });
        }
        run.settlement.plain = false;
        if to != NO_STAGE {
            run.settlement.lighter |= next != accounted;
            unit.set_next_bytes(next);
        }
        Ended::Moves { to }
    }
}

/// The end of a unit's run.
#[derive(Clone, Copy)]
enum Ended {
    /// The unit succeeded and only needs to be moved; with [`NO_STAGE`], it retires.
    Moves { to: u16 },
    /// The unit ended with another outcome.
    As(Verdict),
}

/// The progress of a batch. It is stored outside the frames that a panic unwinds.
struct Progress {
    /// The index of the unit that runs.
    next: usize,
    /// The unit's code has run, and its result is being delivered.
    landing: bool,
    /// The time at which the unit started; if units are not timed, the time at which the batch started.
    clock: u64,
}

impl Progress {
    /// Notes the end of a unit.
    #[inline]
    fn note(&mut self, ended: Ended, run: &mut Run<'_>) {
        match ended {
            Ended::Moves { to } if to == run.settlement.to => self.tick(run),
            Ended::Moves { to } if run.settlement.to == UNDECIDED => {
                run.settlement.to = to;
                self.tick(run);
            }
            Ended::Moves { to: NO_STAGE } => self.end_unit(Verdict::Retire, run),
            Ended::Moves { to } => self.end_unit(Verdict::Go { stage: to, bytes: None }, run),
            Ended::As(outcome) => self.end_unit(outcome, run),
        }
    }

    /// Notes an outcome that differs from the batch's common destination.
    fn end_unit(&mut self, outcome: Verdict, run: &mut Run<'_>) {
        run.settlement.exceptions.push((self.next as u32, outcome));
        self.tick(run);
    }

    /// Goes on to the next unit.
    #[inline]
    fn tick(&mut self, run: &mut Run<'_>) {
        self.next += 1;
        if run.time_each {
            let now = run.site.now();
            run.settlement.timings.push((now - self.clock, 1));
            self.clock = now;
        }
    }
}

/// Whether the unit returns to its queue because it needs other resources. Such an end is not a result, so no time
/// limit applies to it. If it counted as a timeout, the stage would retry the unit with grants that it no longer needs.
fn changes_needs<T>(result: &Result<T, Failure>) -> bool {
    result.as_ref().is_err_and(|failure| failure.requeued() == Some(Requeue::ForNeeds))
}
