//! The specification as a table: states and operations are numbers, and each step is computed once.

use rustc_hash::FxHashMap;

use crate::budget::{Budget, Exhausted, HASH_FACTOR};
use crate::part::Part;
use crate::spec::{Call, DynSpec, States};

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// No state: in this state, the operation cannot return its answer.
    Illegal,
    /// One state.
    To(u32),
    /// Several states, by their number in [`Machine::choice`].
    Choice(u32),
}

/// The numbered states and operations of a part.
pub(super) struct Machine<'a> {
    /// The part whose operations are numbered.
    pub(super) part: &'a Part<'a>,
    /// The distinct calls: those that the specification can distinguish.
    calls: Vec<Call<'a>>,
    /// Whether each call is pure.
    pure: Vec<bool>,
    /// The number of each position's call.
    kinds: Vec<u32>,
    states: Box<dyn States + 'a>,
    steps: FxHashMap<u64, Step>,
    choices: Vec<Vec<u32>>,
}

impl<'a> Machine<'a> {
    /// The machine of the part. `states` belong to `spec`.
    pub(super) fn new(
        part: &'a Part<'a>,
        spec: &dyn DynSpec,
        states: Box<dyn States + 'a>,
        budget: &mut Budget,
    ) -> Result<Self, Exhausted> {
        budget.charge(part.len() * size_of::<u32>())?;
        let mut machine = Machine {
            part,
            calls: Vec::new(),
            pure: Vec::new(),
            kinds: Vec::with_capacity(part.len()),
            states,
            steps: FxHashMap::default(),
            choices: Vec::new(),
        };
        let mut numbers = FxHashMap::default();
        let entry = (size_of::<Call<'_>>() + 1) + HASH_FACTOR * 48;
        for position in 0..part.len() {
            let call = part.call_at(position);
            // Calls that the specification cannot distinguish share a number, so their steps are computed once.
            let process = if spec.sees_process() { call.process } else { 0 };
            let next = machine.calls.len() as u32;
            let number = *numbers.entry((process, call.op, call.key, call.input, call.output)).or_insert(next);
            if number == next {
                budget.charge(entry)?;
                machine.pure.push(spec.pure(&call));
                machine.calls.push(call);
            }
            machine.kinds.push(number);
        }
        Ok(machine)
    }

    /// The state before the first operation.
    pub(super) fn initial(&mut self, budget: &mut Budget) -> Result<u32, Exhausted> {
        self.states.initial(budget)
    }

    /// The states computed so far.
    pub(super) fn into_states(self) -> Box<dyn States + 'a> {
        self.states
    }

    /// The number of a position's call.
    #[inline]
    pub(super) fn kind(&self, position: usize) -> u32 {
        self.kinds[position]
    }

    /// Whether the position's operation leaves every state as it is.
    #[inline]
    pub(super) fn is_pure(&self, position: usize) -> bool {
        self.pure[self.kinds[position] as usize]
    }

    /// The states of a choice.
    #[inline]
    pub(super) fn choice(&self, number: u32) -> &[u32] {
        &self.choices[number as usize]
    }

    #[inline]
    pub(super) fn step(&mut self, state: u32, kind: u32, budget: &mut Budget) -> Result<Step, Exhausted> {
        let key = u64::from(state) << 32 | u64::from(kind);
        match self.steps.get(&key) {
            Some(&step) => Ok(step),
            None => self.compute(state, kind, budget),
        }
    }

    /// Computes a step with the specification, once for each state and call.
    #[cold]
    fn compute(&mut self, state: u32, kind: u32, budget: &mut Budget) -> Result<Step, Exhausted> {
        let numbers = self.states.successors(state, &self.calls[kind as usize], budget)?;
        let step = match *numbers {
            [] => Step::Illegal,
            [state] => Step::To(state),
            _ => {
                budget.charge(size_of::<Vec<u32>>() * 2 + numbers.len() * size_of::<u32>())?;
                self.choices.push(numbers);
                Step::Choice(self.choices.len() as u32 - 1)
            }
        };
        budget.charge(HASH_FACTOR * size_of::<(u64, Step)>())?;
        self.steps.insert(u64::from(state) << 32 | u64::from(kind), step);
        Ok(step)
    }
}
