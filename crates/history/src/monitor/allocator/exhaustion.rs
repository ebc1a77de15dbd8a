//! Exhaustion: allocations that find no free object, and the moments at which all objects are allocated.
//!
//! The lives of each object are stretched in the order of its changes: each allocation comes as early as the calls
//! permit, and each free as late as the returns permit. In the gaps that remain, the object must be free in this order.
//! A pending allocation may have taken an object whose last gap extends to the end. The object whose last gap begins
//! first goes to the pending allocation that was called first, and so on; no other assignment leaves more objects
//! allocated at any moment.
//!
//! This is exact for the given order of each object's changes. A failure, however, must be proven for every order. The
//! proof is by counting: whatever the order, an object is free at a moment if at least as many frees of the object have
//! returned as allocations of it have been called.

use super::super::cover::Cover;
use super::super::life::{Life, after_the_end};
use super::super::span::{Span, Spans};
use super::super::stretch::Stretched;
use super::super::switch::{Act, Operation};

/// The maximum number of passes over the changes of an object. A pass swaps neighbouring changes of one kind, so a
/// change may need several passes to reach its place. It moves only past changes that overlap it.
const MAX_PASSES: usize = 16;

/// Allocations that found no free object, among operations on objects numbered from one.
pub(super) struct Exhaustion<'a> {
    pub(super) operations: &'a [Operation],
    pub(super) spans: &'a Spans,
    pub(super) refused: &'a [u32],
    pub(super) objects: u32,
    /// The number of objects that no operation names.
    pub(super) unseen: u64,
}

