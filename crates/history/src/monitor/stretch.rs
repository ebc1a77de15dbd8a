//! Stretches the lives of one object: they follow one another, and each is as long as possible.

use super::life::Life;
use super::span::Span;

/// For each life, the earliest time of its insertion, and the latest time of its removal that the returns of removals
/// permit. [`removal`](Self::removal) respects the next insertion as well.
///
/// No other choice of moments leaves shorter gaps between the lives.
pub(crate) struct Stretched {
    pub(crate) earliest: Vec<u32>,
    pub(crate) latest: Vec<u32>,
}

impl Stretched {
    /// Stretches lives that can follow one another in this order.
    pub(crate) fn of(in_turn: &[Life]) -> Self {
        let mut after = 0;
        let earliest = in_turn.iter().map(|life| {
            let earliest = life.insert.call.max(after);
            after = life.remove.call.max(earliest);
            earliest
        });
        let earliest = earliest.collect();
        // A life's `latest` may be later than the next life's `earliest`, although the life must end by then. `removal`
        // returns the earlier of the two. The other functions check `earliest` as well, so they need no correction.
        let mut before = u32::MAX;
        let latest = in_turn.iter().rev().map(|life| {
            before = life.remove.ret.min(before);
            before
        });
        let mut latest: Vec<u32> = latest.collect();
        latest.reverse();
        Stretched { earliest, latest }
    }

    /// A moment of `span` within a life, and the turn of this life. If the whole span is within a gap, the error is the
    /// turn of the life after the gap.
    pub(crate) fn within(&self, span: Span) -> Result<(u32, u32), u32> {
        let next = self.earliest.partition_point(|&earliest| earliest < span.call);
        if next > 0 && span.call <= self.latest[next - 1] {
            return Ok((next as u32 - 1, span.call));
        }
        match self.earliest.get(next) {
            Some(&earliest) if earliest <= span.ret => Ok((next as u32, earliest)),
            _ => Err(next as u32),
        }
    }

    /// The end of the life in `turn`.
    pub(crate) fn removal(&self, turn: usize) -> u32 {
        self.earliest.get(turn + 1).map_or(self.latest[turn], |&next| next.min(self.latest[turn]))
    }

    /// The gaps: open intervals between lives, before the first and after the last.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = (Option<u32>, u32)> {
        let starts = std::iter::once(None).chain(self.latest.iter().copied().map(Some));
        let ends = self.earliest.iter().copied().chain([u32::MAX]);
        starts.zip(ends).filter(|&(start, end)| start.is_none_or(|start| start < end))
    }
}
