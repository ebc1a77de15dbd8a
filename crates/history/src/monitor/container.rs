//! Queues, stacks and priority queues: each has a procedure on the lives of its values.

use super::life::{Life, Outcome, Step};
use super::span::Span;
use super::window::Failure;
use super::{priority, queue, stack};
use crate::operation::Op;

/// The kind of the container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Container {
    Queue,
    Stack,
    PriorityQueue,
}

impl Container {
    /// The operations that insert and remove values.
    pub(super) fn operations(self) -> (Op, Op) {
        match self {
            Container::Queue => (Op::ENQUEUE, Op::DEQUEUE),
            Container::Stack => (Op::PUSH, Op::POP),
            Container::PriorityQueue => (Op::INSERT, Op::DELETE_MIN),
        }
    }

    /// Decides a history without pending removals; for a priority queue, `lives` are in ascending order of priority.
    pub(super) fn decide(self, lives: &[Life], empties: &[Span]) -> Outcome {
        match self {
            Container::Queue => queue::decide(lives, empties),
            Container::Stack => stack::decide(lives, empties),
            Container::PriorityQueue => priority::decide(lives, empties),
        }
    }

    /// Decides a history whose removals have all returned, and finds the time around a failure.
    pub(super) fn decide_and_tell(self, lives: &[Life], empties: &[Span]) -> Result<Vec<Step>, Failure> {
        match self {
            Container::Queue => queue::decide_and_tell(lives, empties),
            Container::Stack => stack::decide_and_tell(lives, empties),
            Container::PriorityQueue => priority::decide_and_tell(lives, empties),
        }
    }
}
