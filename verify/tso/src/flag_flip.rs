//! Readers and reclaimers: two threads, each of which writes its own word and then reads that of the other thread.
//!
//! The reader (fast) publishes the object that it is about to use, and then checks that the object is still current.
//! The reclaimer (slow) makes the object stale, and then checks which objects readers have published. If neither sees
//! the other's write, the reader uses an object that the reclaimer frees. Both hazard pointers and epochs have this
//! pattern. Only the order in memory matters, so there are few *interleavings*. They are written with F for a step of
//! the fast thread and S for a step of the slow thread, in the order in which the steps reach memory.

use std::collections::BTreeMap;
use std::fmt;

use crate::machine::{Access, Address, Instruction, Instruction::*, Machine, Register, Stamp};

/// The word that is 0 while the object is current, and 1 afterwards.
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
    /// Publishes and checks, without a fence in between.
    Free,
    /// Publishes and checks, with a full fence in between.
    Fenced,
    /// Publishes and does not check.
    Blind,
}

/// The method by which the reclaimer ensures that it sees the publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slow {
    /// Executes a full fence between its write and its check.
    Fenced,
    /// Executes the fence, requests an interrupt of the reader, and waits for it.
    Interrupting,
    /// Interrupts the reader before its own write.
    InterruptingTooEarly,
    /// Reads the clock, and waits until any later interrupt has reached the reader's core.
    Awaiting(Stamp),
    /// Reads the clock before its own write.
    AwaitingFromTooEarly,
}

/// The outcome of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outcome {
    /// The reader saw that its object is stale, and starts again.
    pub fast_saw: bool,
    /// The reclaimer saw the reader's publication, and waits.
    pub slow_saw: bool,
}

impl Outcome {
    /// Returns whether the reader uses an object that the reclaimer frees.
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
/// The reader's steps are in lower case: `p` for its publication, `l` for its check. The reclaimer's are in upper case:
/// `W` for the write that makes the object stale, `L` for its check.
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

/// Follows, depth first, every execution to its end.
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
