//! The event counts with one incrementer, as programs.

use crate::machine::{Address, Instruction, Instruction::*, Register};

/// The word that is counted in, and slept on.
const COUNT: Address = 0;
/// The flag's own word, in the two-word form.
const WAITERS: Address = 1;

/// The flag's bit, in the one-word form: the topmost.
const FLAG: u8 = 0x80;

/// The value that a waiter waits on, as the word that it expects.
const KEY: Register = 0;
/// The same with the flag.
const FLAGGED: Register = 1;
/// What was found.
const FOUND: Register = 2;

/// How the incrementer does its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Increment {
    /// With the flag set before, stores the next value without the flag and wakes. Otherwise adds by one
    /// instruction, and wakes if the sum has the flag, which it leaves in place.
    Proven,
    /// As [`Proven`](Self::Proven), but on a machine whose interrupts can cut the addition in two.
    CutInTwo,
    /// Adds, and if the sum has the flag, clears it there and then.
    ClearAtOnce,
    /// Looks at the flag before the addition only.
    LookBefore,
}

/// What a waiter does between setting the flag and falling asleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiter {
    /// The heavy fence (or the second in which an interrupt comes, for the timed rule).
    pub fence: bool,
    /// The kernel's look at the word while it lets the thread fall asleep.
    pub look_again: bool,
}

impl Waiter {
    /// With everything.
    pub const CAREFUL: Waiter = Waiter { fence: true, look_again: true };
}

/// Increments so many times and ends.
#[must_use]
pub fn incrementer(increment: Increment, times: u8) -> Vec<Instruction> {
    let (word, sum) = (0, 1);
    let mut program = Vec::new();
    for time in 0..usize::from(times) {
        let (flagged, wake, done) = (FLAGGED_BEFORE[time], WAKE[time], DONE[time]);
        if increment != Increment::ClearAtOnce {
            program.extend([Load(word, COUNT), JumpIfAny(word, FLAG, flagged)]);
        }
        program.push(match increment {
            Increment::CutInTwo => AddInTwo(COUNT, 1, sum),
            _ => Add(COUNT, 1, sum),
        });
        if increment != Increment::LookBefore {
            program.push(JumpIfAny(sum, FLAG, wake));
        }
        program.push(Jump(done));
        program.extend([Label(flagged), And(word, word, !FLAG), AddTo(word, word, 1), Store(COUNT, word)]);
        program.push(Label(wake));
        if increment == Increment::ClearAtOnce {
            program.push(LockedAnd(COUNT, !FLAG));
        }
        program.extend([FutexWake(COUNT), Label(done)]);
    }
    program
}

const FLAGGED_BEFORE: [&str; 4] = ["first flagged", "second flagged", "third flagged", "fourth flagged"];
const WAKE: [&str; 4] = ["first wake", "second wake", "third wake", "fourth wake"];
const DONE: [&str; 4] = ["first done", "second done", "third done", "fourth done"];

/// How much of the word the kernel compares, in the one-word form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// All of it, as with 32 bits.
    All,
    /// The part without the flag, as with 64 bits, of which the futex is the low half.
    LowHalf,
}

/// Waits until the count is `target`.
#[must_use]
pub fn waiter(waiter: Waiter, compared: Compared, target: u8) -> Vec<Instruction> {
    let mut program = vec![
        Label("snapshot"),
        Load(KEY, COUNT),
        And(KEY, KEY, !FLAG),
        JumpIfAtLeast(KEY, target, "end"),
        AddTo(FLAGGED, KEY, FLAG),
        LockedCompareExchange(COUNT, KEY, FLAGGED, FOUND),
        // It was the key, or the flag was set already; otherwise the count has changed.
        And(FOUND, FOUND, !FLAG),
        JumpIfDifferent(FOUND, KEY, "snapshot"),
    ];
    if waiter.fence {
        program.push(HeavyFence);
    }
    let mask = if compared == Compared::All { u8::MAX } else { !FLAG };
    program.push(if waiter.look_again { FutexWait(COUNT, FLAGGED, mask) } else { Sleep(COUNT) });
    program.extend([Jump("snapshot"), Label("end")]);
    program
}

/// What orders the incrementer's store of the count before its look at the flag, in the two-word form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LightFence {
    /// Nothing: the waiters' heavy fence does.
    Free,
    /// A full fence.
    Full,
}

/// Increments so many times and ends; the flag is a word of its own.
#[must_use]
pub fn two_word_incrementer(fence: LightFence, times: u8) -> Vec<Instruction> {
    let (value, before, after) = (0, 1, 2);
    let mut program = vec![Set(value, 0)];
    for time in 0..usize::from(times) {
        let (quiet, wake, done) = (QUIET[time], WAKE[time], DONE[time]);
        program.extend([Load(before, WAITERS), AddTo(after, before, 1), JumpIfAny(after, 1, quiet)]);
        program.extend([Set(after, 0), Store(WAITERS, after), Label(quiet)]);
        program.extend([Load(value, COUNT), AddTo(value, value, 1), Store(COUNT, value)]);
        if fence == LightFence::Full {
            program.push(Fence);
        }
        program.extend([Load(after, WAITERS), JumpIfAny(before, 1, wake), JumpIfAny(after, 1, wake), Jump(done)]);
        program.extend([Label(wake), FutexWake(COUNT), Label(done)]);
    }
    program
}

const QUIET: [&str; 4] = ["first quiet", "second quiet", "third quiet", "fourth quiet"];

/// Waits until the count is `target`; the flag is a word of its own.
#[must_use]
pub fn two_word_waiter(waiter: Waiter, target: u8) -> Vec<Instruction> {
    let mut program =
        vec![Label("snapshot"), Load(KEY, COUNT), JumpIfAtLeast(KEY, target, "end"), LockedStore(WAITERS, 1)];
    if waiter.fence {
        program.push(HeavyFence);
    }
    program.push(if waiter.look_again { FutexWait(COUNT, KEY, u8::MAX) } else { Sleep(COUNT) });
    program.extend([Jump("snapshot"), Label("end")]);
    program
}
