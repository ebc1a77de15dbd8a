//! Verdicts: a witness, a counter-example, or the progress up to a limit.

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The history satisfies the condition: the witness is an order.
    Holds(Witness),
    /// The history violates the condition: a few of its operations show it.
    Fails(Counterexample),
    /// The check hit a limit before it could decide.
    Unknown(Progress),
}

impl Verdict {
    /// Whether the condition holds; `None` if the check did not decide it.
    pub fn holds(&self) -> Option<bool> {
        match self {
            Verdict::Holds(_) => Some(true),
            Verdict::Fails(_) => Some(false),
            Verdict::Unknown(_) => None,
        }
    }
}

/// An order in which the operations, executed one after the other, return their recorded answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Witness {
    /// Rows of the history. Failed operations are left out, and so are pending ones that had no effect in this order.
    pub order: Vec<u32>,
}

/// Operations that no order explains, whatever the other operations did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counterexample {
    /// The rows, ascending: no order of them satisfies the condition.
    pub operations: Vec<u32>,
    /// The violation, in one sentence.
    pub reason: String,
    /// The row among `operations` that the reason is about; `None` if the reason is about several operations equally.
    pub subject: Option<u32>,
    /// The states from which `operations` start, as text: those to which the operations before them can lead. `None` if
    /// `operations` start from the initial state.
    pub start: Option<String>,
    /// The longest prefix of the history that satisfies the condition.
    pub prefix: Option<Prefix>,
}

/// The longest prefix of a history that satisfies the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prefix {
    /// The time of the prefix's last event.
    pub until: u64,
    /// The number of operations that had returned by then.
    pub operations: usize,
    /// The row whose return is the first event that no order explains.
    pub culprit: u32,
}

/// The progress of a check up to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The limit.
    pub limit: Limit,
    /// The number of operations whose returns the best attempt explained.
    pub decided: usize,
    /// The number of operations to explain.
    pub total: usize,
    /// The number of distinct configurations that the search visited.
    pub configurations: u64,
}

/// A limit of [`Options`](crate::Options), or of the general search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`Options::memory_bytes`](crate::Options::memory_bytes).
    Memory,
    /// [`Options::time`](crate::Options::time).
    Time,
    /// More than 65 536 operations are open at once, which is the limit of the general search.
    Concurrency,
}
