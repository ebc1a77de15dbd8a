//! Mutexes: one process at a time holds the lock, and only that process can release it.
//!
//! An acquisition by a process and its next release form a *section*. Sections must not interleave, so they are
//! arranged like the values of a register (see [`zones`](super::zones)).
//!
//! A refused acquisition needs a moment at which some process holds the lock. The arranged sections are stretched: each
//! begins as early as the calls permit, and ends as late as the returns and the next acquisition permit. In the gaps
//! that remain between sections, no process can hold the lock. If the zones of all sections are forward, the sections
//! have only this order, so a refusal within a gap is a violation.
//!
//! Two operations of one process overlap if one returns at the time at which the other is called. Suppose that the
//! acquisitions and releases of a process alternate in the order of their calls. Then no other order permits more. In
//! any legal order, the acquisitions can exchange their moments until they are in the order of their calls, and so can
//! the releases. The result alternates in the order of the calls. If acquisitions and releases do not alternate in the
//! order of their calls, another order may be legal, so the history goes to the search.
//!
//! O(n log n).

use rustc_hash::FxHashMap;

use super::life::{Life, after_the_end};
use super::span::{MAX_OPERATIONS, Spans};
use super::stretch::Stretched;
use super::zones::{Zone, arrange};
use super::{Attempt, Decision, Undecided, Violation};
use crate::budget::Budget;
use crate::operation::Op;
use crate::part::Part;
use crate::value::Value;

/// The position of a release that never comes.
const NONE: u32 = u32::MAX;

/// An acquisition and its release, by position.
#[derive(Clone, Copy)]
struct Section {
    acquire: u32,
    release: u32,
}

impl Section {
    fn positions(self) -> impl Iterator<Item = u32> {
        [self.acquire, self.release].into_iter().filter(|&p| p != NONE)
    }
}

/// Decides a history of a mutex.
///
/// The procedure leaves the history open in three cases: a process continued after an operation whose outcome is
/// unknown; the operations of a process coincide in time and do not alternate; or a refusal depends on the choice among
/// several arrangements.
pub(crate) fn decide(part: &Part<'_>, budget: &mut Budget) -> Attempt {
    if part.len() > MAX_OPERATIONS {
        return Err(Undecided::Open);
    }
    let Sections { sections, refused, waiting } = match Sections::of(part)? {
        Ok(sections) => sections,
        Err(violation) => return Ok(Decision::Fails(violation)),
    };
    budget.look_at_the_clock()?;
    let Spans { spans, end } = Spans::of(part);
    budget.look_at_the_clock()?;
    let mut held_for_ever = 0;
    let lives: Vec<Life> = sections
        .iter()
        .map(|section| {
            let release = spans.get(section.release as usize).copied().unwrap_or_else(|| {
                held_for_ever += 1;
                after_the_end(end, held_for_ever - 1)
            });
            Life::new(spans[section.acquire as usize], release)
        })
        .collect();
    let zone = |life: &Life| Zone { first_return: life.insert.ret, last_call: life.remove.call };
    let zones: Vec<Zone> = lives.iter().map(zone).collect();
    let turns = match arrange(&zones, 0..zones.len() as u32) {
        Ok(turns) => turns,
        Err((a, b)) => {
            let rows = sections[a as usize].positions().chain(sections[b as usize].positions());
            return Ok(Decision::Fails(Violation::new(part, rows, "two processes have the lock at the same time")));
        }
    };
    let in_turn: Vec<Life> = turns.iter().map(|&s| lives[s as usize]).collect();
    let stretched = Stretched::of(&in_turn);

    // The steps are sorted by the section's turn and then by time. A refusal comes within a section, between
    // acquisition and release.
    let mut steps: Vec<(u32, u32, u32)> = Vec::with_capacity(part.len());
    for (turn, &s) in (0..).zip(&turns) {
        let section = sections[s as usize];
        steps.push((3 * turn, 0, section.acquire));
        steps.extend((section.release != NONE).then_some((3 * turn + 2, 0, section.release)));
    }
    let last_turn = turns.len() as u32;
    let waiter = waiting.iter().copied().min_by_key(|&p| spans[p as usize].call);
    let mut waiter_is_needed = false;
    for p in refused {
        match stretched.within(spans[p as usize]) {
            Ok((turn, moment)) => steps.push((3 * turn + 1, moment, p)),
            Err(turn) => {
                // A pending acquisition may hold the lock after the last section.
                if turn == last_turn
                    && let Some(waiter) = waiter
                    && spans[waiter as usize].call < spans[p as usize].ret
                {
                    waiter_is_needed = true;
                    steps.push((3 * turn + 1, spans[p as usize].call, p));
                    continue;
                }
                if zones.iter().any(|zone| !zone.is_forward()) {
                    return Err(Undecided::Open);
                }
                let around = [turn.checked_sub(1), Some(turn)].into_iter().flatten();
                let around = around.filter_map(|turn| turns.get(turn as usize));
                let rows = around.flat_map(|&s| sections[s as usize].positions()).chain([p]);
                let reason = "is refused the lock, although no process has it";
                return Ok(Decision::Fails(Violation::new(part, rows, reason).about(part, p)));
            }
        }
    }
    if waiter_is_needed {
        steps.extend(waiter.map(|waiter| (3 * last_turn, 0, waiter)));
    }
    budget.look_at_the_clock()?;
    steps.sort_unstable();
    Ok(Decision::Holds(steps.into_iter().map(|(_, _, p)| part.row(p as usize)).collect()))
}

