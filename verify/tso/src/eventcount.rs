//! The event counts with one incrementer, as programs of the machine.

use crate::machine::{Address, Instruction, Instruction::*, Register};

/// The word of the count, on which waiters sleep.
const COUNT: Address = 0;
/// The separate word of the flag, in the two-word form.
const WAITERS: Address = 1;

/// The flag's bit in the one-word form: the topmost.
const FLAG: u8 = 0x80;

/// The expected word: the value from which a waiter waits for a change.
const KEY: Register = 0;
/// The expected word, with the flag set.
const FLAGGED: Register = 1;
/// The word that a load or a compare-and-swap has found.
const FOUND: Register = 2;

/// How the incrementer works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Increment {
    /// If the flag is set, stores the next value without the flag, and wakes. Otherwise adds with a single instruction;
    /// if the sum has the flag, wakes, and does not clear the flag.
    Proven,
    /// Like [`Proven`](Self::Proven), on a machine whose interrupts can cut the addition in two.
    CutInTwo,
    /// Adds, and if the sum has the flag, clears it immediately.
    ClearAtOnce,
    /// Checks the flag only before the addition.
    CheckBefore,
}

/// The steps of a waiter between setting the flag and falling asleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiter {
    /// The heavy fence. (Under the timed rule, this is the second within which an interrupt comes.)
    pub fence: bool,
    /// The kernel's check of the word before the thread falls asleep.
    pub recheck: bool,
}

impl Waiter {
    /// The waiter with every step.
    pub const CAREFUL: Waiter = Waiter { fence: true, recheck: true };
}

/// Returns a program that increments `times` times and ends.
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
        if increment != Increment::CheckBefore {
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

/// The part of the word that the kernel compares, in the one-word form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// The whole word, as on a machine with addresses of 32 bits.
    All,
    /// The half without the flag, as on a machine with addresses of 64 bits, where the futex is the low half of the
    /// word.
    LowHalf,
}

/// Returns a program that waits until the count is `target`.
#[must_use]
pub fn waiter(waiter: Waiter, compared: Compared, target: u8) -> Vec<Instruction> {
    let mut program = vec![
        Label("snapshot"),
        Load(KEY, COUNT),
        And(KEY, KEY, !FLAG),
        JumpIfAtLeast(KEY, target, "end"),
        AddTo(FLAGGED, KEY, FLAG),
        LockedCompareExchange(COUNT, KEY, FLAGGED, FOUND),
        // If the word without the flag is not the key, the count has changed.
        And(FOUND, FOUND, !FLAG),
        JumpIfDifferent(FOUND, KEY, "snapshot"),
    ];
    if waiter.fence {
        program.push(HeavyFence);
    }
    let mask = if compared == Compared::All { u8::MAX } else { !FLAG };
    program.push(if waiter.recheck { FutexWait(COUNT, FLAGGED, mask) } else { Sleep(COUNT) });
    program.extend([Jump("snapshot"), Label("end")]);
    program
}

/// The order between the incrementer's store of the count and its check of the flag, in the two-word form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LightFence {
    /// No fence: the waiters' heavy fence orders the two.
    Free,
    /// A full fence.
    Full,
}

/// Returns a program that increments `times` times and ends, with the flag in a separate word.
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

/// Returns a program that waits until the count is `target`, with the flag in a separate word.
#[must_use]
pub fn two_word_waiter(waiter: Waiter, target: u8) -> Vec<Instruction> {
    let mut program =
        vec![Label("snapshot"), Load(KEY, COUNT), JumpIfAtLeast(KEY, target, "end"), LockedStore(WAITERS, 1)];
    if waiter.fence {
        program.push(HeavyFence);
    }
    program.push(if waiter.recheck { FutexWait(COUNT, KEY, u8::MAX) } else { Sleep(COUNT) });
    program.extend([Jump("snapshot"), Label("end")]);
    program
}