impl Exhaustion<'_> {
    /// An order in which each refused allocation comes at a moment when all objects are allocated, or a refused
    /// allocation without such a moment.
    ///
    /// `order` need not contain pending allocations.
    pub(super) fn place(&self, order: &[u32]) -> Result<Vec<u32>, u32> {
        let mut changes: Vec<Vec<u32>> = vec![Vec::new(); self.objects as usize];
        for &p in order {
            if let Operation { element, act: Act::Change(_) } = self.operations[p as usize] {
                changes[element as usize - 1].push(p);
            }
        }
        let mut gaps = Vec::new();
        let mut free_for_good = Vec::new();
        let mut timed: Vec<(u32, u32, u32)> = Vec::with_capacity(order.len());
        for changes in &changes {
            let changes = self.tightest(changes);
            let lives: Vec<Life> = changes.chunks(2).map(|pair| self.life(pair)).collect();
            let stretched = Stretched::of(&lives);
            for (start, end) in stretched.gaps() {
                match end {
                    u32::MAX => free_for_good.push(start.unwrap_or(0)),
                    _ => gaps.push((start.unwrap_or(0), end)),
                }
            }
            for (turn, pair) in changes.chunks(2).enumerate() {
                timed.push((stretched.earliest[turn], 2 * turn as u32, pair[0]));
                timed.extend(pair.get(1).map(|&free| (stretched.removal(turn), 2 * turn as u32 + 1, free)));
            }
        }

        let unknown: Vec<u32> =
            (0..self.operations.len() as u32).filter(|&p| self.operations[p as usize].act == Act::SomeOn).collect();
        let unseen = self.unseen.min(unknown.len() as u64 + 1) as usize;
        free_for_good.extend(std::iter::repeat_n(0, unseen));
        free_for_good.sort_unstable();
        let mut takers = unknown.into_iter();
        for since in free_for_good {
            let Some(taker) = takers.next() else {
                gaps.push((since, u32::MAX));
                continue;
            };
            let taken = self.later(taker).call.max(since);
            gaps.extend((since < taken).then_some((since, taken)));
            timed.push((taken, u32::MAX - 1, taker));
        }

        let cover = Cover::of_intervals(gaps);
        for &p in self.refused {
            timed.push((cover.gap(self.later(p)).ok_or(p)?, u32::MAX, p));
        }
        timed.sort_unstable();
        Ok(timed.into_iter().map(|(_, _, p)| p).collect())
    }

    /// The changes of one object in an order that makes the gaps short: as far as possible, allocations by their calls
    /// and frees by their returns.
    ///
    /// Two neighbouring changes of a kind are swapped as long as all changes fit into their spans.
    fn tightest(&self, changes: &[u32]) -> Vec<u32> {
        let mut changes = changes.to_vec();
        for _ in 0..MAX_PASSES {
            let mut done = true;
            let mut earliest = 0;
            for at in 0..changes.len() {
                if let &[one, between, other, ..] = &changes[at..]
                    && self.is_better_first(other, one, at)
                    && self.fits([other, between, one], earliest)
                {
                    changes.swap(at, at + 2);
                    done = false;
                }
                earliest = self.later(changes[at]).call.max(earliest);
            }
            if done {
                break;
            }
        }
        changes
    }

    /// Whether `change` should precede `other`, a change of the same kind, if both orders are possible. Allocations are
    /// at even places.
    fn is_better_first(&self, change: u32, other: u32, place: usize) -> bool {
        let key = |p| if place.is_multiple_of(2) { self.later(p).call } else { self.later(p).ret };
        key(change) < key(other)
    }

    /// Whether these changes can follow one another from the moment `from` on. Later changes need no check: a swap of
    /// the first and the third does not alter the latest of the three calls, which is all that delays later changes.
    fn fits(&self, changes: [u32; 3], from: u32) -> bool {
        let mut earliest = from;
        changes.iter().all(|&p| {
            let Span { call, ret } = self.later(p);
            earliest = call.max(earliest);
            earliest <= ret
        })
    }

    /// The span with ranks increased by one. Gaps are open intervals, so a gap that begins before the first event needs
    /// a rank below that of the event.
    fn later(&self, p: u32) -> Span {
        let Span { call, ret } = self.spans.spans[p as usize];
        Span { call: call + 1, ret: ret + 1 }
    }

    /// The life from an allocation to its free, or to the end if there is no free.
    fn life(&self, pair: &[u32]) -> Life {
        let free = pair.get(1).map_or(after_the_end(self.spans.end + 1, 0), |&free| self.later(free));
        Life::new(self.later(pair[0]), free)
    }

    /// Operations that prove a failure for every order of the changes: at each moment of a refused allocation, more
    /// objects were free than pending allocations could have taken. `None` if no such proof exists.
    pub(super) fn certainly_free(&self, refused: u32) -> Option<Vec<u32>> {
        let span = self.spans.spans[refused as usize];
        let free = self.certain_times(span);
        let unknown =
            |p: &u32| self.operations[*p as usize].act == Act::SomeOn && self.spans.spans[*p as usize].call < span.ret;
        let unknown: Vec<u32> = (0..self.operations.len() as u32).filter(unknown).collect();
        let mut evidence = [&[refused], unknown.as_slice()].concat();
        // Free objects become fewer, or the pending allocations that may have taken them become more, only at these
        // moments.
        let mut moments: Vec<u32> = free.iter().map(|time| time.until).collect();
        moments.extend(unknown.iter().map(|&p| self.spans.spans[p as usize].call));
        moments.push(span.call);
        moments.retain(|&moment| span.call <= moment && moment <= span.ret);
        moments.sort_unstable();
        moments.dedup();
        for moment in moments {
            let called = unknown.iter().filter(|&&p| self.spans.spans[p as usize].call <= moment).count() as u64;
            let mut needed = (called + 1).saturating_sub(self.unseen);
            for time in free.iter().filter(|time| time.since <= moment && moment < time.until) {
                if needed == 0 {
                    break;
                }
                needed -= 1;
                evidence.extend(time.shown.into_iter().flatten());
            }
            if needed > 0 {
                return None;
            }
        }
        Some(evidence)
    }

    /// The periods that overlap `span` and in which an object is free in every order. The period that ends last is
    /// first.
    fn certain_times(&self, span: Span) -> Vec<Certain> {
        let mut changes: Vec<Vec<(u32, i32, u32)>> = vec![Vec::new(); self.objects as usize];
        for (p, operation) in (0..).zip(self.operations) {
            let Span { call, ret } = self.spans.spans[p as usize];
            let change = match operation.act {
                Act::Change(true) => (call, 1, p),
                Act::Change(false) => (ret, -1, p),
                _ => continue,
            };
            changes[operation.element as usize - 1].push(change);
        }
        let mut free = Vec::new();
        for changes in &mut changes {
            changes.sort_unstable();
            let mut since = Some((0, None));
            let mut allocated = 0;
            for &(moment, change, p) in changes.iter() {
                allocated += change;
                match since {
                    // An allocation may take effect as early as its call, and a free as late as its return.
                    Some((start, freed)) if allocated > 0 => {
                        free.push(Certain { since: start, until: moment, shown: [freed, Some(p)] });
                        since = None;
                    }
                    None if allocated <= 0 => since = Some((moment, Some(p))),
                    _ => {}
                }
            }
            free.extend(since.map(|(since, freed)| Certain { since, until: u32::MAX, shown: [freed, None] }));
        }
        free.retain(|time| time.since <= span.ret && span.call < time.until);
        free.sort_by_key(|time| std::cmp::Reverse(time.until));
        free
    }
}

/// A period in which an object is free in every order, and the operations that show it: the free before the period, and
/// the allocation that ends it.
struct Certain {
    since: u32,
    /// Exclusive.
    until: u32,
    shown: [Option<u32>; 2],
}
