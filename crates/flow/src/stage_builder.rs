//! Defining one stage: its needs, its policies, and its exit.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use crate::draft::{FlowDraft, Policies, Wired};
use crate::engine::run::front::Front;
use crate::engine::run::lane::Code;
use crate::entry::{BytesFn, Entry, EntryNeeds};
use crate::exit::{Exit, Wiring};
use crate::inlet::Inlet;
use crate::need::Need;
use crate::policy::{AfterFailure, Batch, Retry};
use crate::ticket::Sink;

/// Defines one stage: its needs, its policies, and its exit.
///
/// The definition takes effect with [`to`](Self::to).
#[must_use = "a stage is defined by its exit: end with `.to(…)`"]
pub struct StageBuilder<'b, R, In, B> {
    flow: &'b mut FlowDraft,
    sink: &'b Arc<Sink<R>>,
    inlet: Inlet<In>,
    body: B,
    needs: Vec<Need<In>>,
    bytes: Option<BytesFn<In>>,
    policies: Policies,
}

impl<R, In, B> std::fmt::Debug for StageBuilder<'_, R, In, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StageBuilder").field("inlet", &self.inlet).field("needs", &self.needs).finish_non_exhaustive()
    }
}

impl<'b, R, In, B> StageBuilder<'b, R, In, B>
where
    R: Send + 'static,
    In: Send + 'static,
    B: Code<In>,
{
    pub(crate) fn new(flow: &'b mut FlowDraft, sink: &'b Arc<Sink<R>>, inlet: Inlet<In>, body: B) -> Self {
        StageBuilder { flow, sink, inlet, body, needs: Vec::new(), bytes: None, policies: Policies::default() }
    }
}

// These methods do not depend on the code of the stage.
impl<R, In, B> StageBuilder<'_, R, In, B> {
    /// Adds a need. A unit is granted all its needs at once.
    pub fn need(mut self, need: Need<In>) -> Self {
        self.needs.push(need);
        self
    }

    /// Sets the function that weighs an input of this stage in bytes (default: the unit keeps its weight).
    pub fn bytes(mut self, weigh: impl Fn(&In) -> u64 + Send + Sync + 'static) -> Self {
        self.bytes = Some(Box::new(weigh));
        self
    }

    /// Sets the stage's floor and ceiling of workers.
    ///
    /// The floor is guaranteed: if the stage has granted units, that many workers run them, if necessary in addition to
    /// the shared workers. By default, the floor is 0 and the ceiling is the number of shared workers. A blocking stage
    /// may have as many workers as its needs for tokens, objects and permits allow, up to
    /// [`MAX_WORKERS_BY_NEEDS`](crate::MAX_WORKERS_BY_NEEDS). Without such a need, its ceiling is
    /// [`DEFAULT_BLOCKING_WORKERS`](crate::DEFAULT_BLOCKING_WORKERS).
    pub fn workers(mut self, floor_to_ceiling: RangeInclusive<usize>) -> Self {
        self.policies.workers = Some((*floor_to_ceiling.start(), *floor_to_ceiling.end()));
        self
    }

    /// Declares that the stage's code mostly waits. The stage then has its own threads, up to its ceiling of workers,
    /// and does not occupy the shared ones.
    pub fn blocking(mut self) -> Self {
        self.policies.blocking = true;
        self
    }

    /// Declares that the stage's code mostly waits, and runs each unit on a fiber. The stage is
    /// [blocking](Self::blocking), its workers are fibers, and `most` is its ceiling of workers.
    ///
    /// All fibers of a flow share [few threads](crate::FlowBuilder::fiber_threads). A fiber starts when a unit is
    /// granted, and ends when the stage has no more granted units. A unit that waits for its needs has no fiber. Code
    /// that waits through [`fiber`](crate::fiber) (its sockets, files, processes, locks, `sleep`) suspends its fiber.
    /// Code that blocks the thread in another way delays the other started fibers of that thread, which
    /// [`Control::fibers`](crate::Control::fibers) reports.
    ///
    /// Unless a [batch](Self::batch) is set, a fiber takes one unit at a time. When a flow is
    /// [abandoned](crate::Control::abandon), fibers that still wait after 0.7 seconds are unwound.
    ///
    /// ```
    /// use std::time::Duration;
    /// use millstream_flow::Flow;
    ///
    /// let mut flow = Flow::builder::<()>("patient");
    /// flow.inflight(1000);
    /// let (wait, done) = (flow.inlet::<u64>("wait"), flow.retire());
    /// flow.stage(wait, |_, _| Ok(millstream_flow::fiber::sleep(Duration::from_millis(20)))).fibers(1000).to(done);
    /// assert_eq!(flow.build(wait)?.run(0..1000).retired, 1000);
    /// # Ok::<(), millstream_flow::BuildError>(())
    /// ```
    #[cfg(feature = "fibers")]
    pub fn fibers(self, most: usize) -> Self {
        self.on_fibers().workers(0..=most)
    }

    /// Sets the size of the stack that the stage's [fibers](Self::fibers) need, in bytes of address space (default:
    /// [`DEFAULT_FIBER_STACK`](crate::DEFAULT_FIBER_STACK)); memory is committed as a stack grows deeper. All fibers of
    /// a flow have stacks of the largest size that any stage asks for. A stack overflow aborts the process, with a
    /// message that names the stage and the unit.
    #[cfg(feature = "fibers")]
    pub fn stack(mut self, bytes: usize) -> Self {
        self.policies.stack = Some(bytes);
        self
    }

    /// Makes the stage use fibers as its workers.
    #[cfg(any(feature = "fibers", feature = "trace"))]
    pub(crate) fn on_fibers(mut self) -> Self {
        self.policies.blocking = true;
        self.policies.fibers = true;
        self
    }

    /// Sets the number of units that a worker takes at once.
    pub fn batch(mut self, batch: Batch) -> Self {
        self.policies.batch = batch;
        self
    }

    /// Declares that running the stage again on the same input does no harm. A unit may then be cancelled and queued
    /// again when the byte budget is exceeded.
    pub fn idempotent(mut self) -> Self {
        self.policies.idempotent = true;
        self
    }

    /// Limits the time of one attempt; see [`Cx::cancelled`](crate::Cx::cancelled).
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.policies.timeout = Some(limit);
        self
    }

    /// Limits the number of units in the stage, waiting or running (default: the cap on units in flight).
    pub fn queue(mut self, units: u64) -> Self {
        self.policies.queue = Some(units);
        self
    }

    /// Sets how often and how soon a failed unit is retried (default: never).
    pub fn retry(mut self, retry: Retry) -> Self {
        self.policies.retry = retry;
        self
    }

    /// Sets what happens to a unit whose last attempt has failed (default: it becomes a dead letter).
    pub fn after_failure(mut self, policy: AfterFailure) -> Self {
        self.policies.after_failure = policy;
        self
    }
}

