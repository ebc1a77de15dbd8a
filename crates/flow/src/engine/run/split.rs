//! The lane of a stage that splits its units. Each unit is opened once, as an iterator of its children, and produces as
//! many of them at a time as the flow has room for.

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::batch_run::Run;
use super::brood::{Brood, Newborn};
use super::front::{Front, late};
use super::lane::{Code, Lane};
use super::settlement::{StageRun, Verdict};
use super::site::Site;
use crate::contain::{contain, drop_panic};
use crate::cx::Cx;
use crate::engine::claims::{NO_STAGE, UNDECIDED};
use crate::engine::pace::{PULL_NS, nanos};
use crate::engine::units::column::{Column, Row};
use crate::engine::units::record::{Parent, UnitRef};
use crate::engine::units::stamp::Stamp;
use crate::exit::Route;
use crate::failure::Failure;
use crate::ticket::Unfinished;

/// The intended time between two readings of the clock.
const READ_CLOCK_NS: u64 = 1_000;
/// The maximum number of children between two readings of the clock.
const MAX_STRIDE: u64 = 16;

/// A stage that splits its units.
pub(crate) struct Splitting<F, Out> {
    pub(crate) open: F,
    pub(crate) makes: PhantomData<fn() -> Out>,
}

impl<In, Out, I, F> Code<In> for Splitting<F, Out>
where
    In: Send + 'static,
    Out: Send + 'static,
    I: IntoIterator<Item = Result<Out, Failure>, IntoIter: Send + 'static> + 'static,
    F: Fn(&mut In, &mut Cx<'_>) -> Result<I, Failure> + Send + Sync + 'static,
{
    type Out = Out;
    const SPLITS: bool = true;

    fn lane<X: Route<Out>>(self, front: Front<In>, exit: X) -> Box<dyn Lane> {
        Box::new(SplitLane { front, open: self.open, opened: Column::new(), exit })
    }
}

struct SplitLane<In, I: IntoIterator, F, X> {
    front: Front<In>,
    open: F,
    /// The units that have been opened.
    opened: Column<Opened<I::IntoIter>>,
    exit: X,
}

/// The clock of a run. It is read once for several children, unless each child has a time limit.
struct Clock {
    read_ns: u64,
    /// The number of children since the last reading.
    unread: u64,
    /// The number of children between two readings.
    stride: u64,
}

impl Clock {
    /// Reads the clock. Returns the time since the last reading.
    fn read(&mut self, site: &Site, limit_ns: u64) -> u64 {
        let now = site.now();
        let took_ns = now - self.read_ns;
        if limit_ns == u64::MAX {
            self.stride = (READ_CLOCK_NS * self.unread / took_ns.max(1)).clamp(1, MAX_STRIDE);
        }
        (self.read_ns, self.unread) = (now, 0);
        took_ns
    }
}

/// The children that an opened unit has not produced yet.
struct Opened<C> {
    children: C,
    /// The unit has produced a child, so it cannot be split again from the beginning.
    begun: bool,
}

impl<In, Out, I, F, X> Lane for SplitLane<In, I, F, X>
where
    In: Send + 'static,
    Out: Send + 'static,
    I: IntoIterator<Item = Result<Out, Failure>, IntoIter: Send + 'static> + 'static,
    F: Fn(&mut In, &mut Cx<'_>) -> Result<I, Failure> + Send + Sync + 'static,
    X: Route<Out>,
{
    fn run(&self, rows: &mut [Row], run: &mut Run<'_>) {
        let site = run.site;
        let brood = run.brood.take().expect("a stage that splits runs with room for children");
        let (units, until_ns) = (rows.len() as u64, run.started_ns + PULL_NS);
        let mut clock = Clock { read_ns: run.started_ns, unread: 0, stride: 1 };
        run.settlement.to = UNDECIDED;
        run.settlement.plain = false;
        for (place, row) in (0..).zip(&mut *rows) {
            let began_ns = clock.read_ns;
            let verdict = self.run_unit(row, brood, &mut clock, until_ns, run);
            run.settlement.exceptions.push((place, verdict));
            if run.time_each {
                clock.read_ns = site.now();
                run.settlement.timings.push((clock.read_ns - began_ns, 1));
            }
        }
        let ended_ns = if run.time_each { clock.read_ns } else { site.now() };
        if !run.time_each {
            run.settlement.timings.push(((ended_ns - run.started_ns) / units.max(1), units));
        }
        run.settlement.ended_ns = ended_ns;
        let (busy_ns, timed) = (ended_ns - run.started_ns, run.settlement.timings.len());
        run.settlement.stage_runs.push(StageRun { stage: run.stage, busy_ns, timed });
    }

    fn take_input(&self, row: &mut Row) -> Option<Box<dyn Any + Send>> {
        self.close(row);
        self.front.take_input(row)
    }

    fn peek<'a>(&'a self, row: &'a Row) -> Option<&'a dyn Any> {
        self.front.peek(row)
    }
}

impl<In, Out, I, F, X> SplitLane<In, I, F, X>
where
    In: Send + 'static,
    Out: Send + 'static,
    I: IntoIterator<Item = Result<Out, Failure>, IntoIter: Send + 'static> + 'static,
    F: Fn(&mut In, &mut Cx<'_>) -> Result<I, Failure> + Send + Sync + 'static,
    X: Route<Out>,
{
    fn cell<'a>(&'a self, row: &'a mut Row) -> &'a mut Option<Opened<I::IntoIter>> {
        // SAFETY: the lane's column belongs to the flow that the row belongs to.
        unsafe { self.opened.cell(row) }
    }

    /// Whether the unit has produced a child.
    fn has_begun(&self, row: &mut Row) -> bool {
        self.cell(row).as_ref().is_some_and(|opened| opened.begun)
    }

    /// Drops the remaining children of an opened unit.
    fn close(&self, row: &mut Row) {
        let opened = self.cell(row).take();
        contain(|| drop(opened));
    }

    /// Produces children of the unit until it has no more, the brood is full, or the time is up.
    fn run_unit(&self, row: &mut Row, brood: &mut Brood, clock: &mut Clock, until_ns: u64, run: &Run<'_>) -> Verdict {
        let site = run.site;
        if let Some(refused) = self.refusal(row, run) {
            return self.front.fail(&Failure::permanent(refused), row, run);
        }
        let limit_ns = site.stage(run.stage).timeout.map_or(u64::MAX, nanos);
        if limit_ns != u64::MAX {
            clock.stride = 1;
        }
        let before = brood.len();
        let begins = self.cell(row).is_none();
        let parent = self.parent_of(row, run);
        loop {
            if site.is_abandoned() {
                self.close(row);
                self.front.tickets.abandoned(row);
                return Verdict::LeftBehind;
            }
            // If there is room, each run produces at least one child.
            if !brood.has_room() || (clock.read_ns >= until_ns && brood.len() > before) {
                return Verdict::Unfold { begun: self.has_begun(row) };
            }
            let more = match catch_unwind(AssertUnwindSafe(|| self.bring_out(row, parent, brood, clock.read_ns, run))) {
                Ok(more) => more,
                Err(panic) => {
                    let failure = Failure::panic(&*panic);
                    drop_panic(panic);
                    Err(failure)
                }
            };
            match more {
                Ok(true) => {}
                Ok(false) => return self.end(begins, row, run),
                Err(failure) => return self.fail(failure, row, run),
            }
            clock.unread += 1;
            if clock.unread < clock.stride {
                continue;
            }
            let took_ns = clock.read(site, limit_ns);
            if took_ns > limit_ns {
                let limit = Duration::from_nanos(limit_ns);
                let took = Duration::from_nanos(took_ns);
                let message = format!("a child took {took:.1?}, over the time limit of {limit:?}");
                return self.fail(Failure::timeout(message), row, run);
            }
        }
    }

    fn refusal(&self, row: &Row, run: &Run<'_>) -> Option<String> {
        // SAFETY: nothing else reaches the record as long as this handle lives.
        let unit = unsafe { UnitRef::new(run.site.records(), row) };
        unit.look().refused().map(str::to_owned)
    }

    /// Produces one child. Returns `false` if the unit has no more children. Runs user code.
    fn bring_out(
        &self,
        row: &mut Row,
        parent: Parent,
        brood: &mut Brood,
        clock: u64,
        run: &Run<'_>,
    ) -> Result<bool, Failure> {
        if self.cell(row).is_none() {
            let children = self.open(row, clock, run)?;
            *self.cell(row) = Some(Opened { children, begun: false });
        }
        let opened = self.cell(row).as_mut().expect("the unit was opened above");
        let Some(value) = opened.children.next() else { return Ok(false) };
        let value = value?;
        let Some((child, stamp)) = brood.take_row() else { return Ok(true) };
        let mut cradle = Cradle { row: Some(child), stamp, brood, run };
        let child = cradle.row.as_mut().expect("the cradle was filled above");
        run.site.stamps().set(child, stamp);
        // SAFETY: the code below uses the child's row for columns of payloads only, as long as this handle is used.
        let mut unit = unsafe { UnitRef::new(run.site.records(), child) };
        unit.change().set_parent(Some(parent));
        let aim = self.exit.aim(&value, &mut unit);
        // From here on the child exists, whatever happens to its parent.
        self.cell(row).as_mut().expect("the unit is open").begun = true;
        if aim.stage == NO_STAGE {
            contain(|| self.exit.land(value, aim, child, false));
        } else {
            self.exit.land(value, aim, child, false);
        }
        cradle.settle(aim.stage, aim.bytes.unwrap_or(0));
        Ok(true)
    }

    /// Opens the unit: runs the stage's code, which returns the unit's children as an iterator.
    fn open(&self, row: &mut Row, clock: u64, run: &Run<'_>) -> Result<I::IntoIter, Failure> {
        let site = run.site;
        let config = site.stage(run.stage);
        // SAFETY: the code below uses `row` for columns of payloads only.
        let unit = unsafe { UnitRef::new(site.records(), row) };
        let attempts = unit.look().attempts();
        let deadline = config.timeout.and_then(|limit| site.instant(clock).checked_add(limit));
        let input = self.front.cell(row).as_mut().expect("a granted unit has its payload");
        let mut cx = Cx {
            site,
            advance: run.advance,
            unit,
            attempts,
            stage: run.stage,
            deadline,
            taken: RefCell::default(),
            not_send: PhantomData,
        };
        let opened = (self.open)(input, &mut cx)?.into_iter();
        match deadline.zip(config.timeout).filter(|(deadline, _)| Instant::now() > *deadline) {
            Some((deadline, limit)) => {
                contain(|| drop(opened));
                Err(late(deadline, limit, &Ok(())))
            }
            None => Ok(opened),
        }
    }

    /// A description of the unit for the records of its children.
    fn parent_of(&self, row: &Row, run: &Run<'_>) -> Parent {
        // SAFETY: nothing else reaches the record as long as this handle lives.
        let unit = unsafe { UnitRef::new(run.site.records(), row) };
        let depth = NonZeroU32::MIN.saturating_add(unit.look().depth());
        Parent { row: row.number(), id: run.site.stamps().id(row), depth }
    }

    /// Ends a unit that has no more children. `whole` says that this run has produced all children.
    fn end(&self, whole: bool, row: &mut Row, run: &Run<'_>) -> Verdict {
        self.close(row);
        let input = self.front.cell(row).take();
        contain(|| drop(input));
        // SAFETY: nothing else reaches the record as long as this handle lives.
        let unit = unsafe { UnitRef::new(run.site.records(), row) };
        if unit.look().is_ticketed() {
            contain(|| self.front.tickets.unfinished(row, Unfinished::Split));
        }
        Verdict::Unfolded { whole }
    }

    fn fail(&self, failure: Failure, row: &mut Row, run: &Run<'_>) -> Verdict {
        let begun = self.has_begun(row);
        self.close(row);
        let failure = if begun { failure.after_children() } else { failure };
        self.front.fail(&failure, row, run)
    }
}

/// The row of a child that is being made. If the child cannot be made, the row returns to the brood.
struct Cradle<'a, 'r> {
    row: Option<Row>,
    stamp: Stamp,
    brood: &'a mut Brood,
    run: &'a Run<'r>,
}

impl Cradle<'_, '_> {
    fn settle(mut self, to: u16, bytes: u64) {
        if let Some(row) = self.row.take() {
            self.brood.add(Newborn { row, to, bytes });
        }
    }
}

impl Drop for Cradle<'_, '_> {
    fn drop(&mut self) {
        if let Some(mut row) = self.row.take() {
            self.run.site.records().record(&mut row).clear();
            self.brood.give_row_back(row, self.stamp);
        }
    }
}
