//! Mutexes: one process has the lock at a time, and only that one can give it back.
//!
//! The acquisition by a process and its next release are a *section*. Sections must not interleave, so they are
//! arranged like the values of a register (see [`zones`](super::zones)).
//!
//! An acquisition that was refused needs a moment at which somebody has the lock. With the sections arranged,
//! each is stretched: acquired as early as the calls allow, released as late as the returns do, but for the next
//! acquisition. What is left between two sections are moments at which nobody can have the lock. If all
//! sections are forward, they come in this order and no other, so a refusal within such a gap is a violation.
//!
//! O(n log n).

use rustc_hash::FxHashMap;

use super::life::{Life, after_the_end};
use super::span::{OPERATIONS_MOST, Spans};
use super::stretch::Stretched;
use super::zones::{Zone, arrange};
use super::{Decision, Violation};
use crate::operation::Op;
use crate::part::Part;
use crate::value::Value;

/// No position: the release that never comes.
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

/// Decides a history of a mutex; `None` if a process went on after an operation whose outcome is unknown, or if
/// a refusal could depend on which of several arrangements is the right one.
pub(crate) fn decide(part: &Part<'_>) -> Option<Decision> {
    if part.len() > OPERATIONS_MOST {
        return None;
    }
    let Sections { sections, refused, waiting } = match Sections::of(part)? {
        Ok(sections) => sections,
        Err(violation) => return Some(Decision::Fails(violation)),
    };
    let Spans { spans, end } = Spans::of(part);
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
            return Some(Decision::Fails(Violation::new(part, rows, "two processes have the lock at the same time")));
        }
    };
    let in_turn: Vec<Life> = turns.iter().map(|&s| lives[s as usize]).collect();
    let stretched = Stretched::of(&in_turn);

    // A refusal stands within the section whose turn it is; the steps are sorted by turn and then by time.
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
                // An acquisition that never returned can have come last.
                if turn == last_turn
                    && let Some(waiter) = waiter
                    && spans[waiter as usize].call < spans[p as usize].ret
                {
                    waiter_is_needed = true;
                    steps.push((3 * turn + 1, spans[p as usize].call, p));
                    continue;
                }
                if zones.iter().any(|zone| !zone.is_forward()) {
                    return None;
                }
                let around = [turn.checked_sub(1), Some(turn)].into_iter().flatten();
                let around = around.filter_map(|turn| turns.get(turn as usize));
                let rows = around.flat_map(|&s| sections[s as usize].positions()).chain([p]);
                let reason = "is refused the lock, although nobody has it";
                return Some(Decision::Fails(Violation::new(part, rows, reason)));
            }
        }
    }
    if waiter_is_needed {
        steps.extend(waiter.map(|waiter| (3 * last_turn, 0, waiter)));
    }
    steps.sort_unstable();
    Some(Decision::Holds(steps.into_iter().map(|(_, _, p)| part.row(p as usize)).collect()))
}

struct Sections {
    sections: Vec<Section>,
    /// Acquisitions that did not get the lock.
    refused: Vec<u32>,
    /// Acquisitions that never returned.
    waiting: Vec<u32>,
}

impl Sections {
    fn of(part: &Part<'_>) -> Option<Result<Self, Violation>> {
        let mut sections: Vec<Section> = Vec::with_capacity(part.len() / 2);
        let (mut refused, mut waiting) = (Vec::new(), Vec::new());
        // Each process's latest section, and whether it is still to do anything.
        let mut latest: FxHashMap<u64, (u32, bool)> = FxHashMap::default();
        for p in 0..part.len() {
            let process = u64::from(part.process(p));
            let (section, gone) = latest.get(&process).copied().unwrap_or((NONE, false));
            if gone {
                return None;
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
                        sections.push(Section { acquire: p, release: NONE });
                        sections.len() as u32 - 1
                    }
                    Some(_) => return None,
                    None => {
                        waiting.push(p);
                        section
                    }
                },
                Op::RELEASE => {
                    match sections.get_mut(section as usize) {
                        Some(held) if held.release == NONE => held.release = p,
                        _ if output.is_none() => {}
                        before => {
                            let before = before.into_iter().flat_map(|section| section.positions());
                            let reason = "gives back a lock that the process does not have";
                            return Some(Err(Violation::new(part, before.chain([p]), reason)));
                        }
                    }
                    section
                }
                _ => return None,
            };
            latest.insert(process, (now, output.is_none()));
        }
        Some(Ok(Sections { sections, refused, waiting }))
    }
}
