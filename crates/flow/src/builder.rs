//! Building a flow: stages, needs and edges, then the [static checks](build).

mod build;

use std::any::TypeId;
use std::collections::HashMap;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::cx::Cx;
use crate::draft::FlowDraft;
use crate::engine::run::lane::{Code, Making, Updating};
use crate::engine::run::split::Splitting;
use crate::engine::units::column::Column;
use crate::entry::Entry;
use crate::exit::Retire;
use crate::failure::{DeadLetter, Failure};
use crate::flow::Flow;
use crate::gather::Gather;
use crate::inlet::Inlet;
use crate::limits::DEFAULT_INFLIGHT;
use crate::resource::{Pool, Rate, Resource, Supply};
use crate::stage::{FnStage, Stage};
use crate::stage_builder::StageBuilder;
use crate::ticket::Sink;

/// The default number of threads that run fibers. While a stage's code blocks one of them, the other one continues.
const DEFAULT_FIBER_THREADS: usize = 2;

/// The id of the next flow of this process. Only uniqueness matters, so relaxed ordering is enough.
static FLOWS: AtomicU64 = AtomicU64::new(1);

/// Builds a [`Flow`] whose retired units yield `R`.
///
/// Declare an [`inlet`](Self::inlet) for each stage, define the stages with [`stage`](Self::stage) or
/// [`update`](Self::update), each ending in [`to`](StageBuilder::to), then call [`build`](Self::build).
pub struct FlowBuilder<R> {
    draft: FlowDraft,
    sink: Arc<Sink<R>>,
}

impl<R> std::fmt::Debug for FlowBuilder<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowBuilder")
            .field("name", &self.draft.name)
            .field("stages", &self.draft.names)
            .finish_non_exhaustive()
    }
}

impl Flow<(), ()> {
    /// Begins to build a flow whose retired units yield `R`.
    pub fn builder<R: Send + 'static>(name: impl Into<String>) -> FlowBuilder<R> {
        FlowBuilder::new(name.into())
    }
}

