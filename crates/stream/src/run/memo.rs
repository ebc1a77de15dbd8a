//! Memos: the firings of a net in which the data decide, recorded while it runs.
//!
//! The demand-driven rule looks at the counts of the queues and at the phases of the actors, and at nothing else. So
//! the next firing is a function of the state, and the state after it is a function of the state and of the decisions
//! that the data have made on the way of the value. The memo keeps both functions for the states that a run has been
//! in: a run that comes back to a state follows the memo, without counts and without a search for the next actor. Where
//! a decision is new, the rule goes on from that state, and its steps are recorded.
//!
//! The memo holds as long as all sources last, and for a limited number of states and decisions. After that the run goes on by the
//! rule.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use crate::clock::Pass;
use crate::fuse::Stop;
use crate::net::{EdgeId, Fire, Tokens};

use super::machine::{Turn, Works};

/// The maximum number of states.
const MAX_STATES: usize = 4096;

/// The maximum number of words in all states.
const MAX_WORDS: usize = 1 << 16;

/// The maximum number of pieces of the ways of values.
const MAX_PIECES: usize = 4096;

/// A piece of a value's way that is not recorded yet.
const UNKNOWN: usize = usize::MAX;

/// A state, with the firing that follows.
struct State {
    actor: usize,
    turn: Turn,
    fire: Fire,
    /// The first piece of the way of its value.
    way: usize,
    /// The counts and the phases.
    words: Rc<[u64]>,
}

/// A piece of the way of a value: it ends at a decision of the data, or with the firing.
struct Piece {
    /// The branches with code, in the list of the memo.
    branches: Range<usize>,
    end: End,
    /// The decisions before this piece.
    decided: Vec<(usize, bool)>,
}

enum End {
    /// The branch decides; the pieces for no and for yes.
    Decision { branch: usize, next: [usize; 2] },
    /// The value enters these queues, in the list of the memo, and the firing is over.
    Firing { edges: Range<usize>, state: usize },
}

/// See the [module](self).
pub(crate) struct Memo {
    sink: usize,
    states: Vec<State>,
    pieces: Vec<Piece>,
    branches: Vec<usize>,
    edges: Vec<EdgeId>,
    known: HashMap<Rc<[u64]>, usize>,
    /// The present state.
    at: usize,
    /// Whether the rule goes on without the memo.
    pub(crate) is_over: bool,
}

impl Memo {
    /// Returns the memo of a net in its first state; `None` if a queue has no bound.
    pub(crate) fn of(start: &Tokens, sink: usize) -> Option<Self> {
        if start.caps.contains(&u64::MAX) {
            return None;
        }
        let mut memo = Self {
            sink,
            states: Vec::new(),
            pieces: Vec::new(),
            branches: Vec::new(),
            edges: Vec::new(),
            known: HashMap::new(),
            at: 0,
            is_over: false,
        };
        memo.state(&mut start.clone()).map(|_| memo)
    }

    /// Runs until the sink has one more value. Returns `None` if the rule has to go on from `tokens`.
    pub(super) fn follow(&mut self, works: &mut Works, tokens: &mut Tokens, steps: &mut u64) -> Option<Stop> {
        loop {
            let state = &self.states[self.at];
            let is_last = state.actor == self.sink;
            if !is_last && let Some(stop) = works.act(state.actor, &state.turn, steps) {
                let Stop::End = stop else { return Some(stop) };
                tokens.restore(&state.words);
                tokens.ended[state.actor] = true;
                self.is_over = true;
                return None;
            }
            let (actor, way) = (state.actor, state.way);
            if let Err(stop) = self.pass(works, tokens, actor, way) {
                return Some(stop);
            }
            if is_last {
                return Some(Stop::Value);
            }
            if self.is_over {
                return None;
            }
        }
    }

    /// Passes the value of the present firing down its tree and into the queues, and moves on to the next state.
    #[inline(always)]
    fn pass(&mut self, works: &mut Works, tokens: &mut Tokens, actor: usize, mut at: usize) -> Result<(), Stop> {
        let mut before = None;
        while at != UNKNOWN {
            let piece = &self.pieces[at];
            for branch in &self.branches[piece.branches.clone()] {
                works.step(actor, *branch)?;
            }
            match &piece.end {
                End::Decision { branch, next } => {
                    let passes = works.step(actor, *branch)?;
                    before = Some((at, passes));
                    at = next[usize::from(passes)];
                }
                End::Firing { edges, state } => {
                    for edge in &self.edges[edges.clone()] {
                        works.enter(*edge)?;
                    }
                    self.at = *state;
                    return Ok(());
                }
            }
        }
        self.record(works, tokens, before)
    }

