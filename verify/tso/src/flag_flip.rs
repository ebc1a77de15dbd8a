//! Readers and reclaimers: two threads, each of which writes one word and then reads the other's.
//!
//! The reader (fast) publishes the object it is about to use, then checks that the object is still current. The
//! reclaimer (slow) makes the object stale, then checks which objects readers have published. If both missed each other,
//! the reader would go on with an object that the reclaimer frees. Hazard pointers and epochs both have this shape. Only
//! the order in memory matters, so every execution is one of few *interleavings*: F stands for a step of the fast thread,
//! and S for one of the slow thread, in the order in which memory sees them.

use std::collections::BTreeMap;
use std::fmt;

use crate::machine::{Access, Address, Instruction, Instruction::*, Machine, Register, Stamp};

/// The word that is 0 while the object is current, then 1.
const STALE: Address = 0;
/// The word that is 1 once the reader has published.
const PUBLISHED: Address = 1;
/// The word that is 1 once the reader's core was interrupted after the reclaimer read the clock.
const INTERRUPTED: Address = 2;

const FAST: usize = 0;
const SLOW: usize = 1;

const ONE: Register = 0;
/// The value that the check found.
const SEEN: Register = 1;

/// The reader's steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fast {
    /// Publishes and checks, with no fence between.
    Free,
    /// Publishes and checks, with a full fence between.
    Fenced,
    /// Publishes and does not check.
    Blind,
}

/// The reclaimer's means of seeing the publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slow {
    /// Executes a full fence between its write and its check.
    Fenced,
    /// Executes the fence, and waits until its own request has interrupted the reader.
    Interrupting,
    /// Interrupts the reader before its own write.
    InterruptingTooEarly,
    /// Reads the clock, and waits until any interrupt has reached the reader's core since.
    Awaiting(Stamp),
    /// Reads the clock before its own write.
    AwaitingFromTooEarly,
}

/// The outcome of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outcome {
    /// The reader saw that its object is stale, and starts over.
    pub fast_saw: bool,
    /// The reclaimer saw the reader's publication, and waits.
    pub slow_saw: bool,
}

impl Outcome {
    /// Returns whether the reader goes on with an object that the reclaimer frees.
    #[must_use]
    pub fn is_use_after_free(self) -> bool {
        !self.fast_saw && !self.slow_saw
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.fast_saw, self.slow_saw) {
            (true, true) => "both saw",
            (true, false) => "the reader saw",
            (false, true) => "the reclaimer saw",
            (false, false) => "NEITHER saw",
        })
    }
}

/// Returns every order in which memory may see the four steps, with its outcome.
///
/// Lower case is the reader's: `p` for its publication, `l` for its check; upper case is the reclaimer's: `W` for its
/// write that makes the object stale, `L` for its check.
#[must_use]
pub fn interleavings(fast: Fast, slow: Slow) -> BTreeMap<String, Outcome> {
    let programs = [fast_program(fast), slow_program(slow)];
    let stamp = match slow {
        Slow::Awaiting(stamp) => stamp,
        _ => Stamp::InOrder,
    };
    let awaits = matches!(slow, Slow::Awaiting(_) | Slow::AwaitingFromTooEarly);
    let mut machine = Machine::new(programs.len());
    if awaits {
        machine = machine.with_interrupts(FAST, 2, INTERRUPTED, stamp);
    }
    let mut found = BTreeMap::new();
    follow(&machine, &programs, "", &mut found);
    found
}

/// Follows, depth first, every execution that comes to an end.
fn follow(machine: &Machine, programs: &[Vec<Instruction>], order: &str, found: &mut BTreeMap<String, Outcome>) {
    if machine.has_ended(programs) {
        let saw = |thread| machine.register(thread, SEEN) == 1;
        let outcome = Outcome { fast_saw: saw(FAST), slow_saw: saw(SLOW) };
        let before = found.insert(order.to_owned(), outcome);
        assert!(
            before.is_none_or(|before| before == outcome),
            "the order {order} must determine the outcome, but has two"
        );
    }
    for (step, successor) in machine.successors(programs) {
        let mut order = order.to_owned();
        order.extend(machine.access(step, programs).and_then(letter));
        follow(&successor, programs, &order, found);
    }
}

fn letter(access: Access) -> Option<char> {
    match access {
        Access::Written(FAST, PUBLISHED) => Some('p'),
        Access::Read(FAST, STALE) => Some('l'),
        Access::Written(SLOW, STALE) => Some('W'),
        Access::Read(SLOW, PUBLISHED) => Some('L'),
        _ => None,
    }
}

fn fast_program(fast: Fast) -> Vec<Instruction> {
    let publish = [Set(ONE, 1), Store(PUBLISHED, ONE)];
    let (fence, look): (&[_], &[_]) = match fast {
        Fast::Free => (&[], &[Load(SEEN, STALE)]),
        Fast::Fenced => (&[Fence], &[Load(SEEN, STALE)]),
        Fast::Blind => (&[], &[]),
    };
    [&publish, fence, look].concat()
}

fn slow_program(slow: Slow) -> Vec<Instruction> {
    let write: &[_] = &[Set(ONE, 1), Store(STALE, ONE), Fence];
    let look: &[_] = &[Load(SEEN, PUBLISHED)];
    let (before, between): (&[_], &[_]) = match slow {
        Slow::Fenced => (&[], &[]),
        Slow::Interrupting => (&[], &[HeavyFence]),
        Slow::InterruptingTooEarly => (&[HeavyFence], &[]),
        Slow::Awaiting(_) => (&[], &[ReadClock, Await(INTERRUPTED)]),
        Slow::AwaitingFromTooEarly => (&[ReadClock], &[Await(INTERRUPTED)]),
    };
    [before, write, between, look].concat()
}
