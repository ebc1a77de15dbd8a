//! Pending removals of a priority queue: the values that they had to take, and by when.
//!
//! A removal needs a moment at which no smaller value is present. Smaller values that stay and are present at that
//! moment must have been taken by pending removals: the moment is their *deadline*. All deadlines can be met if and
//! only if this assignment meets them: the values, in order of their deadlines, go to the pending removals in order of
//! their calls, each of which must be called by the deadline. A value that is taken by its deadline needs no other
//! moment of its own: no value smaller than the removal's is present at the deadline, and so none smaller than this
//! one.
//!
//! The choice of the moments: take the removal of the *largest* value. Later moments are better, until one more value
//! that stays is present; so it has at most one more candidate than there are pending removals. The chosen moment
//! serves every removal of a smaller value whose span contains it. The other removals lie before it or after it, and
//! depend on each other only through the number of values gone by then: those that were present and matter are gone. So
//! a stretch of time between two moments, with that number, is a question of its own, and the number of stretches is
//! polynomial.
//!
//! Only removals that are stuck otherwise are considered: those that are stuck with the values taken so far, until none
//! is. Limits on their number, and on that of the stretches, leave a question open, and the search decides it.

use rustc_hash::FxHashMap;

use super::Undecided;
use super::free::Free;
use super::life::{Core, Life};
use super::pending::{Answer, Pending};
use super::priority::{Removal, decide, moments};
use super::shrink::shrink;
use super::span::Span;
use crate::budget::Budget;

/// The maximum number of passes over the values before the question is left open.
const MAX_ROUNDS: usize = 16;

/// The number of stuck removals that the first round adds, the first ones; each later round adds twice as many.
const REMOVALS: usize = if cfg!(test) { 1 } else { 64 };

/// The maximum number of smaller values that stay, over all removals, before the question is left open.
const MAX_STAYING: usize = 1 << 22;

/// The maximum number of stretches of time in a round before the question is left open.
const MAX_STRETCHES: usize = 100_000;

impl Pending<'_> {
    /// Decides a history of a priority queue, or leaves the question open; `lives` ascend in priority.
    pub(crate) fn decide_by_deadlines(
        &self,
        lives: &[Life],
        empties: &[Span],
        budget: &mut Budget,
    ) -> Result<Answer, Undecided> {
        if self.calls.is_empty() {
            return Ok(Answer { outcome: decide(lives, empties), taken: Vec::new() });
        }
        let mut taken = self.hinted(lives);
        let mut removals: Vec<Removal> = Vec::new();
        for round in 0..=MAX_ROUNDS {
            let mut stuck = match moments(&self.without(lives, &taken), empties) {
                Ok(steps) => return Ok(Answer { outcome: Ok(steps), taken }),
                Err(unplaced) => unplaced.stuck,
            };
            budget.look_at_the_clock()?;
            // A pending removal that is stuck may take no value, or another one.
            stuck.retain(|removal| removal.has_returned(lives));
            stuck.sort_by_key(|removal| removal.span.ret);
            removals.extend(stuck.into_iter().take(REMOVALS << round));
            if round == MAX_ROUNDS || removals.len() * (self.calls.len() + 1) > MAX_STAYING {
                break;
            }
            removals.sort_by_key(|removal| removal.below);
            let wants = wants(self, lives, &removals);
            match Plan::of(self, &wants)? {
                Some(plan) => taken = plan.taken(self.calls.len()),
                None => {
                    let core = core(lives, &fewest(self, &wants));
                    return Ok(Answer { outcome: Err(core), taken });
                }
            }
        }
        Err(Undecided::Open)
    }
}

/// The needs of a removal.
#[derive(Debug, Clone)]
struct Want {
    removal: Removal,
    /// The smaller values that stay, with the ranks of their presence, in order of their beginning; at most one more
    /// than there are pending removals.
    staying: Vec<(u32, u32)>,
    /// The moments at which no smaller value is present but those: the latest at which none of them is, the latest at
    /// which only the first is, and so on.
    moments: Vec<u32>,
}

/// The needs of the removals, which ascend in their values.
fn wants(pending: &Pending<'_>, lives: &[Life], removals: &[Removal]) -> Vec<Want> {
    let first = removals.iter().map(|removal| removal.span.call).min().unwrap_or(0);
    let last = removals.iter().map(|removal| removal.span.ret).max().unwrap_or(0);
    // The latest free moment is wanted, so time runs backwards.
    let back = |rank: u32| last + 1 - rank.clamp(first.saturating_sub(1), last + 1);
    let mut free = Free::new(back(0));
    let mut staying: Vec<(u32, u32)> = Vec::new();
    let mut wants = Vec::with_capacity(removals.len());
    let mut coming = removals.iter().peekable();
    for i in 0..=lives.len() as u32 {
        while let Some(&removal) = coming.next_if(|removal| removal.below == i) {
            let mut latest = |by: u32| {
                let moment = free.next(back(by));
                (moment <= back(removal.span.call)).then(|| last + 1 - moment)
            };
            let until = staying.iter().map(|&(there, _)| there).chain([u32::MAX]).take(pending.calls.len() + 1);
            let mut moments: Vec<u32> = until
                .filter(|&there| there >= removal.span.call)
                .filter_map(|there| latest(there.min(removal.span.ret)))
                .collect();
            moments.dedup();
            wants.push(Want { removal, staying: staying.clone(), moments });
        }
        let Some(life) = lives.get(i as usize) else { break };
        if life.stays() {
            let at = staying.partition_point(|&(there, _)| there < life.insert.ret);
            staying.insert(at, (life.insert.ret, i));
            staying.truncate(pending.calls.len() + 1);
        } else if life.insert.ret < last && life.remove.call > first {
            free.cover(back(life.remove.call), back(life.insert.ret));
        }
    }
    wants
}