struct Sections {
    sections: Vec<Section>,
    /// Acquisitions that returned without the lock.
    refused: Vec<u32>,
    /// Acquisitions that never returned.
    waiting: Vec<u32>,
}

impl Sections {
    fn of(part: &Part<'_>) -> Result<Result<Self, Violation>, Undecided> {
        let mut sections: Vec<Section> = Vec::with_capacity(part.len() / 2);
        let (mut refused, mut waiting) = (Vec::new(), Vec::new());
        // Each process's latest section, and whether the process is gone. A process is gone after an operation whose
        // outcome is unknown.
        let mut latest: FxHashMap<u64, (u32, bool)> = FxHashMap::default();
        for p in 0..part.len() {
            let process = u64::from(part.process(p));
            let (section, gone) = latest.get(&process).copied().unwrap_or((NONE, false));
            if gone {
                return Err(Undecided::Open);
            }
            let output = part.output(p);
            let p = p as u32;
            let now = match part.op(p as usize) {
                Op::ACQUIRE => match output {
                    Some(Value::FALSE) => {
                        refused.push(p);
                        section
                    }
                    Some(Value::TRUE | Value::NULL) => {
                        let holds = sections.get(section as usize).is_some_and(|held| held.release == NONE);
                        if holds && touches(part, part.process(p as usize)) {
                            return Err(Undecided::Open);
                        }
                        sections.push(Section { acquire: p, release: NONE });
                        sections.len() as u32 - 1
                    }
                    Some(_) => return Err(Undecided::Open),
                    None => {
                        waiting.push(p);
                        section
                    }
                },
                Op::RELEASE => {
                    match sections.get_mut(section as usize) {
                        Some(held) if held.release == NONE => held.release = p,
                        _ if output.is_none() => {}
                        _ if touches(part, part.process(p as usize)) => return Err(Undecided::Open),
                        before => {
                            let before = before.into_iter().flat_map(|section| section.positions());
                            let reason = "releases a lock that the process does not have";
                            return Ok(Err(Violation::new(part, before.chain([p]), reason).about(part, p)));
                        }
                    }
                    section
                }
                _ => return Err(Undecided::Open),
            };
            latest.insert(process, (now, output.is_none()));
        }
        Ok(Ok(Sections { sections, refused, waiting }))
    }
}

/// Whether the process calls an operation no later than its previous one returns.
fn touches(part: &Part<'_>, process: u32) -> bool {
    let own: Vec<usize> = (0..part.len()).filter(|&p| part.process(p) == process).collect();
    own.windows(2).any(|pair| part.call(pair[1]) <= part.ret(pair[0]))
}
