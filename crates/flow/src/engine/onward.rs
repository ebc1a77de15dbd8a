//! Onward: the children of a unit continue at once, in the turn that produced them.
//!
//! A unit with few children produces all its children in one run. The children are then in the worker's cache, and the
//! parent has no work left for other workers. So the worker takes the children on through open stages, as it does with
//! any batch that it has run. If one turn produces all children of a family, and they all join one group, this group is
//! complete and goes on in the same turn. The scheduler learns of all these steps at once, when the turn is settled.
//!
//! A unit that has further children returns to the scheduler instead, so that another worker can produce them. Children
//! with enough work to be worth a wake-up return to the scheduler, too, so that another worker can run them.

use std::collections::VecDeque;

use super::chain::{Chain, run_chain};
use super::claims::GATHERED;
use super::crew::turn_slot::TurnSlot;
use super::pace::WAKE_NS;
use super::run::brood::{Branch, Brood, Newborn};
use super::run::settlement::{Settlement, Verdict};
use super::run::witness::Track;
use super::threads::shared::Shared;
use super::units::column::Row;
use super::units::record::Parent;

/// A unit that was split, and the state of its children in this turn.
struct Family {
    /// The row of the unit that was split.
    parent: u32,
    /// The parent of the unit that was split.
    above: Option<Parent>,
    /// All children of the unit were produced in this run and have gone on.
    whole: bool,
    children: usize,
    /// The number of children that have joined or opened a group in `stage`.
    gathered: usize,
    /// The first stage in which a child has joined or opened a group.
    stage: u16,
    /// The index of the branch with a child that holds a group in `stage` open.
    holder: Option<usize>,
    holders: usize,
}

impl Family {
    fn is_in_one_group(&self) -> bool {
        self.whole && self.gathered == self.children && self.holders == 1
    }
}