    /// Does the rest of a firing by the rule, and records it. `before` is the piece before, with its decision.
    #[cold]
    #[inline(never)]
    fn record(
        &mut self,
        works: &mut Works,
        tokens: &mut Tokens,
        mut before: Option<(usize, bool)>,
    ) -> Result<(), Stop> {
        let state = &self.states[self.at];
        let (actor, fire, of) = (state.actor, state.fire, self.at);
        let mut decided = match before {
            Some((piece, passes)) => self.pieces[piece].decisions_after(passes),
            None => Vec::new(),
        };
        let done = decided.len();
        let resumed = decided.last().map_or(0, |(branch, _)| branch + 1);
        tokens.restore(&state.words);
        tokens.take(actor, fire.takes);
        let view = Arc::clone(&tokens.view);
        let tree = &view.actors[actor].tree;
        let (mut branches, mut entered, mut failed) = (self.branches.len(), Vec::new(), None);
        let step = |branch: usize| {
            if branch < resumed {
                return decided[..done].iter().find(|(at, _)| *at == branch).is_none_or(|(_, passes)| *passes);
            }
            if failed.is_some() || !works.has_code(actor, branch) {
                return failed.is_none();
            }
            let passes = works.step(actor, branch).unwrap_or_else(|stop| {
                failed = Some(stop);
                false
            });
            if tree[branch].1 != Pass::Data {
                self.branches.push(branch);
                return passes;
            }
            let end = End::Decision { branch, next: [UNKNOWN; 2] };
            let piece = Piece { branches: branches..self.branches.len(), end, decided: decided.clone() };
            self.pieces.push(piece);
            link(&mut self.states[of], &mut self.pieces, before);
            (before, branches) = (Some((self.pieces.len() - 1, passes)), self.branches.len());
            decided.push((branch, passes));
            passes
        };
        if fire.gives {
            tokens.give(actor, step, |edge| entered.push(edge));
        }
        if let Some(stop) = failed {
            return Err(stop);
        }
        let edges = self.edges.len();
        for edge in entered.into_iter().filter(|edge| view.ends[*edge].1 != self.sink) {
            works.enter(edge)?;
            self.edges.push(edge);
        }
        let Some(state) = self.state(tokens).filter(|_| self.pieces.len() < MAX_PIECES) else {
            self.is_over = true;
            return Ok(());
        };
        let end = End::Firing { edges: edges..self.edges.len(), state };
        self.pieces.push(Piece { branches: branches..self.branches.len(), end, decided });
        link(&mut self.states[of], &mut self.pieces, before);
        self.at = state;
        Ok(())
    }

    /// Returns the number of the state of `tokens`; `None` beyond the limits, or if no actor can fire.
    fn state(&mut self, tokens: &mut Tokens) -> Option<usize> {
        let words: Rc<[u64]> = tokens.words().into();
        if let Some(known) = self.known.get(&words) {
            return Some(*known);
        }
        let state = self.states.len();
        if state == MAX_STATES || (state + 1) * words.len() > MAX_WORDS {
            return None;
        }
        // The rule names the firing, which then does not take place.
        let Ok(Err((actor, fire))) = tokens.drive(self.sink, |_, actor, fire| Err((actor, fire))) else { return None };
        let turn = Turn { port: fire.takes.port(), phase: tokens.phase(actor), gives: fire.gives };
        self.known.insert(Rc::clone(&words), state);
        self.states.push(State { actor, turn, fire, way: UNKNOWN, words });
        Some(state)
    }
}

impl Piece {
    /// Returns the decisions up to the end of this piece.
    fn decisions_after(&self, passes: bool) -> Vec<(usize, bool)> {
        let mut decided = self.decided.clone();
        if let End::Decision { branch, .. } = self.end {
            decided.push((branch, passes));
        }
        decided
    }
}

/// Links the last piece to the piece before it, or to its state.
fn link(state: &mut State, pieces: &mut [Piece], before: Option<(usize, bool)>) {
    let last = pieces.len() - 1;
    match before {
        None => state.way = last,
        Some((piece, passes)) => {
            if let End::Decision { next, .. } = &mut pieces[piece].end {
                next[usize::from(passes)] = last;
            }
        }
    }
}
