//! The oracle: tries every order; slow, and simple enough to trust.

use std::collections::HashSet;

use super::{Act, Answer};
use crate::model::{Kind, Model};
use crate::operation::Op;

/// An object's state: its contents, in the order that matters to its kind.
type State = Vec<i64>;

const NULL: i64 = i64::MIN;

pub(super) struct Oracle<'a> {
    model: &'a Model,
    acts: &'a [Act],
}

impl<'a> Oracle<'a> {
    pub(super) fn new(model: &'a Model, acts: &'a [Act]) -> Self {
        Oracle { model, acts }
    }

    /// Whether these acts alone have a legal order.
    pub(super) fn explains(&self, rows: &[usize]) -> bool {
        self.search(rows, 0, &self.initial(), &mut HashSet::new())
    }

    fn search(&self, rows: &[usize], done: u32, state: &State, seen: &mut HashSet<(u32, State)>) -> bool {
        let is_left = |k: usize| done & (1 << k) == 0;
        let left = || (0..rows.len()).filter(|&k| is_left(k));
        if left().all(|k| self.acts[rows[k]].ret.is_none()) {
            return true;
        }
        if !seen.insert((done, state.clone())) {
            return false;
        }
        let first_return = left().filter_map(|k| self.acts[rows[k]].ret).min().expect("one has returned");
        left().filter(|&k| self.acts[rows[k]].call <= first_return).any(|k| {
            let next = self.step(state, &self.acts[rows[k]]);
            next.iter().any(|state| self.search(rows, done | 1 << k, state, seen))
        })
    }

    /// Panics unless `order` is a legal order of all acts.
    pub(super) fn check_order(&self, order: &[usize]) {
        let mut states = vec![self.initial()];
        let mut done = vec![false; self.acts.len()];
        let mut latest_call = 0;
        for &row in order {
            let act = &self.acts[row];
            assert!(!done[row], "{row} is twice in {order:?} of {:#?}", self.acts);
            done[row] = true;
            latest_call = latest_call.max(act.call);
            assert!(act.ret.is_none_or(|ret| latest_call <= ret), "{row} is late in {order:?} of {:#?}", self.acts);
            states = states.iter().flat_map(|state| self.step(state, act)).collect();
            assert!(!states.is_empty(), "{row} is impossible in {order:?} of {:#?}", self.acts);
        }
        for (row, act) in self.acts.iter().enumerate() {
            assert!(done[row] || act.ret.is_none(), "{row} is missing in {order:?} of {:#?}", self.acts);
        }
    }

    fn initial(&self) -> State {
        match self.model.kind {
            Kind::Set | Kind::Allocator | Kind::Mutex => Vec::new(),
            Kind::Register => vec![self.model.initial.as_int().unwrap_or(NULL)],
            _ => Vec::new(),
        }
    }

    /// The states after an act; none if it cannot give its answer.
    fn step(&self, state: &State, act: &Act) -> Vec<State> {
        let input = act.input.unwrap_or(NULL);
        let answer = act.ret.map(|_| act.output);
        let may = |given: Answer| answer.is_none_or(|answer| answer == given);
        let some = |value: i64| if value == NULL { Answer::Null } else { Answer::Int(value) };
        let when = |possible: bool, state: State| if possible { vec![state] } else { Vec::new() };
        let with = |at: usize| {
            let mut state = state.clone();
            state.insert(at, input);
            state
        };
        let without = |at: usize| {
            let mut state = state.clone();
            state.remove(at);
            state
        };
        match act.op {
            Op::READ => when(may(some(state[0])), state.clone()),
            Op::WRITE => vec![vec![input]],
            Op::ENQUEUE | Op::PUSH => vec![with(state.len())],
            Op::INSERT => vec![with(state.partition_point(|&value| value < input))],
            Op::DEQUEUE | Op::POP | Op::DELETE_MIN if state.is_empty() => when(may(Answer::Null), state.clone()),
            Op::DEQUEUE | Op::DELETE_MIN => when(may(some(state[0])), without(0)),
            Op::POP => when(may(some(state[state.len() - 1])), without(state.len() - 1)),
            Op::ADD | Op::REMOVE | Op::CONTAINS => {
                let at = state.iter().position(|&element| element == input);
                let (given, after) = match (act.op, at) {
                    (Op::ADD, None) => (true, with(state.partition_point(|&element| element < input))),
                    (Op::REMOVE, Some(at)) => (true, without(at)),
                    (Op::ADD | Op::REMOVE, _) => (false, state.clone()),
                    (_, at) => (at.is_some(), state.clone()),
                };
                when(may(Answer::Bool(given)), after)
            }
            Op::ALLOC => self.alloc(state, answer),
            Op::FREE => state.iter().position(|&object| object == input).map(without).into_iter().collect(),
            Op::ACQUIRE if state.is_empty() => when(may(Answer::Null), vec![i64::from(act.process)]),
            Op::ACQUIRE => when(may(Answer::Bool(false)), state.clone()),
            Op::RELEASE => when(*state == [i64::from(act.process)], Vec::new()),
            op => unreachable!("{op:?}"),
        }
    }

    /// The states after an allocation with this `answer`, if it is known.
    fn alloc(&self, state: &State, answer: Option<Answer>) -> Vec<State> {
        let has_room = self.model.capacity.is_none_or(|capacity| (state.len() as u64) < capacity);
        let take = |object: i64| {
            let mut state = state.clone();
            state.insert(state.partition_point(|&other| other < object), object);
            state
        };
        let is_free = |object: &i64| has_room && !state.contains(object);
        match answer {
            Some(Answer::Int(object)) => Some(object).filter(is_free).map(take).into_iter().collect(),
            Some(_) if self.model.capacity.is_some() && has_room => Vec::new(),
            Some(_) => vec![state.clone()],
            // Any object that is freed at some time, or one that never is.
            None => {
                let freed = self.acts.iter().filter(|act| act.op == Op::FREE).filter_map(|act| act.input);
                freed.chain([state.first().map_or(0, |&least| least.min(0)) - 1]).filter(is_free).map(take).collect()
            }
        }
    }
}