/// A moment for each need, such that enough removals are pending at each.
struct Plan<'a> {
    pending: &'a Pending<'a>,
    /// In ascending order of their values.
    wants: &'a [Want],
    /// The moment of the removal of the largest value in a stretch; `None` if no moment fits.
    chosen: FxHashMap<Stretch, Option<u32>>,
}

/// A stretch of time between two chosen moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Stretch {
    /// Values present before this are gone, or never matter within the stretch.
    from: u32,
    to: u32,
    /// The number of values gone before.
    gone: usize,
}

impl Stretch {
    const WHOLE: Stretch = Stretch { from: 0, to: u32::MAX, gone: 0 };

    fn contains(&self, span: Span) -> bool {
        self.from < span.call && span.ret < self.to
    }

    /// The values that have to be gone by a moment and are not gone before.
    fn due<'w>(&self, want: &'w Want, moment: u32) -> impl Iterator<Item = u32> + use<'w> {
        let from = self.from;
        want.staying.iter().filter(move |&&(there, _)| from <= there && there < moment).map(|&(_, i)| i)
    }

    /// The stretches before and after a moment.
    fn cut(&self, want: &Want, moment: u32) -> (Stretch, Stretch) {
        let gone = self.gone + self.due(want, moment).count();
        (Stretch { to: moment, ..*self }, Stretch { from: moment, gone, ..*self })
    }
}

impl<'a> Plan<'a> {
    /// `None` if no plan exists.
    fn of(pending: &'a Pending<'a>, wants: &'a [Want]) -> Result<Option<Self>, Undecided> {
        let mut plan = Plan { pending, wants, chosen: FxHashMap::default() };
        Ok(plan.fits(Stretch::WHOLE)?.then_some(plan))
    }

    /// The need of the removal of the largest value in a stretch.
    fn largest(&self, stretch: Stretch) -> Option<&'a Want> {
        self.wants.iter().rev().find(|want| stretch.contains(want.removal.span))
    }

    fn fits(&mut self, stretch: Stretch) -> Result<bool, Undecided> {
        let Some(want) = self.largest(stretch) else { return Ok(true) };
        if let Some(chosen) = self.chosen.get(&stretch) {
            return Ok(chosen.is_some());
        }
        if self.chosen.len() == MAX_STRETCHES {
            return Err(Undecided::Open);
        }
        let mut chosen = None;
        for &moment in &want.moments {
            let (before, after) = stretch.cut(want, moment);
            let called = self.pending.calls.partition_point(|&call| call <= moment);
            if after.gone <= called && self.fits(before)? && self.fits(after)? {
                chosen = Some(moment);
                break;
            }
        }
        self.chosen.insert(stretch, chosen);
        Ok(chosen.is_some())
    }

    /// The value that each pending removal takes: the first removal to be called takes the value with the first
    /// deadline.
    fn taken(&self, removals: usize) -> Vec<Option<u32>> {
        let mut taken = Vec::with_capacity(removals);
        self.collect(Stretch::WHOLE, &mut taken);
        taken.resize(removals, None);
        taken
    }

    fn collect(&self, stretch: Stretch, taken: &mut Vec<Option<u32>>) {
        let Some(want) = self.largest(stretch) else { return };
        let moment = self.chosen.get(&stretch).copied().flatten().expect("a stretch that fits has a moment");
        let (before, after) = stretch.cut(want, moment);
        self.collect(before, taken);
        for value in stretch.due(want, moment) {
            if !taken.contains(&Some(value)) {
                taken.push(Some(value));
            }
        }
        self.collect(after, taken);
    }
}

/// A subset of the needs, as small as possible, that has no plan either.
fn fewest(pending: &Pending<'_>, wants: &[Want]) -> Vec<Want> {
    let indices = shrink((0..wants.len()).collect(), |indices| {
        let fewer: Vec<Want> = indices.iter().map(|&i| wants[i].clone()).collect();
        matches!(Plan::of(pending, &fewer), Ok(None))
    });
    indices.into_iter().map(|i| wants[i].clone()).collect()
}

/// All values that are in the way of the removals.
fn core(lives: &[Life], wants: &[Want]) -> Core {
    let mut all = Core::default();
    for want in wants {
        let Span { call, ret } = want.removal.span;
        let in_the_way = |life: &Life| {
            !life.stays() && life.insert.ret < ret && call < life.remove.call && life.insert.ret < life.remove.call
        };
        let removed = (0..want.removal.below).filter(|&i| in_the_way(&lives[i as usize]));
        let core = want.removal.core(removed.chain(want.staying.iter().map(|&(_, i)| i)).collect());
        all.lives.extend(core.lives);
        all.empties.extend(core.empties);
    }
    for indices in [&mut all.lives, &mut all.empties] {
        indices.sort_unstable();
        indices.dedup();
    }
    all
}
