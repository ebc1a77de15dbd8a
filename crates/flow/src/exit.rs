//! The exits of stages: another stage, retirement, or one of several exits that the result selects.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use crate::engine::claims::NO_STAGE;
use crate::engine::units::column::{Column, Row};
use crate::engine::units::record::UnitRef;
use crate::entry::Entry;
use crate::inlet::Inlet;
use crate::ticket::Sink;

/// The exit at which units leave the flow; their results have type `R`.
pub struct Retire<R> {
    pub(crate) flow: u64,
    pub(crate) yields: PhantomData<fn(R)>,
}

impl<R> Clone for Retire<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Retire<R> {}

impl<R> fmt::Debug for Retire<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Retire")
    }
}

/// One of two results, for a stage that branches. The exit of such a stage is a pair of exits. For more branches,
/// nest `Either`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Either<A, B> {
    /// Takes the pair's first exit.
    Left(A),
    /// Takes the pair's second exit.
    Right(B),
}

/// An exit that a stage with results of type `T` may have.
///
/// | exit | takes | goes to |
/// | --- | --- | --- |
/// | [`Inlet<T>`] | `T` | that stage |
/// | [`Retire<T>`] | `T` | retirement |
/// | `(a, b)` | [`Either<A, B>`] | `a` or `b`, by the variant |
/// | [`select`] | `T` | one of several exits, by a function |
pub trait Exit<T>: sealed::Wire<T> {}

impl<T, X: sealed::Wire<T>> Exit<T> for X {}

/// One of several exits for the same type. `choose` returns the index of the exit to take.
///
/// # Panics
/// If `choose` returns an index beyond the last exit, the unit fails as if its stage had panicked.
pub fn select<T, F>(choose: F, exits: impl IntoIterator<Item = Either<Inlet<T>, Retire<T>>>) -> Select<T, F>
where
    F: Fn(&T) -> usize + Send + Sync + 'static,
{
    Select { choose, exits: exits.into_iter().collect() }
}

impl<T> From<Inlet<T>> for Either<Inlet<T>, Retire<T>> {
    fn from(inlet: Inlet<T>) -> Self {
        Either::Left(inlet)
    }
}

impl<T> From<Retire<T>> for Either<Inlet<T>, Retire<T>> {
    fn from(retire: Retire<T>) -> Self {
        Either::Right(retire)
    }
}

/// The exit that [`select`] returns.
pub struct Select<T, F> {
    choose: F,
    exits: Vec<Either<Inlet<T>, Retire<T>>>,
}

impl<T, F> fmt::Debug for Select<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Select").field("exits", &self.exits).finish_non_exhaustive()
    }
}

/// The destination of a unit, and its weight there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aim {
    /// The next stage, or [`NO_STAGE`] for retirement.
    pub(crate) stage: u16,
    /// The payload bytes there; `None` if they do not change.
    pub(crate) bytes: Option<u64>,
    /// The index of the exit, if there are several.
    branch: usize,
}

impl Aim {
    /// Aims at the destination that [`Route::direct`] returned.
    pub(crate) fn at(stage: u16) -> Self {
        Aim { stage, bytes: None, branch: 0 }
    }
}

pub(crate) mod sealed {
    use super::*;

    /// Connects an exit to the stages that it names.
    pub trait Wire<T> {
        #[doc(hidden)]
        type Route: Route<T>;
        #[doc(hidden)]
        fn wire(self, entries: &mut Wiring<'_>) -> Self::Route;
    }
}

/// A connected exit.
pub trait Route<T>: Send + Sync + 'static {
    /// Whether every stage that the exit leads to takes a `T`, so that a value can stay in the column of `T`.
    const SAME_COLUMN: bool;
    /// The destination, if it is the same for all values and no need or weight there depends on the value.
    fn direct(&self) -> Option<u16> {
        None
    }
    /// Decides where `value` goes, and computes its needs there. Runs the user's functions. Changes only the unit's
    /// `next_asks`, so that a panic leaves the unit as it was.
    fn aim(&self, value: &T, unit: &mut UnitRef<'_>) -> Aim;
    /// Moves the value to the destination `aim`. `ticketed` says whether a ticket for the unit may exist.
    fn land(&self, value: T, aim: Aim, row: &mut Row, ticketed: bool);
}

/// The parts of a flow that `wire` may read, and the edges that it adds.
pub struct Wiring<'a> {
    pub(crate) flow: u64,
    pub(crate) entries: &'a [Box<dyn std::any::Any + Send>],
    pub(crate) sink: &'a dyn std::any::Any,
    /// The stages to which the exit may lead.
    pub(crate) edges: Vec<u16>,
    pub(crate) retires: bool,
    /// Whether an inlet or exit of another flow was used.
    pub(crate) foreign: bool,
}

pub struct ToStage<T>(Arc<Entry<T>>);

