//! Answers: a witness, a counter-example, or how far it got.

/// The answer of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The history satisfies the condition; here is an order that shows it.
    Holds(Witness),
    /// It does not; here are a few of its operations that show it.
    Fails(Counterexample),
    /// A limit was hit before it was decided.
    Unknown(Progress),
}

impl Verdict {
    /// Whether the condition holds; `None` if that is not known.
    pub fn holds(&self) -> Option<bool> {
        match self {
            Verdict::Holds(_) => Some(true),
            Verdict::Fails(_) => Some(false),
            Verdict::Unknown(_) => None,
        }
    }
}

/// An order in which the operations, one after the other, give the answers they gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    /// Rows of the history. Failed operations are not among them, nor are those whose outcome is unknown and that
    /// had no effect in this order.
    pub order: Vec<u32>,
}

/// Operations that cannot be explained, whatever the others did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// The rows, ascending: no order of them satisfies the condition.
    pub operations: Vec<u32>,
    /// What is wrong, in one sentence.
    pub reason: String,
    /// The row, one of `operations`, that the reason is about; `None` if it is about several alike.
    pub subject: Option<u32>,
    /// The state that `operations` start from, if what came before them is summed up in it.
    pub start: Option<String>,
    /// How far the history is in order.
    pub prefix: Option<Prefix>,
}

/// The longest prefix of a history that satisfies the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The time of the prefix's last event.
    pub until: u64,
    /// How many operations had returned by then.
    pub operations: usize,
    /// The row whose return is the first event that cannot be explained.
    pub culprit: u32,
}

/// How far a check got before it hit a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Which limit.
    pub limit: Limit,
    /// How many operations' returns were explained, in the best attempt.
    pub decided: usize,
    /// How many operations there are to explain.
    pub total: usize,
    /// How many different situations were looked at.
    pub configurations: u64,
}

/// A limit of [`Options`](crate::Options).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`Options::memory_bytes`](crate::Options::memory_bytes).
    Memory,
    /// [`Options::time`](crate::Options::time).
    Time,
    /// More than 65 536 operations at once: the general search goes no wider.
    Concurrency,
}
