//! Memos. If the data decide which values pass, the firings of the net are recorded while it runs.
//!
//! The demand-driven rule reads only the counts of the queues and the phases of the actors. The next firing is therefore a
//! function of this state. The state after the firing is a function of this state and of the data decisions for the firing's
//! value. The memo stores both functions for all states that the run has been in; it stores a firing as a list of
//! [parts](super::work). When the run returns to a known state, it follows the memo, without updating counts and without a search
//! for the next actor. After a decision that is new in this state, the run continues by the rule, and the memo records the steps.
//!
//! The memo is used until a source ends, or until it has reached its maximum number of states or of parts. From then on, the run
//! continues by the rule.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use crate::clock::Pass;
use crate::fuse::Stop;
use crate::net::{Fire, Tokens};

use super::work::{Part, Position, Turn, UNKNOWN, Works};

/// The maximum number of states.
const MAX_STATES: usize = 4096;

/// The maximum number of words in all states.
const MAX_WORDS: usize = 1 << 16;

/// The maximum number of parts of all firings.
const MAX_PARTS: usize = 1 << 14;

/// A state, with its next firing.
struct State {
    actor: usize,
    fire: Fire,
    /// The position of the firing's first part. The part after it is a jump to the other parts of the firing.
    begin: usize,
    /// The counts and the phases.
    words: Rc<[u64]>,
}

/// See the [module](self).
pub(crate) struct Memo {
    sink: usize,
    /// The states, ordered by the positions of their parts.
    states: Vec<State>,
    parts: Vec<Part>,
    /// For each part that is a decision, the decisions before it in the same firing.
    decisions: HashMap<usize, Vec<(usize, bool)>>,
    known: HashMap<Rc<[u64]>, usize>,
    position: Position,
    /// Whether the run continues by the rule.
    pub(crate) is_over: bool,
}

impl Memo {
    /// Returns the memo of a net in its first state; `None` if a queue has no bound, because its states might never recur.
    pub(crate) fn of(start: &Tokens, sink: usize) -> Option<Self> {
        if start.caps.contains(&u64::MAX) {
            return None;
        }
        let mut memo = Self {
            sink,
            states: Vec::new(),
            parts: Vec::new(),
            decisions: HashMap::new(),
            known: HashMap::new(),
            position: Position::default(),
            is_over: false,
        };
        memo.state(&mut start.clone()).map(|_| memo)
    }

    /// Follows the memo and calls `give` for each value that reaches the sink, until `give` breaks. Returns `None` if the
    /// run must continue by the rule, from `tokens`.
    pub(super) fn follow(
        &mut self,
        works: &mut Works,
        tokens: &mut Tokens,
        steps: &mut u64,
        give: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Option<Stop> {
        while !self.is_over {
            match works.follow(&self.parts, &mut self.position, steps, give) {
                Some(Stop::End) => {
                    let state = &self.states[self.at()];
                    tokens.restore(&state.words);
                    tokens.ended[state.actor] = true;
                    self.is_over = true;
                }
                Some(stop) => return Some(stop),
                None => {
                    if let Err(stop) = self.record(works, tokens, steps) {
                        return Some(stop);
                    }
                }
            }
        }
        None
    }

    /// Returns the number of the current state.
    fn at(&self) -> usize {
        self.states.partition_point(|state| state.begin <= self.position.begin) - 1
    }

    /// Completes the current firing by the rule, and records its remaining parts.
    #[cold]
    #[inline(never)]
    fn record(&mut self, works: &mut Works, tokens: &mut Tokens, steps: &mut u64) -> Result<(), Stop> {
        let state = &self.states[self.at()];
        let (actor, fire, begin) = (state.actor, state.fire, self.parts.len());
        tokens.restore(&state.words);
        tokens.take(actor, fire.takes);
        // The new parts are linked to the last decision or, if there was none, to the first part of the firing.
        let (unknown, mut decided) = match self.position.decided {
            Some((at, passes)) => {
                let Part::Decide { branch, next, .. } = &mut self.parts[at] else { unreachable!("it has decided") };
                let decided = self.decisions[&at].iter().copied().chain([(*branch, passes)]).collect();
                (&mut next[usize::from(passes)], decided)
            }
            None => {
                let Part::Go(next) = &mut self.parts[state.begin + 1] else { unreachable!("a state goes on") };
                (next, Vec::new())
            }
        };
        *unknown = begin;
        let done = decided.len();
        let resumed = decided.last().map_or(0, |(branch, _)| branch + 1);
        let view = Arc::clone(&tokens.view);
        let tree = &view.actors[actor].tree;
        let (mut entered, mut failed) = (Vec::new(), None);
        let step = |branch: usize| {
            if branch < resumed {
                return decided[..done].iter().find(|(at, _)| *at == branch).is_none_or(|(_, passes)| *passes);
            }
            if failed.is_some() || !works.has_code(actor, branch) {
                return failed.is_none();
            }
            let passes = works.step(actor, branch, steps).unwrap_or_else(|stop| {
                failed = Some(stop);
                false
            });
            let at = self.parts.len();
            if tree[branch].1 != Pass::Data {
                self.parts.push(Part::Step { actor, branch });
                return passes;
            }
            let mut next = [UNKNOWN; 2];
            next[usize::from(passes)] = at + 1;
            self.parts.push(Part::Decide { actor, branch, next });
            self.decisions.insert(at, decided.clone());
            decided.push((branch, passes));
            passes
        };
        if fire.gives {
            tokens.give(actor, step, |edge| entered.push(edge));
        }
        if let Some(stop) = failed {
            return Err(stop);
        }
        for edge in entered.into_iter().filter(|edge| view.ends[*edge].1 != self.sink) {
            works.enter(edge)?;
            self.parts.push(Part::Enter(edge));
        }
        let end = self.parts.len();
        self.parts.push(Part::Go(UNKNOWN));
        let Some(state) = self.state(tokens).filter(|_| self.parts.len() < MAX_PARTS) else {
            self.is_over = true;
            return Ok(());
        };
        let next = self.states[state].begin;
        self.parts[end] = Part::Go(next);
        self.position = Position { begin: next, ..Position::default() };
        Ok(())
    }

    /// Returns the number of the state that `tokens` is in, and records the state if it is new. Returns `None` if a limit is
    /// reached, or if no actor can fire.
    fn state(&mut self, tokens: &mut Tokens) -> Option<usize> {
        let words: Rc<[u64]> = tokens.words().into();
        if let Some(known) = self.known.get(&words) {
            return Some(*known);
        }
        let state = self.states.len();
        if state == MAX_STATES || (state + 1) * words.len() > MAX_WORDS {
            return None;
        }
        // The rule chooses the firing, which is returned as an error, so that it is not executed.
        let Ok(Err((actor, fire))) = tokens.drive(self.sink, |_, actor, fire| Err((actor, fire))) else { return None };
        let turn = Turn { port: fire.takes.port(), phase: tokens.phase(actor), gives: fire.gives };
        let begin = self.parts.len();
        self.parts.push(if actor == self.sink { Part::Give } else { Part::Act { actor, turn } });
        self.parts.push(Part::Go(UNKNOWN));
        self.known.insert(Rc::clone(&words), state);
        self.states.push(State { actor, fire, begin, words });
        Some(state)
    }
}
