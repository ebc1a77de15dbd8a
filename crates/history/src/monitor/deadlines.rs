//! Pending removals of a priority queue: which values had to be gone, and by when.
//!
//! A removal needs a moment at which nothing smaller is there. The values that stay, are smaller and are there at that moment
//! must have been taken by pending removals: the moment is their *deadline*. All deadlines can be met exactly if they are when the values, in
//! order of their deadlines, go to the pending removals in order of their calls: each was called by then. A value that
//! is taken by its deadline needs no other moment of its own: nothing smaller than the removal's value is there at the deadline, and
//! so nothing smaller than this one.
//!
//! Which moments? Take the removal of the *largest* value. Later moments are better, until one more value is there that stays; so
//! there are no more to choose from than pending removals, and one. Whatever is chosen serves every removal of a smaller value whose span
//! contains it. The others lie before it or after it, and all that they have to know of each other is how many values are gone by then:
//! those that were there and matter are. So a stretch of time between two moments, with that number, is a
//! question of its own, and there are polynomially many.
//!
//! Only the removals that are stuck otherwise are looked at: those that are stuck with what was taken so far, until none is. Bounds on
//! how many these are, and on the stretches, leave a question open; it is the search's then.

use rustc_hash::FxHashMap;

use super::Undecided;
use super::free::Free;
use super::life::{Core, Life};
use super::pending::{Answer, Pending};
use super::priority::{Removal, decide, moments};
use super::shrink::shrink;
use super::span::Span;
use crate::budget::Budget;

/// How often the values are gone through before the question is left open.
const ROUNDS_MOST: usize = 16;

/// How many removals are looked at more in the first round, and twice as many in each that follows: the first ones that are stuck.
const REMOVALS: usize = if cfg!(test) { 1 } else { 64 };

/// How many smaller values that stay the removals may ask for, all together, before the question is left open.
const STAYING_MOST: usize = 1 << 22;

/// How many stretches of time are looked at in a round before the question is left open.
const STRETCHES_MOST: usize = 100_000;

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
        for round in 0..=ROUNDS_MOST {
            let mut stuck = match moments(&self.without(lives, &taken), empties) {
                Ok(steps) => return Ok(Answer { outcome: Ok(steps), taken }),
                Err(unplaced) => unplaced.stuck,
            };
            budget.look_at_the_clock()?;
            // A pending removal that is stuck just takes nothing, or something else.
            stuck.retain(|removal| removal.has_returned(lives));
            stuck.sort_by_key(|removal| removal.span.ret);
            removals.extend(stuck.into_iter().take(REMOVALS << round));
            if round == ROUNDS_MOST || removals.len() * (self.calls.len() + 1) > STAYING_MOST {
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

/// What a removal asks for.
#[derive(Debug, Clone)]
struct Want {
    removal: Removal,
    /// The smaller values that stay, with the ranks when they are there; one more than there are pending removals at most, first
    /// come first.
    staying: Vec<(u32, u32)>,
    /// The moments at which no smaller value is there but of those: the latest at which none of them is, the latest at which the first is, and
    /// so on.
    moments: Vec<u32>,
}

/// What the removals, which ascend in their values, ask for.
fn wants(pending: &Pending<'_>, lives: &[Life], removals: &[Removal]) -> Vec<Want> {
    let first = removals.iter().map(|removal| removal.span.call).min().unwrap_or(0);
    let last = removals.iter().map(|removal| removal.span.ret).max().unwrap_or(0);
    // The latest free moment is looked for, so time runs backwards.
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

/// A moment for each of the wants, so that enough removals are pending at each.
struct Plan<'a> {
    pending: &'a Pending<'a>,
    /// Ascend in their values.
    wants: &'a [Want],
    /// The moment of the removal of the largest value in a stretch, `None` if no moment does.
    chosen: FxHashMap<Stretch, Option<u32>>,
}

/// A stretch of time between two chosen moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Stretch {
    /// What was there before this is gone, or never matters in here.
    from: u32,
    to: u32,
    /// How many values are gone before.
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

    /// What is before a moment, and what is after it.
    fn cut(&self, want: &Want, moment: u32) -> (Stretch, Stretch) {
        let gone = self.gone + self.due(want, moment).count();
        (Stretch { to: moment, ..*self }, Stretch { from: moment, gone, ..*self })
    }
}

impl<'a> Plan<'a> {
    /// `None` if there is none.
    fn of(pending: &'a Pending<'a>, wants: &'a [Want]) -> Result<Option<Self>, Undecided> {
        let mut plan = Plan { pending, wants, chosen: FxHashMap::default() };
        Ok(plan.fits(Stretch::WHOLE)?.then_some(plan))
    }

    /// What the removal of the largest value in a stretch asks for.
    fn largest(&self, stretch: Stretch) -> Option<&'a Want> {
        self.wants.iter().rev().find(|want| stretch.contains(want.removal.span))
    }

    fn fits(&mut self, stretch: Stretch) -> Result<bool, Undecided> {
        let Some(want) = self.largest(stretch) else { return Ok(true) };
        if let Some(chosen) = self.chosen.get(&stretch) {
            return Ok(chosen.is_some());
        }
        if self.chosen.len() == STRETCHES_MOST {
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

    /// What each pending removal takes: the first to be called the value with the first deadline.
    fn taken(&self, removals: usize) -> Vec<Option<u32>> {
        let mut taken = Vec::with_capacity(removals);
        self.collect(Stretch::WHOLE, &mut taken);
        taken.resize(removals, None);
        taken
    }

    fn collect(&self, stretch: Stretch, taken: &mut Vec<Option<u32>>) {
        let Some(want) = self.largest(stretch) else { return };
        let moment = self.chosen.get(&stretch).copied().flatten().expect("what fits has a moment");
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

/// As few of the wants as have no plan either.
fn fewest(pending: &Pending<'_>, wants: &[Want]) -> Vec<Want> {
    let indices = shrink((0..wants.len()).collect(), |indices| {
        let fewer: Vec<Want> = indices.iter().map(|&i| wants[i].clone()).collect();
        matches!(Plan::of(pending, &fewer), Ok(None))
    });
    indices.into_iter().map(|i| wants[i].clone()).collect()
}

/// All that is in the way of the removals.
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