/// Takes the children of a run through the open stages that follow. `parents` are the units that the run has split.
pub(super) fn take_children_on(
    shared: &Shared,
    parents: &mut [Row],
    brood: &mut Brood,
    settlement: &Settlement,
    turn: &TurnSlot,
    mut track: Option<&mut (dyn Track + 'static)>,
) {
    let has_more = |(_, verdict): &(u32, Verdict)| matches!(verdict, Verdict::Unfold { .. });
    if brood.is_overweight() || settlement.exceptions.iter().any(has_more) {
        return;
    }
    let takes_ns = brood.born().map(|newborn| shared.open_stages().unit_ns(newborn.to)).sum::<u64>();
    if takes_ns > WAKE_NS {
        return;
    }
    let mut waiting = branches(shared, brood).into_iter();
    let (mut branches, mut now) = (Vec::with_capacity(waiting.len() + 1), settlement.ended_ns);
    while now.saturating_sub(settlement.ended_ns) <= WAKE_NS
        && let Some(mut branch) = waiting.next()
    {
        now = run_branch(shared, &mut branch, turn, now, track.as_deref_mut());
        branches.push(branch);
    }
    for Branch { first: to, rows, .. } in waiting {
        for mut row in rows {
            let bytes = shared.site().records().record(&mut row).bytes();
            brood.give_back(Newborn { row, to, bytes });
        }
    }
    if branches.is_empty() {
        return;
    }
    let families = families(shared, parents, brood, &mut branches, settlement);
    if let Some(mut groups) = take_whole_groups(shared, &families, &mut branches) {
        run_branch(shared, &mut groups, turn, now, track);
        branches.push(groups);
    }
    brood.go_on(branches);
}

/// Sorts the children into branches by the open stages that they go on to.
fn branches(shared: &Shared, brood: &mut Brood) -> Vec<Branch> {
    let mut branches: Vec<Branch> = Vec::new();
    brood.take_out(|newborn| {
        let most = shared.open_stages().most_units(newborn.to);
        if most == 0 {
            return Some(newborn);
        }
        let Newborn { mut row, to, bytes } = newborn;
        let record = shared.site().records().record(&mut row);
        record.weigh(bytes);
        record.go_on();
        let last = branches.iter_mut().rev().find(|branch| branch.first == to);
        let branch = match last.filter(|branch| branch.rows.len() < most) {
            Some(branch) => branch,
            None => {
                branches.push(Branch::new(to));
                branches.last_mut().expect("it was pushed above")
            }
        };
        branch.add(row, bytes);
        None
    });
    branches
}

/// Runs a branch through its stages. Returns the time at which it ends.
fn run_branch(
    shared: &Shared,
    branch: &mut Branch,
    turn: &TurnSlot,
    began_ns: u64,
    track: Option<&mut (dyn Track + 'static)>,
) -> u64 {
    branch.units = branch.rows.len();
    let rows = branch.rows.make_contiguous();
    let chain = Chain { stage: branch.first, plain: false, time_each: false, began_ns };
    run_chain(shared, chain, rows, None, Some(turn), &mut branch.settlement, track);
    branch.settlement.ended_ns
}

/// Returns a family for each unit that was split completely, with the state of its children.
fn families(
    shared: &Shared,
    parents: &mut [Row],
    brood: &Brood,
    branches: &mut [Branch],
    settlement: &Settlement,
) -> Vec<Family> {
    let records = shared.site().records();
    let mut families: Vec<Family> = Vec::with_capacity(parents.len());
    for (place, verdict) in &settlement.exceptions {
        let Verdict::Unfolded { whole } = *verdict else { continue };
        let parent = &mut parents[*place as usize];
        let above = records.record(parent).parent();
        let (parent, stage) = (parent.number(), u16::MAX);
        families.push(Family { parent, above, whole, children: 0, gathered: 0, stage, holder: None, holders: 0 });
    }
    for parent in brood.born().filter_map(|newborn| records.look(&newborn.row).parent()) {
        let of_it = families.iter_mut().filter(|family| family.parent == parent.row);
        of_it.for_each(|family| family.whole = false);
    }
    for (index, branch) in (0..).zip(branches) {
        let Branch { rows, settlement, .. } = branch;
        let Some(stage) = settlement.stage_runs.last().map(|run| run.stage) else { continue };
        let gathers = shared.lane(stage).gathers_families();
        let mut exceptions = settlement.exceptions.iter().peekable();
        // Children are in the order of their parents, so each search for a child's family begins at the last family
        // found.
        let mut at = 0;
        for (place, row) in (0..).zip(&*rows) {
            let exception = exceptions.next_if(|(at, _)| *at == place).map(|(_, verdict)| *verdict);
            let Some(parent) = records.look(row).parent() else { continue };
            let Some(ahead) = families[at..].iter().position(|family| family.parent == parent.row) else { continue };
            at += ahead;
            let family = &mut families[at];
            family.children += 1;
            let rests = matches!(exception, Some(Verdict::Rest { .. }));
            let joins = exception.is_none() && settlement.to == GATHERED;
            if !gathers || !(rests || joins) || (family.gathered > 0 && family.stage != stage) {
                continue;
            }
            family.stage = stage;
            family.gathered += 1;
            if rests {
                family.holders += 1;
                family.holder = Some(index);
            }
        }
    }
    families
}

/// Moves the holders of complete groups from their branches to a new branch, which goes on from the groups' stage. From
/// now on, these holders replace their parents in the flow.
fn take_whole_groups(shared: &Shared, families: &[Family], branches: &mut [Branch]) -> Option<Branch> {
    let stage = families.iter().find(|family| family.is_in_one_group())?.stage;
    let records = shared.site().records();
    let mut groups = Branch::new(stage);
    for (index, branch) in (0..).zip(branches) {
        let Branch { rows, settlement, rested, .. } = branch;
        if settlement.stage_runs.last().is_none_or(|run| run.stage != stage) {
            continue;
        }
        let exceptions = std::mem::take(&mut settlement.exceptions);
        let mut exceptions = exceptions.into_iter().peekable();
        let mut stay = VecDeque::with_capacity(rows.len());
        let mut at = 0;
        for (place, mut row) in (0..).zip(rows.drain(..)) {
            let exception = exceptions.next_if(|(at, _)| *at == place).map(|(_, verdict)| verdict);
            let record = records.record(&mut row);
            let of = record.parent().and_then(|parent| families[at..].iter().position(|of| of.parent == parent.row));
            let whole = of.map(|ahead| &families[at + ahead]).filter(|of| of.is_in_one_group() && of.stage == stage);
            at += of.unwrap_or(0);
            match (whole, exception) {
                (Some(family), Some(Verdict::Rest { .. })) if family.holder == Some(index) => {
                    record.set_parent(family.above);
                    record.rest();
                    *rested += 1;
                    groups.rows.push_back(row);
                    continue;
                }
                (Some(_), None) => record.set_parent(None),
                _ => {}
            }
            if let Some(verdict) = exception {
                settlement.exceptions.push((stay.len() as u32, verdict));
            }
            stay.push_back(row);
        }
        *rows = stay;
    }
    Some(groups)
}
