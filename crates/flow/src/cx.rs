//! The context that a stage's code gets when it runs on a unit.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use crate::engine::run::advance::Advance;
use crate::engine::run::site::Site;
use crate::engine::run::witness;
use crate::engine::units::record::UnitRef;
use crate::failure::Failure;
use crate::need::MAX_AMOUNT;
use crate::resource::{Pool, PoolObject, Taken};

/// The context of one attempt of a unit in a stage.
///
/// Every method costs at most one clock read, and is wait-free, except [`reserve`](Cx::reserve),
/// [`reserve_first`](Cx::reserve_first) and [`object`](Cx::object), which take a short lock.
#[derive(Debug)]
pub struct Cx<'a> {
    pub(crate) site: &'a Site,
    pub(crate) advance: &'a Advance<'a>,
    pub(crate) unit: UnitRef<'a>,
    /// The number of failed attempts of the unit in this stage.
    pub(crate) attempts: u32,
    pub(crate) stage: u16,
    pub(crate) deadline: Option<Instant>,
    /// The pools whose objects the code holds now.
    pub(crate) taken: RefCell<Taken>,
    /// Keeps the context on the thread that runs the stage's code.
    pub(crate) not_send: PhantomData<*mut ()>,
}

impl Cx<'_> {
    /// The stage's name.
    pub fn stage(&self) -> &str {
        &self.site.stage(self.stage).name
    }

    /// The number of this attempt of the unit in this stage, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.attempts + 1
    }

    /// The unit's number in its flow, counted from 0. A submitted unit gets its number when it is admitted, a unit from
    /// a source when its pull begins, and a child when its parent's run begins. A pull or a run may reserve more
    /// numbers than it produces units, so some numbers stay unused.
    pub fn unit(&self) -> u64 {
        self.site.stamps().id(self.unit.row())
    }

    /// The number of the unit that this one was split from (see [`FlowBuilder::split`](crate::FlowBuilder::split)).
    pub fn parent(&self) -> Option<u64> {
        self.unit.look().parent().map(|parent| parent.id)
    }

    /// The end of the stage's time limit, if it has one.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Whether the code should give up now, because the time limit has passed or the flow was abandoned.
    ///
    /// The engine cannot stop a thread, so a stage that may run for long should call this from time to time. A result
    /// that comes after the time limit is discarded and counts as a time-out.
    pub fn cancelled(&self) -> bool {
        self.site.is_abandoned() || self.deadline.is_some_and(|d| Instant::now() >= d)
    }

    /// Like [`cancelled`](Cx::cancelled), but returns a result, for use with `?`.
    ///
    /// # Errors
    /// Returns a failure that names the reason. The stage should return that failure.
    pub fn check(&self) -> Result<(), Failure> {
        if self.site.is_abandoned() {
            return Err(Failure::cancelled());
        }
        if self.deadline.is_some_and(|d| Instant::now() >= d) {
            return Err(Failure::timeout("the stage's time limit passed"));
        }
        Ok(())
    }

    /// Reserves room in the flow's byte budget for a payload that is about to grow to `total_bytes`.
    ///
    /// # Errors
    /// Returns a failure if the budget has no room and the stage is idempotent. The code should drop its partial
    /// results and return that failure at once. The engine keeps the unit's input, waits until there is room, and runs
    /// the unit again; this does not count as an attempt. In a stage that is not idempotent, the budget is exceeded
    /// instead, and the report shows the excess. More than [`MAX_AMOUNT`] bytes are a permanent failure.
    pub fn reserve(&mut self, total_bytes: u64) -> Result<(), Failure> {
        let may_wait = self.site.stage(self.stage).idempotent;
        self.grow(total_bytes, may_wait)
    }

    /// Like [`reserve`](Cx::reserve), for code that has not caused any side effects yet. Such code can run again even
    /// in a stage that is not idempotent, so the unit waits for room in every stage.
    ///
    /// # Errors
    /// Returns the errors that [`reserve`](Cx::reserve) returns in an idempotent stage.
    pub fn reserve_first(&mut self, total_bytes: u64) -> Result<(), Failure> {
        self.grow(total_bytes, true)
    }

    fn grow(&mut self, total_bytes: u64, may_wait: bool) -> Result<(), Failure> {
        if total_bytes > MAX_AMOUNT {
            let message = format!("it wants to grow to {total_bytes} bytes: at most {MAX_AMOUNT} are possible");
            return Err(Failure::permanent(message));
        }
        if total_bytes <= self.unit.look().bytes() || self.advance.grow(self.unit.change(), total_bytes, may_wait) {
            Ok(())
        } else {
            Err(Failure::over_budget(total_bytes))
        }
    }

    /// Takes an object of a pool that the stage needs ([`Need::object`](crate::Need::object)).
    ///
    /// # Panics
    /// Panics if the stage does not need the pool, or the code already has an object of it.
    pub fn object<'p, C>(&'p self, pool: &'p Pool<C>) -> PoolObject<'p, C> {
        let stage = self.site.stage(self.stage);
        assert!(
            pool.resource.flow == self.site.flow_id() && stage.objects.contains(&pool.resource.index),
            "stage `{}` takes an object of a pool that it does not need: add `.need(Need::object(&pool))`",
            stage.name
        );
        let has_one = self.taken.borrow().contains(&pool.resource.index);
        assert!(!has_one, "stage `{}` takes a second object of a pool", stage.name);
        pool.take(&self.taken)
    }

    /// Adds to the unit's times the work that a program or another thread has done for the unit while this thread
    /// waited. `spent` is the processor time of the work, and `delayed` is the time for which the work waited because
    /// no processor was free.
    ///
    /// Only traces (`Flow::record`, feature `trace`) use these times, to tell which part of a unit's time needs a
    /// processor.
    pub fn charge_cpu(&self, spent: Duration, delayed: Duration) {
        witness::charge(spent, delayed);
    }

    /// Whether the flow is recorded. Only then is it useful to measure processor time.
    pub fn is_recorded(&self) -> bool {
        self.site.is_witnessed()
    }

    /// Makes the unit wait for `pause` before it enters its next stage. The wait does not occupy a worker.
    ///
    /// During the wait, the unit keeps the needs that it [holds until](crate::Need::until) a later stage.
    pub fn delay(&mut self, pause: Duration) {
        self.unit.change().delay(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX));
    }
}
