//! Cover: the times at which some value is surely present.
//!
//! A value is surely present after its insertion returned and before its removal was called: an open interval. An
//! observation "empty" needs a moment within its own span that no interval covers. That suffices, for every container
//! and for all such moments together: at an uncovered moment the history can be cut in two. Values whose removal was
//! called before it go to the left, all others to the right, and each side can be moved up to the cut without leaving
//! any operation's span.

use super::life::Life;
use super::span::Span;

/// The union of intervals, as disjoint open intervals in ascending order.
pub(crate) struct Cover {
    intervals: Vec<(u32, u32)>,
}

impl Cover {
    /// The times covered by some life. O(n log n).
    pub(crate) fn of(lives: &[Life]) -> Self {
        let sure = lives.iter().map(|life| (life.insert.ret, life.remove.call));
        Self::of_intervals(sure.filter(|(after, before)| after < before).collect())
    }

    /// The times within open intervals. O(n log n).
    pub(crate) fn of_intervals(mut open: Vec<(u32, u32)>) -> Self {
        open.sort_unstable_by_key(|&(after, before)| u64::from(after) << 32 | u64::from(before));
        let mut intervals: Vec<(u32, u32)> = Vec::new();
        for (after, before) in open {
            match intervals.last_mut() {
                // The rank `end` itself lies in the open interval that begins before it.
                Some((_, end)) if after < *end => *end = before.max(*end),
                _ => intervals.push((after, before)),
            }
        }
        Cover { intervals }
    }

    /// The first uncovered moment of `span`. O(log n).
    pub(crate) fn gap(&self, span: Span) -> Option<u32> {
        let next = self.intervals.partition_point(|&(after, _)| after < span.call);
        let gap = match next.checked_sub(1).map(|i| self.intervals[i]) {
            Some((_, before)) if span.call < before => before,
            _ => span.call,
        };
        (gap <= span.ret).then_some(gap)
    }
}

/// The fewest of `lives` that cover every moment of `span`, in order of time; they must cover all of it.
///
/// Both the insertions' returns and the removals' calls ascend along the chain. O(n log n).
pub(crate) fn chain(lives: &[Life], among: impl Iterator<Item = u32>, span: Span) -> Vec<u32> {
    let mut by_start: Vec<u32> = among.collect();
    by_start.sort_unstable_by_key(|&i| lives[i as usize].insert.ret);
    let mut chain = Vec::new();
    let mut moment = span.call;
    let mut coming = by_start.into_iter().peekable();
    let mut furthest: Option<u32> = None;
    while moment <= span.ret {
        while let Some(i) = coming.next_if(|&i| lives[i as usize].insert.ret < moment) {
            if furthest.is_none_or(|f| lives[f as usize].remove.call < lives[i as usize].remove.call) {
                furthest = Some(i);
            }
        }
        let link = furthest.filter(|&f| lives[f as usize].covers(moment)).expect("every moment is covered");
        chain.push(link);
        moment = lives[link as usize].remove.call;
    }
    chain
}
