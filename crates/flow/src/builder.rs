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

/// The default number of threads that run fibers: a second one goes on while code blocks the first.
const DEFAULT_FIBER_THREADS: usize = 2;

/// The id of the next flow of this process. Only uniqueness matters, so relaxed is enough.
static FLOWS: AtomicU64 = AtomicU64::new(1);

/// Builds a [`Flow`] whose retired units yield `R`.
///
/// Declare the ways in ([`inlet`](Self::inlet)), define the stages ([`stage`](Self::stage),
/// [`update`](Self::update)) each ending in [`to`](StageBuilder::to), then [`build`](Self::build).
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
    /// Begins a flow whose retired units yield `R`.
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

    /// Lets the flow live in simulated time, which `now` tells in nanoseconds.
    #[cfg(feature = "trace")]
    pub(crate) fn simulate(&mut self, now: Arc<AtomicU64>) {
        self.draft.simulated = Some(now);
    }

    /// The cap on units in flight (default [`DEFAULT_INFLIGHT`]). It can be changed while the flow runs.
    pub fn inflight(&mut self, units: u64) -> &mut Self {
        self.draft.inflight = units;
        self
    }

    /// The cap on payload bytes in flight (default: none), as [`StageBuilder::bytes`] weighs them.
    ///
    /// A unit larger than the whole budget is admitted alone, and reported as oversize.
    ///
    /// A unit that grows beyond the budget in an idempotent stage is cancelled and waits until its bytes fit; no
    /// newcomer passes it, so it waits for units that are in flight already and for no others. After 100 ms it goes on
    /// beyond the budget at the next moment at which no unit runs, one unit at a time; the next one when the budget is
    /// kept again, or 100 ms later.
    pub fn memory(&mut self, bytes: u64) -> &mut Self {
        self.draft.memory = bytes;
        self
    }

    /// The number of threads that serve all non-blocking stages (default: one per core), at most [`MAX_WORKERS`](crate::MAX_WORKERS).
    pub fn workers(&mut self, threads: usize) -> &mut Self {
        self.draft.workers = threads;
        self
    }

    /// Sets the number of threads that run the [fibers](StageBuilder::fibers) of all stages, at most [`MAX_WORKERS`](crate::MAX_WORKERS)
    /// (default: two, or one where there is one core). One more thread watches over them.
    #[cfg(feature = "fibers")]
    pub fn fiber_threads(&mut self, threads: usize) -> &mut Self {
        self.draft.fiber_threads = threads;
        self
    }

    /// Sets the listener for dead letters whose unit has no ticket; it runs on the worker that gave the unit up.
    ///
    /// Without it, a flow's report keeps the first [`Report::DEAD_LETTERS_KEPT`](crate::Report::DEAD_LETTERS_KEPT) of them.
    pub fn on_dead_letter(&mut self, take: impl Fn(DeadLetter) + Send + Sync + 'static) -> &mut Self {
        self.draft.letters = Some(Box::new(take));
        self
    }

    /// Sets the listener for results of units that have no ticket; it runs on the worker that retired the unit.
    ///
    /// Without it, results are dropped. Only the first call has an effect.
    pub fn on_retire(&mut self, take: impl Fn(R) + Send + Sync + 'static) -> &mut Self {
        let _ = self.sink.on_retire.set(Box::new(take));
        self
    }

    // ---- resources ------------------------------------------------------------------------------------

    /// Declares a resource with a number of tokens.
    pub fn tokens(&mut self, name: impl Into<String>, capacity: u64) -> Resource {
        self.draft.resource(name.into(), Supply::Tokens(capacity), false, false)
    }

    /// Declares a resource whose tokens arrive at a rate and are spent.
    pub fn rate(&mut self, name: impl Into<String>, rate: Rate) -> Resource {
        self.draft.resource(name.into(), Supply::Rate(rate), false, false)
    }

    /// Declares a resource with a number of tokens for each key. Keys are made on demand and forgotten when they have
    /// no users.
    pub fn keyed_tokens(&mut self, name: impl Into<String>, per_key: u64) -> Resource {
        self.draft.resource(name.into(), Supply::Tokens(per_key), true, false)
    }

    /// Declares a resource with a rate for each key.
    pub fn keyed_rate(&mut self, name: impl Into<String>, per_key: Rate) -> Resource {
        self.draft.resource(name.into(), Supply::Rate(per_key), true, false)
    }

    /// Sets the maximum number of keys of a keyed resource that may exist at once (default
    /// [`DEFAULT_MAX_KEYS`](crate::DEFAULT_MAX_KEYS)); a unit with a further key waits until one is forgotten. If all of
    /// them are in use without a pause, that unit waits as long: choose more keys than are busy at once.
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

    /// Declares a pool of up to `most` objects that are made on first use, and replaced after a panic.
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

    /// Declares a stage that takes `T`: the way into it, before the stage is defined.
    pub fn inlet<T: Send + 'static>(&mut self, name: impl Into<String>) -> Inlet<T> {
        let columns = &mut self.draft.columns;
        let column = columns.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(Arc::new(Column::<T>::new())));
        let column = column.downcast_ref::<Arc<Column<T>>>().expect("columns are kept by their type").clone();
        let index = self.draft.names.len() as u16;
        self.draft.declare(name.into(), Box::new(Arc::new(Entry { index, column, needs: OnceLock::new() })));
        Inlet { index, flow: self.draft.id, takes: PhantomData }
    }

    /// The way out of the flow.
    pub fn retire(&self) -> Retire<R> {
        Retire { flow: self.draft.id, yields: PhantomData }
    }

    /// Defines a stage by a closure that makes a new value of its input.
    pub fn stage<In, Out, F>(&mut self, inlet: Inlet<In>, code: F) -> StageBuilder<'_, R, In, impl Code<In, Out = Out>>
    where
        In: Send + 'static,
        Out: Send + 'static,
        F: Fn(&mut In, &mut Cx<'_>) -> Result<Out, Failure> + Send + Sync + 'static,
    {
        StageBuilder::new(&mut self.draft, &self.sink, inlet, Making(FnStage(code)))
    }

    /// Defines a stage by a closure that changes its input in place; the unit goes on with the same payload.
    ///
    /// An attempt that fails leaves the input as it then is, and so does one whose result comes too late
    /// ([`timeout`](StageBuilder::timeout)): if a retry must not meet a half-changed input, change it last.
    pub fn update<T, F>(&mut self, inlet: Inlet<T>, code: F) -> StageBuilder<'_, R, T, impl Code<T, Out = T>>
    where
        T: Send + 'static,
        F: Fn(&mut T, &mut Cx<'_>) -> Result<(), Failure> + Send + Sync + 'static,
    {
        StageBuilder::new(&mut self.draft, &self.sink, inlet, Updating(code))
    }

    /// Defines a stage by a type of its own.
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

    /// Defines a stage by a closure that opens its input as an iterator of other units, its children.
    ///
    /// The flow asks for children as long as it has room for them, so an input may have any number: its unit then waits
    /// for room, and goes on where it stopped. The children go to the stage's exit. They have numbers of their own, and
    /// know their parent's ([`Cx::parent`]). The parent counts as retired when its last child has left; a ticket for it
    /// yields [`Unfinished::Split`](crate::Unfinished::Split) when it has brought out the last one.
    ///
    /// The iterator owns what it reads, and the input stays with the engine for a dead letter. An error or a panic of
    /// the iterator is a failure of the parent, and the children before it go on. The parent is retried only as long as
    /// it has brought out none.
    ///
    /// A flow with `n` stages that split lets admission fill one part in `n + 1` of its cap on units in flight, and
    /// leaves the others to children, stage by stage. If the flow is full of units to be split and nothing else moves,
    /// one of them brings out one child beyond the caps; then its child, and so on: a child comes before a unit that is
    /// not as deep. So the flow exceeds its caps by at most one unit for each level of children.
    ///
    /// The [needs](StageBuilder::need) of the stage are granted for each of its runs, which brings out some children. The
    /// [time limit](StageBuilder::timeout) applies to the closure, and to each step of the iterator. An iterator that
    /// blocks delays the children of its run by that time, and should be in a [blocking](StageBuilder::blocking) stage.
    ///
    /// [`build`](Self::build) refuses a bound on the queue of this stage or of one that it leads to, and a need
    /// that is held until this stage or a later one.
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

    /// Defines a stage that makes groups of its units, by the rules of `gather`; each group goes to the stage's exit as
    /// one unit.
    ///
    /// A unit that joins an open group leaves the flow, and counts as [gathered](crate::Report::gathered). The group's unit is
    /// the first member: it keeps that member's number, and stays in flight until the group is closed, but the cap on
    /// units in flight does not count it meanwhile. A ticket for a member yields
    /// [`Unfinished::Gathered`](crate::Unfinished::Gathered).
    ///
    /// When the flow ends, the groups of the stage from which most others can be reached are closed first, so that what
    /// they become can join the groups of those.
    ///
    /// The [needs](StageBuilder::need) of the stage are granted for the run in which a unit joins, and again for the one
    /// in which a group is closed. A [time limit](StageBuilder::timeout) has no effect here.
    /// [`build`](Self::build) refuses a need that is held through this stage.
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
    /// A program that counts words, and keeps one number for each:
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
