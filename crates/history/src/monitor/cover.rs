//! Cover: the times at which some value is certainly present.
//!
//! A value is certainly present after its insertion returned and before its removal was called, which is an open
//! interval. An answer "empty" needs a moment within its operation's span that no such interval covers. This condition
//! is also sufficient, for every container and for several "empty" answers together, because the history can be cut in
//! two at an uncovered moment. Values whose removal was called before the cut go to the left side, all others to the
//! right. The operations of each side can take effect on their side of the cut, within their spans.

use super::life::Life;
use super::span::Span;

/// The union of intervals, as disjoint open intervals in ascending order.
pub(crate) struct Cover {
    intervals: Vec<(u32, u32)>,
}

impl Cover {
    /// The times at which the value of some life is certainly present. O(n log n).
    pub(crate) fn of(lives: &[Life]) -> Self {
        let sure = lives.iter().map(|life| (life.insert.ret, life.remove.call));
        Self::of_intervals(sure.filter(|(after, before)| after < before).collect())
    }

    /// The union of open intervals. O(n log n).
    pub(crate) fn of_intervals(mut open: Vec<(u32, u32)>) -> Self {
        open.sort_unstable_by_key(|&(after, before)| u64::from(after) << 32 | u64::from(before));
        let mut intervals: Vec<(u32, u32)> = Vec::new();
        for (after, before) in open {
            match intervals.last_mut() {
                // `end` is outside the interval that it ends, but inside the next one, which begins before `end`: the
                // two merge.
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

/// The fewest of `lives` that cover every moment of `span`, in order of time. All `lives` together must cover the span.
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
