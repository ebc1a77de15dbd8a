//! Time in the procedures: every call and every return has its own rank.
//!
//! Clock readings may coincide and have 64 bits. Ranks are small and dense, so they can index an array, and no two
//! events have the same rank. If a return and a call coincide, the call gets the lower rank: the two operations then
//! overlap, which can make a history legal, but never illegal.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::history::PENDING;
use crate::part::Part;

/// The ranks of an operation's call and return.
///
/// `a` precedes `b` if and only if `a.ret < b.call`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) call: u32,
    pub(crate) ret: u32,
}

/// The return of an operation that happens after all events of the history, if at all.
pub(crate) const NEVER: u32 = u32::MAX;

/// The spans of a part's operations, by position.
pub(crate) struct Spans {
    pub(crate) spans: Vec<Span>,
    /// The rank after the last event, which is the return of every pending operation.
    pub(crate) end: u32,
}

/// The maximum number of operations of a part. It leaves space for ranks after the last event, one per operation.
pub(crate) const MAX_OPERATIONS: usize = (u32::MAX / 4) as usize;

impl Spans {
    /// Ranks the events of `part`. O(n log k) for k clients.
    pub(crate) fn of(part: &Part<'_>) -> Self {
        assert!(part.len() <= MAX_OPERATIONS, "a part of {} operations", part.len());
        let mut spans = vec![Span { call: 0, ret: 0 }; part.len()];
        let mut open: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        let mut rank = 0;
        for p in 0..part.len() {
            let call = part.call(p);
            while let Some(&Reverse((ret, returned))) = open.peek()
                && ret < call
            {
                open.pop();
                spans[returned as usize].ret = rank;
                rank += 1;
            }
            spans[p].call = rank;
            rank += 1;
            open.push(Reverse((part.ret(p), p as u32)));
        }
        while let Some(Reverse((ret, returned))) = open.pop() {
            spans[returned as usize].ret = rank;
            if ret != PENDING {
                rank += 1;
            }
        }
        Spans { spans, end: rank }
    }
}

/// The numbers below `n` in ascending order of their ranks.
///
/// Each rank is packed with its number into one word, and the words are sorted. This is several times faster than a
/// sort by key, which loads each rank from memory. O(n log n).
pub(super) fn by_rank(n: usize, rank: impl Fn(usize) -> u32) -> Vec<u32> {
    let mut words: Vec<u64> = (0..n).map(|i| u64::from(rank(i)) << 32 | i as u64).collect();
    words.sort_unstable();
    words.into_iter().map(|word| word as u32).collect()
}