impl<T: Send + 'static> sealed::Wire<T> for Inlet<T> {
    type Route = ToStage<T>;
    fn wire(self, wiring: &mut Wiring<'_>) -> ToStage<T> {
        let entry = wiring.entries.get(usize::from(self.index)).and_then(|e| e.downcast_ref::<Arc<Entry<T>>>());
        match entry.filter(|_| self.flow == wiring.flow) {
            Some(entry) => {
                wiring.edges.push(self.index);
                ToStage(entry.clone())
            }
            None => {
                wiring.foreign = true;
                let nowhere = Entry { index: NO_STAGE, column: Arc::new(Column::new()), needs: OnceLock::new() };
                ToStage(Arc::new(nowhere))
            }
        }
    }
}

impl<T: Send + 'static> Route<T> for ToStage<T> {
    const SAME_COLUMN: bool = true;

    fn direct(&self) -> Option<u16> {
        self.0.is_plain().then_some(self.0.index)
    }

    #[inline]
    fn aim(&self, value: &T, unit: &mut UnitRef<'_>) -> Aim {
        Aim { stage: self.0.index, bytes: self.0.note_demand(value, unit), branch: 0 }
    }

    #[inline]
    fn land(&self, value: T, _: Aim, row: &mut Row, _: bool) {
        // SAFETY: the entry's column belongs to the flow whose stage this exit is part of, and so does `row`.
        *unsafe { self.0.column.cell(row) } = Some(value);
    }
}

pub struct ToSink<R>(Option<Arc<Sink<R>>>);

impl<R: Send + 'static> sealed::Wire<R> for Retire<R> {
    type Route = ToSink<R>;
    fn wire(self, wiring: &mut Wiring<'_>) -> ToSink<R> {
        wiring.retires = true;
        let sink = wiring.sink.downcast_ref::<Arc<Sink<R>>>().filter(|_| self.flow == wiring.flow);
        wiring.foreign |= sink.is_none();
        ToSink(sink.cloned())
    }
}

impl<R: Send + 'static> Route<R> for ToSink<R> {
    const SAME_COLUMN: bool = true;

    fn direct(&self) -> Option<u16> {
        Some(NO_STAGE)
    }

    #[inline]
    fn aim(&self, _: &R, _: &mut UnitRef<'_>) -> Aim {
        Aim { stage: NO_STAGE, bytes: None, branch: 0 }
    }

    #[inline]
    fn land(&self, value: R, _: Aim, row: &mut Row, ticketed: bool) {
        self.0.as_ref().expect("build() refuses a foreign exit").retire(value, row, ticketed);
    }
}

impl<A, B, X, Y> sealed::Wire<Either<A, B>> for (X, Y)
where
    X: sealed::Wire<A>,
    Y: sealed::Wire<B>,
{
    type Route = (X::Route, Y::Route);
    fn wire(self, wiring: &mut Wiring<'_>) -> Self::Route {
        (self.0.wire(wiring), self.1.wire(wiring))
    }
}

impl<A, B, X: Route<A>, Y: Route<B>> Route<Either<A, B>> for (X, Y) {
    const SAME_COLUMN: bool = false;

    fn aim(&self, value: &Either<A, B>, unit: &mut UnitRef<'_>) -> Aim {
        match value {
            Either::Left(a) => self.0.aim(a, unit),
            Either::Right(b) => self.1.aim(b, unit),
        }
    }

    fn land(&self, value: Either<A, B>, aim: Aim, row: &mut Row, ticketed: bool) {
        match value {
            Either::Left(a) => self.0.land(a, aim, row, ticketed),
            Either::Right(b) => self.1.land(b, aim, row, ticketed),
        }
    }
}

pub struct ToSelected<T, F> {
    choose: F,
    routes: Vec<Either<ToStage<T>, ToSink<T>>>,
}

impl<T, F> sealed::Wire<T> for Select<T, F>
where
    T: Send + 'static,
    F: Fn(&T) -> usize + Send + Sync + 'static,
{
    type Route = ToSelected<T, F>;
    fn wire(self, wiring: &mut Wiring<'_>) -> Self::Route {
        let routes = self.exits.into_iter().map(|exit| match exit {
            Either::Left(inlet) => Either::Left(inlet.wire(wiring)),
            Either::Right(retire) => Either::Right(retire.wire(wiring)),
        });
        ToSelected { routes: routes.collect(), choose: self.choose }
    }
}

impl<T, F> Route<T> for ToSelected<T, F>
where
    T: Send + 'static,
    F: Fn(&T) -> usize + Send + Sync + 'static,
{
    const SAME_COLUMN: bool = true;

    fn aim(&self, value: &T, unit: &mut UnitRef<'_>) -> Aim {
        let branch = (self.choose)(value);
        let aim = match self.routes.get(branch) {
            Some(Either::Left(stage)) => stage.aim(value, unit),
            Some(Either::Right(sink)) => sink.aim(value, unit),
            None => panic!("exit {branch} was selected of {}", self.routes.len()),
        };
        Aim { branch, ..aim }
    }

    fn land(&self, value: T, aim: Aim, row: &mut Row, ticketed: bool) {
        match &self.routes[aim.branch] {
            Either::Left(stage) => stage.land(value, aim, row, ticketed),
            Either::Right(sink) => sink.land(value, aim, row, ticketed),
        }
    }
}
