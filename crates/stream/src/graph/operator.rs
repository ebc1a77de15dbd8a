//! The operators, as far as clocks are concerned.

use crate::clock::Pass;

/// The most values that one value is repeated to, and the most that a prefix has.
const MAX_COPIES: u64 = 1 << 32;

/// The most letters of the pattern of a merge.
const MAX_TURNS: usize = 4096;

/// The work of a node, as far as clocks are concerned: how many values it takes and gives, and not which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operator {
    /// Gives values from outside. Two sources have nothing to do with each other.
    Source,
    /// Gives one value for each: map, scan, a fold by key.
    Each,
    /// Lets values through by a clock: every, skip, the ends of windows; or by their content: filter.
    Pass(Pass),
    /// Gives, for each value of the second input, the last value that the first has had by then. Both inputs come from one
    /// source, with neither joins nor copies in between.
    Hold,
    /// Gives, for each value of the second input, the value of the first at the same moment, or a mark that there is none.
    /// Its inputs are those of [`Hold`](Self::Hold).
    Align,
    /// Takes one value of each input, and gives one.
    Zip,
    /// Takes one value at a time from the inputs that the pattern names, over and over, and gives it.
    Merge(Vec<usize>),
    /// Gives each value this number of times.
    Repeat(u64),
    /// Gives this number of values before the first that it takes, then each that it takes.
    Prefix(u64),
    /// Takes all values, and gives one at their end.
    Reduce,
    /// Lets the queue at the end of its path hold this number of values, without a proof; a run fails when it is full.
    /// Between it and the queue stand only passes.
    Buffer(u64),
    /// Lets the queue at the end of its path grow on disk, as a buffer does.
    Spill,
    /// Takes all values.
    Sink,
}

impl Operator {
    /// Whether it is a node of its own in the [`net`](crate::check), with queues in front of it; all others work on values as
    /// they pass.
    pub(crate) fn is_actor(&self) -> bool {
        matches!(
            self,
            Self::Source | Self::Zip | Self::Merge(_) | Self::Repeat(_) | Self::Prefix(_) | Self::Reduce | Self::Sink
        )
    }

    /// # Panics
    /// Panics if it does not take this number of inputs, or a number in it is out of range.
    pub(crate) fn assert_fits(&self, inputs: usize) {
        let (least, most) = match self {
            Self::Source => (0, 0),
            Self::Zip | Self::Merge(_) => (1, MAX_TURNS),
            Self::Hold | Self::Align => (2, 2),
            _ => (1, 1),
        };
        assert!((least..=most).contains(&inputs), "{self:?} does not take {inputs} inputs");
        match self {
            Self::Merge(turns) => {
                assert!((1..=MAX_TURNS).contains(&turns.len()), "a merge has 1 to {MAX_TURNS} turns");
                let each = (0..inputs).all(|input| turns.contains(&input));
                assert!(each && turns.iter().all(|turn| *turn < inputs), "every input of a merge has its turn");
            }
            Self::Repeat(copies) => {
                assert!((1..=MAX_COPIES).contains(copies), "a value is repeated 1 to {MAX_COPIES} times");
            }
            Self::Prefix(values) => assert!(*values <= MAX_COPIES, "a prefix has at most {MAX_COPIES} values"),
            Self::Pass(Pass::Every { step, .. }) => assert!(*step > 0, "a step is at least 1"),
            Self::Pass(Pass::Word { cycle, .. }) => {
                assert!(cycle.contains(&true), "the cycle of a word lets values through");
            }
            Self::Buffer(values) => assert!(*values > 0, "a buffer holds at least one value"),
            _ => {}
        }
    }
}
