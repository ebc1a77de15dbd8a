//! A specification with numbered states. The search works on the numbers alone, so it is compiled once for all
//! specifications. It makes a virtual call only for a step that it has not computed before.

use std::ops::Deref;

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use super::{Call, Discipline, Object, Product, Spec};
use crate::budget::{Budget, Exhausted, HASH_FACTOR};
use crate::value::{Value, Values};

/// A [`Spec`] with its type of state erased.
pub(crate) trait DynSpec {
    /// [`Spec::SEES_PROCESS`].
    fn sees_process(&self) -> bool;

    /// The states of one object.
    fn states(&self) -> Box<dyn States + '_>;

    /// The states of all objects together.
    fn states_of_all(&self) -> Box<dyn States + '_>;

    /// [`Spec::object`].
    fn object(&self, call: &Call<'_>) -> Object;

    /// [`Spec::pure`].
    fn pure(&self, call: &Call<'_>) -> bool;

    /// [`Spec::group`].
    fn group(&self, call: &Call<'_>) -> Option<Value>;

    /// [`Spec::pins`].
    fn pins(&self, call: &Call<'_>) -> bool;

    /// [`Spec::discipline`].
    fn discipline(&self) -> Option<Discipline>;

    /// [`Spec::consumer`].
    fn consumer(&self, call: &Call<'_>) -> Option<Value>;
}

/// The states that a check has computed, each with a number.
pub(crate) trait States {
    /// The state before the first operation.
    fn initial(&mut self, budget: &mut Budget) -> Result<u32, Exhausted>;

    /// All states to which the operation can lead.
    fn successors(&mut self, state: u32, call: &Call<'_>, budget: &mut Budget) -> Result<Vec<u32>, Exhausted>;

    /// The state as text.
    fn describe(&self, state: u32, values: &Values) -> String;
}

impl<S: Spec> DynSpec for S {
    fn sees_process(&self) -> bool {
        S::SEES_PROCESS
    }

    fn states(&self) -> Box<dyn States + '_> {
        Box::new(Numbered::new(self))
    }

    fn states_of_all(&self) -> Box<dyn States + '_> {
        Box::new(Numbered::new(Box::new(Product(self))))
    }

    fn object(&self, call: &Call<'_>) -> Object {
        Spec::object(self, call)
    }

    fn pure(&self, call: &Call<'_>) -> bool {
        Spec::pure(self, call)
    }

    fn group(&self, call: &Call<'_>) -> Option<Value> {
        Spec::group(self, call)
    }

    fn pins(&self, call: &Call<'_>) -> bool {
        Spec::pins(self, call)
    }

    fn discipline(&self) -> Option<Discipline> {
        Spec::discipline(self)
    }

    fn consumer(&self, call: &Call<'_>) -> Option<Value> {
        Spec::consumer(self, call)
    }
}

/// The numbered states of the specification to which `R` points.
struct Numbered<R: Deref<Target: Spec>> {
    spec: R,
    states: IndexSet<<R::Target as Spec>::State, FxBuildHasher>,
}

impl<R: Deref<Target: Spec>> Numbered<R> {
    fn new(spec: R) -> Self {
        Numbered { spec, states: IndexSet::default() }
    }

    fn number(&mut self, state: <R::Target as Spec>::State, budget: &mut Budget) -> Result<u32, Exhausted> {
        if let Some(number) = self.states.get_index_of(&state) {
            return Ok(number as u32);
        }
        budget.charge(self.spec.state_bytes(&state) + HASH_FACTOR * 2 * size_of::<usize>())?;
        Ok(self.states.insert_full(state).0 as u32)
    }
}

impl<R: Deref<Target: Spec>> States for Numbered<R> {
    fn initial(&mut self, budget: &mut Budget) -> Result<u32, Exhausted> {
        self.number(self.spec.initial(), budget)
    }

    fn successors(&mut self, state: u32, call: &Call<'_>, budget: &mut Budget) -> Result<Vec<u32>, Exhausted> {
        let mut next = Vec::new();
        self.spec.successors(&self.states[state as usize], call, &mut |state| next.push(state));
        // The states are collected first, because numbering a state changes the table that the specification borrows.
        next.into_iter().map(|state| self.number(state, budget)).collect()
    }

    fn describe(&self, state: u32, values: &Values) -> String {
        self.spec.describe(&self.states[state as usize], values)
    }
}
