//! Lives: the procedures for containers work on the life of each value, from its insertion to its removal.

use super::span::{NEVER, Span};

/// A value that is inserted once and removed at most once.
///
/// The spans are *tight*. A removal takes effect only after the insertion. So if the removal is called before the
/// insertion, the removal's call is moved to the insertion's call. If the insertion returns after the removal, the
/// insertion's return is moved to the removal's return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) insert: Span,
    pub(crate) remove: Span,
}

impl Life {
    /// Makes the spans tight. The removal must not return before the insertion is called.
    pub(crate) fn new(insert: Span, remove: Span) -> Self {
        debug_assert!(insert.call < remove.ret, "{insert:?} follows {remove:?}");
        Life {
            insert: Span { call: insert.call, ret: insert.ret.min(remove.ret) },
            remove: Span { call: remove.call.max(insert.call), ret: remove.ret },
        }
    }

    /// Whether the value is still present at the end of the history.
    pub(crate) fn stays(&self) -> bool {
        self.remove.ret == NEVER
    }

    /// Whether the value is present at `rank` in every order that respects time.
    pub(crate) fn covers(&self, rank: u32) -> bool {
        self.insert.ret < rank && rank < self.remove.call
    }
}

/// The removal of the `k`-th value that stays: after all events, and overlapping all other such removals.
///
/// Overlapping removals can empty any container in its own order, so they add no violation, and procedures need not
/// treat values that stay as a separate case.
pub(crate) fn after_the_end(end: u32, k: u32) -> Span {
    Span { call: end + 1 + k, ret: NEVER }
}

/// An operation of a history of lives, named by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Insert(u32),
    Remove(u32),
    /// A removal that found the container empty.
    Empty(u32),
}

/// Lives and empty removals without a legal order, whatever else the history contains.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Core {
    pub(crate) lives: Vec<u32>,
    pub(crate) empties: Vec<u32>,
}

/// A legal order of all operations, or a core.
pub(crate) type Outcome = Result<Vec<Step>, Core>;

#[cfg(test)]
mod tests {
    use super::{Life, Span, after_the_end};

    #[test]
    fn an_insertion_returns_before_its_removal_is_called() {
        let span = |call, ret| Span { call, ret };
        let life = Life::new(span(2, 9), span(0, 5));
        assert_eq!(life, Life { insert: span(2, 5), remove: span(2, 5) });
        let apart = Life { insert: span(0, 3), remove: span(6, 8) };
        assert_eq!(Life::new(apart.insert, apart.remove), apart);
        let covered: Vec<u32> = (0..10).filter(|&rank| apart.covers(rank)).collect();
        assert_eq!(covered, [4, 5], "neither while it may still be absent nor once it may be gone");
    }

    #[test]
    fn values_that_stay_are_removed_together_after_all_events() {
        let removals: Vec<Span> = (0..3).map(|k| after_the_end(7, k)).collect();
        assert!(removals.iter().all(|removal| removal.call > 7));
        assert!(removals.windows(2).all(|pair| pair[0].call < pair[1].call && pair[1].call < pair[0].ret));
    }
}
