//! Several objects as one, for conditions that cannot be checked one object at a time.

use super::{Call, Object, Spec};
use crate::value::Values;

/// The states of all objects of a specification together.
#[derive(Clone, Debug)]
pub(crate) struct Product<'s, S>(pub(crate) &'s S);

impl<S: Spec> Spec for Product<'_, S> {
    /// The objects used so far, ascending, each with its state.
    type State = Vec<(Object, S::State)>;

    fn initial(&self) -> Self::State {
        Vec::new()
    }

    fn step(&self, state: &Self::State, call: &Call<'_>) -> Option<Self::State> {
        let mut first = None;
        self.successors(state, call, &mut |next| {
            first.get_or_insert(next);
        });
        first
    }

    fn successors(&self, state: &Self::State, call: &Call<'_>, next: &mut dyn FnMut(Self::State)) {
        let object = self.0.object(call);
        match state.binary_search_by_key(&object, |(object, _)| *object) {
            Ok(place) => self.0.successors(&state[place].1, call, &mut |after| {
                let mut state = state.clone();
                state[place].1 = after;
                next(state);
            }),
            Err(place) => self.0.successors(&self.0.initial(), call, &mut |after| {
                let mut state = state.clone();
                state.insert(place, (object, after));
                next(state);
            }),
        }
    }

    fn state_bytes(&self, state: &Self::State) -> usize {
        size_of_val(state)
            + state.iter().map(|(_, state)| size_of::<Object>() + self.0.state_bytes(state)).sum::<usize>()
    }

    fn describe(&self, state: &Self::State, values: &Values) -> String {
        state.iter().map(|(_, state)| self.0.describe(state, values)).collect::<Vec<_>>().join(", ")
    }
}