impl<R, In, B> StageBuilder<'_, R, In, B>
where
    R: Send + 'static,
    In: Send + 'static,
    B: Code<In>,
{
    /// Ends the definition with the exit of the stage. An exit for another type does not compile.
    ///
    /// ```compile_fail
    /// # use millstream_flow::*;
    /// let mut flow = Flow::builder::<()>("wrong");
    /// let (length, shout) = (flow.inlet::<String>("length"), flow.inlet::<String>("shout"));
    /// flow.stage(length, |text: &mut String, _| Ok(text.len())).to(shout); // a usize into a stage for String
    /// ```
    pub fn to<X: Exit<B::Out>>(self, exit: X) {
        let StageBuilder { flow, sink, inlet, body, needs, bytes, policies } = self;
        let index = usize::from(inlet.index);
        let mut wiring = Wiring {
            flow: flow.id,
            entries: &flow.entries,
            sink,
            edges: Vec::new(),
            retires: false,
            foreign: inlet.flow != flow.id,
        };
        let exit = exit.wire(&mut wiring);
        let Wiring { edges, retires, foreign, .. } = wiring;
        let is_foreign =
            foreign || needs.iter().any(|need| need.resource.flow != flow.id || need.foreign_until(flow.id));
        let entry = flow.entries.get(index).and_then(|entry| entry.downcast_ref::<Arc<Entry<In>>>());
        let Some(entry) = entry.filter(|_| !is_foreign).cloned() else { return flow.refuse_foreign(index) };
        let drafts = needs.iter().map(Into::into).collect();
        let dynamic: Vec<Need<In>> = needs.into_iter().filter(Need::is_dynamic).collect();
        let resources = dynamic.iter().map(|need| flow.resources[usize::from(need.resource.index)].name.clone());
        let resources = resources.collect();
        let weighs = bytes.is_some();
        if entry.needs.set(EntryNeeds { dynamic, resources, bytes }).is_err() {
            return flow.refuse_second(index);
        }
        let groups = body.groups();
        let lane = body.lane(Front { entry, tickets: sink.clone() }, exit);
        flow.define(index, Wired { lane, edges, retires, splits: B::SPLITS, weighs, groups }, drafts, policies);
    }
}
