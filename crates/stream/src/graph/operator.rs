//! The operators, reduced to their effect on clocks.

use crate::clock::Pass;

/// The maximum number of copies of a value, and the maximum length of a prefix.
const MAX_COPIES: u64 = 1 << 32;

/// The maximum length of the pattern of a merge.
const MAX_TURNS: usize = 4096;

/// The operator of a node, reduced to its effect on clocks: the number of values that it takes and produces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operator {
    /// Produces values that come from outside the program. Two sources are unrelated.
    Source,
    /// Produces one value for each value that it takes: map, scan, fold by key.
    Each,
    /// Passes or drops each value, by a clock (every, skip, the ends of windows) or by its content (filter).
    Pass(Pass),
    /// Produces the latest value of the first input for each value of the second. Both inputs must come from one source,
    /// without joins or copies in between.
    Hold,
    /// Produces the value of the first input at the moment of each value of the second, or a marker if there is none. The
    /// conditions of [`Hold`](Self::Hold) apply to its inputs.
    Align,
    /// Takes one value of each input, and produces one.
    Zip,
    /// Takes one value at a time from the inputs, and produces it. The pattern, which repeats forever, sets the order of the
    /// inputs.
    Merge(Vec<usize>),
    /// Produces each value this many times.
    Repeat(u64),
    /// Produces this many values before it takes any. Afterwards, produces each value that it takes.
    Prefix(u64),
    /// Takes all values, and produces one at the end.
    Reduce,
    /// The queue at the end of this node's path gets room for this many values, without a proof that they are enough. A run fails
    /// if a full queue needs more room. Only passes are allowed between the buffer and the queue.
    Buffer(u64),
    /// The queue at the end of this node's path is on disk and may grow; otherwise like [`Buffer`](Self::Buffer).
    Spill,
    /// Takes all values.
    Sink,
}

impl Operator {
    /// Returns whether the operator is an actor of the [`net`](crate::check), with queues in front of it. Other
    /// operators process values as they pass.
    pub(crate) fn is_actor(&self) -> bool {
        matches!(
            self,
            Self::Source | Self::Zip | Self::Merge(_) | Self::Repeat(_) | Self::Prefix(_) | Self::Reduce | Self::Sink
        )
    }

    /// # Panics
    /// Panics if the operator does not take this many inputs, or if one of its numbers is out of range.
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