impl<R: Send + 'static> FlowBuilder<R> {
    fn new(name: String) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let draft = FlowDraft {
            id: FLOWS.fetch_add(1, Ordering::Relaxed),
            name,
            inflight: DEFAULT_INFLIGHT,
            memory: u64::MAX,
            workers: cores,
            fiber_threads: cores.min(DEFAULT_FIBER_THREADS),
            resources: Vec::new(),
            names: Vec::new(),
            stages: Vec::new(),
            entries: Vec::new(),
            columns: HashMap::new(),
            letters: None,
            simulated: None,
            errors: Vec::new(),
        };
        FlowBuilder { draft, sink: Sink::new() }
    }

    /// Makes the flow run in simulated time. `now` is the simulated clock, in nanoseconds.
    #[cfg(feature = "trace")]
    pub(crate) fn simulate(&mut self, now: Arc<AtomicU64>) {
        self.draft.simulated = Some(now);
    }

    /// Sets the cap on units in flight (default [`DEFAULT_INFLIGHT`]). The cap can be changed while the flow runs.
    pub fn inflight(&mut self, units: u64) -> &mut Self {
        self.draft.inflight = units;
        self
    }

    /// Sets the cap on payload bytes in flight (default: none). [`StageBuilder::bytes`] sets how payloads are weighed.
    ///
    /// A unit larger than the whole budget is admitted alone, and counts as oversize in the report.
    ///
    /// A unit that grows beyond the budget in an idempotent stage is cancelled, and waits until its bytes fit. No newly
    /// admitted unit overtakes it, so it waits only for units that are already in flight. After a wait of 100 ms, the
    /// unit may exceed the budget: it runs as soon as no other unit runs. Only one unit at a time may do so. The next
    /// unit may exceed the budget once the flow is within the budget again, or after another 100 ms.
    pub fn memory(&mut self, bytes: u64) -> &mut Self {
        self.draft.memory = bytes;
        self
    }

    /// Sets the number of threads that all non-blocking stages share (default: one per core), at most
    /// [`MAX_WORKERS`](crate::MAX_WORKERS).
    pub fn workers(&mut self, threads: usize) -> &mut Self {
        self.draft.workers = threads;
        self
    }

    /// Sets the number of threads that run the [fibers](StageBuilder::fibers) of all stages, at most
    /// [`MAX_WORKERS`](crate::MAX_WORKERS) (default: two, or one on a machine with one core). One more thread watches
    /// them.
    #[cfg(feature = "fibers")]
    pub fn fiber_threads(&mut self, threads: usize) -> &mut Self {
        self.draft.fiber_threads = threads;
        self
    }

    /// Sets the function that gets the dead letters of units without a ticket. The function runs on the worker that
    /// gave up on the unit.
    ///
    /// Without such a function, the flow's report keeps the first
    /// [`Report::DEAD_LETTERS_KEPT`](crate::Report::DEAD_LETTERS_KEPT) dead letters.
    pub fn on_dead_letter(&mut self, take: impl Fn(DeadLetter) + Send + Sync + 'static) -> &mut Self {
        self.draft.letters = Some(Box::new(take));
        self
    }

    /// Sets the function that gets the results of units without a ticket. The function runs on the worker that retired
    /// the unit.
    ///
    /// Without such a function, these results are dropped. Only the first call has an effect.
    pub fn on_retire(&mut self, take: impl Fn(R) + Send + Sync + 'static) -> &mut Self {
        let _ = self.sink.on_retire.set(Box::new(take));
        self
    }

    // ---- resources ------------------------------------------------------------------------------------

    /// Declares a resource with a number of tokens.
    pub fn tokens(&mut self, name: impl Into<String>, capacity: u64) -> Resource {
        self.draft.resource(name.into(), Supply::Tokens(capacity), false, false)
    }

    /// Declares a resource whose tokens arrive at a rate and are consumed by use.
    pub fn rate(&mut self, name: impl Into<String>, rate: Rate) -> Resource {
        self.draft.resource(name.into(), Supply::Rate(rate), false, false)
    }

    /// Declares a resource with a number of tokens for each key. A key is created on demand, and forgotten when no unit
    /// uses it.
    pub fn keyed_tokens(&mut self, name: impl Into<String>, per_key: u64) -> Resource {
        self.draft.resource(name.into(), Supply::Tokens(per_key), true, false)
    }

    /// Declares a resource with a rate for each key.
    pub fn keyed_rate(&mut self, name: impl Into<String>, per_key: Rate) -> Resource {
        self.draft.resource(name.into(), Supply::Rate(per_key), true, false)
    }

    /// Sets the maximum number of keys that a keyed resource may have at once (default
    /// [`DEFAULT_MAX_KEYS`](crate::DEFAULT_MAX_KEYS)). At the maximum, a unit with a new key waits until an existing
    /// key is forgotten. If no key ever becomes unused, that unit waits forever, so set the maximum higher than the
    /// number of keys that are busy at once.
    pub fn max_keys(&mut self, resource: Resource, keys: usize) -> &mut Self {
        if let Some(spec) =
            self.draft.resources.get_mut(usize::from(resource.index)).filter(|_| resource.flow == self.draft.id)
        {
            spec.max_keys = keys;
        }
        self
    }

    /// Declares a pool of objects, for [`Need::object`](crate::Need::object).
    pub fn pool<C: Send + 'static>(
        &mut self,
        name: impl Into<String>,
        objects: impl IntoIterator<Item = C>,
    ) -> Pool<C> {
        let objects: Vec<C> = objects.into_iter().collect();
        let resource = self.draft.resource(name.into(), Supply::Tokens(objects.len() as u64), false, true);
        Pool { resource, objects: Arc::new(Mutex::new(objects)), make: None }
    }

    /// Declares a pool of up to `most` objects. The objects are created on first use, and replaced after a panic.
    pub fn pool_with<C: Send + 'static>(
        &mut self,
        name: impl Into<String>,
        most: u64,
        make: impl Fn() -> C + Send + Sync + 'static,
    ) -> Pool<C> {
        let resource = self.draft.resource(name.into(), Supply::Tokens(most), false, true);
        Pool { resource, objects: Arc::new(Mutex::new(Vec::new())), make: Some(Arc::new(make)) }
    }

    // ---- stages ---------------------------------------------------------------------------------------

    /// Declares a stage that takes `T`, and returns its inlet. The stage itself is defined later.
    pub fn inlet<T: Send + 'static>(&mut self, name: impl Into<String>) -> Inlet<T> {
        let columns = &mut self.draft.columns;
        let column = columns.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(Arc::new(Column::<T>::new())));
        let column = column.downcast_ref::<Arc<Column<T>>>().expect("columns are kept by their type").clone();
        let index = self.draft.names.len() as u16;
        self.draft.declare(name.into(), Box::new(Arc::new(Entry { index, column, needs: OnceLock::new() })));
        Inlet { index, flow: self.draft.id, takes: PhantomData }
    }

    /// Returns the exit through which units leave the flow.
    pub fn retire(&self) -> Retire<R> {
        Retire { flow: self.draft.id, yields: PhantomData }
    }

    /// Defines a stage by a closure that makes a new value from its input.
    pub fn stage<In, Out, F>(&mut self, inlet: Inlet<In>, code: F) -> StageBuilder<'_, R, In, impl Code<In, Out = Out>>
    where
        In: Send + 'static,
        Out: Send + 'static,
        F: Fn(&mut In, &mut Cx<'_>) -> Result<Out, Failure> + Send + Sync + 'static,
    {
        StageBuilder::new(&mut self.draft, &self.sink, inlet, Making(FnStage(code)))
    }

    /// Defines a stage by a closure that changes its input in place. The unit keeps the same payload.
    ///
    /// If an attempt fails, or its result comes after the [time limit](StageBuilder::timeout), the input stays as the
    /// attempt left it. If a retry must not see a half-changed input, change the input as the last step.
    pub fn update<T, F>(&mut self, inlet: Inlet<T>, code: F) -> StageBuilder<'_, R, T, impl Code<T, Out = T>>
    where
        T: Send + 'static,
        F: Fn(&mut T, &mut Cx<'_>) -> Result<(), Failure> + Send + Sync + 'static,
    {
        StageBuilder::new(&mut self.draft, &self.sink, inlet, Updating(code))
    }

    /// Defines a stage by a value that implements [`Stage`].
    pub fn stage_of<In, S>(
        &mut self,
        inlet: Inlet<In>,
        stage: S,
    ) -> StageBuilder<'_, R, In, impl Code<In, Out = S::Out>>
    where
        In: Send + 'static,
        S: Stage<In>,
    {
        StageBuilder::new(&mut self.draft, &self.sink, inlet, Making(stage))
    }

    /// Defines a stage that splits each unit: the closure turns the input into an iterator over the payloads of new
    /// units, its children.
    ///
    /// The flow takes children from the iterator only while it has room for them, so an input may have any number of
    /// children. While there is no room, the parent waits. It later continues where it stopped. The children go to the
    /// stage's exit. Each child has its own number, and knows the number of its parent ([`Cx::parent`]). The parent
    /// counts as retired when its last child has left. A ticket for the parent yields
    /// [`Unfinished::Split`](crate::Unfinished::Split) once the parent has produced its last child.
    ///
    /// The iterator must own what it reads, because the engine keeps the input for a dead letter. An error or a panic
    /// of the iterator is a failure of the parent; the children produced so far continue. The parent is retried only
    /// if it has produced no child.
    ///
    /// In a flow with `n` stages that split, the cap on units in flight is divided into `n + 1` equal parts. One part
    /// is for newly admitted units, and each stage that splits has one part for its children. If the flow is full of
    /// units to be split and nothing else moves, one unit produces one child beyond the caps. If that child must be
    /// split in turn, it is the next unit that may exceed the caps, because deeper units come first. So the flow
    /// exceeds its caps by at most one unit for each level of children.
    ///
    /// The [needs](StageBuilder::need) of the stage are granted for each run of the stage, and one run produces several
    /// children. The [time limit](StageBuilder::timeout) applies to the closure, and to each step of the iterator. An
    /// iterator that blocks delays the children of the same run, so use it in a [blocking](StageBuilder::blocking)
    /// stage.
    ///
    /// [`build`](Self::build) refuses a bound on the queue of this stage, or of a stage that directly follows it. It
    /// also refuses a need of this stage or an earlier stage that is [held until](crate::Need::until) this stage or a
    /// later stage.
    ///
    /// ```
    /// use millstream_flow::{Failure, Flow};
    ///
    /// let mut flow = Flow::builder("words");
    /// let (text, word, done) = (flow.inlet("text"), flow.inlet("word"), flow.retire());
    /// flow.split(text, |text: &mut String, _| {
    ///     let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    ///     Ok(words.into_iter().map(Ok))
    /// })
    /// .to(word);
    /// flow.stage(word, |word: &mut String, _| Ok(word.len())).to(done);
    /// let report = flow.build(text)?.run(["many a mickle".to_owned(), "makes a muckle".to_owned()]);
    /// assert_eq!((report.admitted, report.split, report.retired), (2, 6, 8));
    /// # Ok::<(), millstream_flow::BuildError>(())
    /// ```
    pub fn split<In, Out, I, F>(
        &mut self,
        inlet: Inlet<In>,
        open: F,
    ) -> StageBuilder<'_, R, In, impl Code<In, Out = Out>>
    where
        In: Send + 'static,
        Out: Send + 'static,
        I: IntoIterator<Item = Result<Out, Failure>, IntoIter: Send + 'static> + 'static,
        F: Fn(&mut In, &mut Cx<'_>) -> Result<I, Failure> + Send + Sync + 'static,
    {
        StageBuilder::new(&mut self.draft, &self.sink, inlet, Splitting { open, makes: PhantomData })
    }

    /// Defines a stage that combines its units into groups, by the rules of `gather`. Each group goes to the stage's
    /// exit as one unit.
    ///
    /// The first member of a group becomes the group's unit. This unit keeps its number, and stays in flight until the
    /// group is closed, but does not count towards the cap on units in flight. Every other unit that joins the group
    /// leaves the flow, and counts as [gathered](crate::Report::gathered). A ticket for a member yields
    /// [`Unfinished::Gathered`](crate::Unfinished::Gathered).
    ///
    /// When the flow ends, open groups are closed stage by stage, beginning with the stage that can reach the most
    /// other stages. So the closed groups can still join groups of later stages.
    ///
    /// The [needs](StageBuilder::need) of the stage are granted for the run in which a unit joins, and again for the
    /// run in which a group is closed. A [time limit](StageBuilder::timeout) has no effect here. [`build`](Self::build)
    /// refuses a need that is held through this stage.
    ///
    /// ```
    /// use millstream_flow::{Flow, Gather};
    ///
    /// let mut flow = Flow::builder("pairs");
    /// let (number, sum, done) = (flow.inlet("number"), flow.inlet("sum"), flow.retire());
    /// flow.gather(number, Gather::into_vec().units(2)).to(sum);
    /// flow.stage(sum, |pair: &mut Vec<u64>, _| Ok(pair.iter().sum::<u64>())).to(done);
    /// let report = flow.build(number)?.run(1..=5);
    /// assert_eq!((report.admitted, report.gathered, report.retired), (5, 2, 3));
    /// # Ok::<(), millstream_flow::BuildError>(())
    /// ```
    ///
    /// This flow counts words, and keeps only one number for each:
    ///
    /// ```
    /// use millstream_flow::{Flow, Gather};
    ///
    /// let mut flow = Flow::builder("count");
    /// let (word, done) = (flow.inlet("word"), flow.retire());
    /// let count = Gather::fold(|| (String::new(), 0), |(name, count), word: &mut &str, _| {
    ///     name.clear();
    ///     name.push_str(word);
    ///     *count += 1;
    ///     Ok(())
    /// });
    /// flow.gather(word, count.by_key(|word| *word)).to(done);
    /// flow.on_retire(|(word, count)| println!("{count} {word}"));
    /// let report = flow.build(word)?.run(["mill", "stream", "mill"]);
    /// assert_eq!((report.retired, report.gathered), (2, 1));
    /// # Ok::<(), millstream_flow::BuildError>(())
    /// ```
    pub fn gather<In, G, K, Out>(
        &mut self,
        inlet: Inlet<In>,
        gather: Gather<In, G, K, Out>,
    ) -> StageBuilder<'_, R, In, impl Code<In, Out = Out>>
    where
        In: Send + 'static,
        G: Send + 'static,
        Out: Send + 'static,
        K: Hash + Eq + Clone + Send + 'static,
    {
        StageBuilder::new(&mut self.draft, &self.sink, inlet, gather)
    }
}
