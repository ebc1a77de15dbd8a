//! Searches: replays with different settings, one after another.

use millstream_flow::{Trace, WhatIf};

use super::answer::Answer;
use super::check::Checked;
use super::doubt::Doubt;
use super::goal::Goal;
use super::replays::{NoReplay, Replays};
use super::setting::{Knob, Sweep, knobs};
use super::slope::Slope;

/// The number of replays with resampled units from which the range of an answer is computed.
const RESAMPLES: u64 = 9;

/// A gain below this share is ignored.
const WORTH_IT: f64 = 0.01;

/// The maximum factor by which a search raises a setting.
const MAX_FACTOR: u64 = 64;

/// All results of a command.
pub(super) struct Found<'a> {
    pub(super) trace: &'a Trace,
    pub(super) doubt: Doubt,
    pub(super) slope: Option<Slope>,
    pub(super) as_it_was: Answer,
    pub(super) changed: Option<Changed>,
    /// The runs that check the prediction.
    pub(super) checked: Option<Checked>,
    pub(super) helps: Option<Vec<Help>>,
    pub(super) sweep: Option<(Knob, Vec<(u64, Answer)>)>,
    pub(super) goal: Option<Reached>,
}

/// The answer to the requested changes.
pub(super) struct Changed {
    pub(super) settings: String,
    pub(super) answer: Answer,
    /// The range of the wall time over the replays with resampled units.
    pub(super) wall_s: (f64, f64),
    /// The range of the 99th percentile of latency over the same replays.
    pub(super) p99_s: (f64, f64),
}

/// A setting that helps, and the effect of doubling it.
pub(super) struct Help {
    pub(super) knob: Knob,
    pub(super) was: u64,
    pub(super) to: u64,
    pub(super) answer: Answer,
    /// The value above which a further increase has no effect.
    pub(super) enough: u64,
    pub(super) at_enough: Answer,
}

/// The settings that reach a goal, or those that come closest to it.
pub(super) struct Reached {
    pub(super) goal: String,
    pub(super) is_reached: bool,
    pub(super) settings: Vec<(Knob, u64, u64)>,
    pub(super) answer: Answer,
}

/// Computes the answer to the given changes.
pub(super) fn changed(replays: &Replays<'_>, what_if: &WhatIf, settings: &[String]) -> Result<Changed, NoReplay> {
    let answer = replays.to(what_if)?;
    let (mut wall_s, mut p99_s) = ((answer.wall_s, answer.wall_s), (answer.p99_s, answer.p99_s));
    let widen = |range: &mut (f64, f64), value: f64| *range = (range.0.min(value), range.1.max(value));
    for seed in 0..RESAMPLES {
        let resampled = replays.resampled(what_if, seed)?;
        widen(&mut wall_s, resampled.wall_s);
        widen(&mut p99_s, resampled.p99_s);
    }
    Ok(Changed { settings: settings.join(" "), answer, wall_s, p99_s })
}

/// The settings that make the run faster when they are doubled, the best first.
pub(super) fn helps(replays: &Replays<'_>, what_if: &WhatIf, as_it_was: &Answer) -> Result<Vec<Help>, NoReplay> {
    let mut helps = Vec::new();
    for (knob, was) in knobs(replays.trace) {
        let to = was.saturating_mul(2);
        let Some(answer) = replays.tried(&knob.turn(what_if.clone(), to))? else { continue };
        if !gains(as_it_was, &answer) {
            continue;
        }
        let (enough, at_enough) = enough(replays, what_if, &knob, was)?;
        helps.push(Help { knob, was, to, answer, enough, at_enough });
    }
    helps.sort_by(|a, b| a.answer.wall_s.total_cmp(&b.answer.wall_s));
    Ok(helps)
}

/// Returns whether the second answer is faster than the first by at least `WORTH_IT`.
fn gains(before: &Answer, after: &Answer) -> bool {
    after.wall_s < before.wall_s * (1.0 - WORTH_IT)
}

/// The highest value to which a setting can be raised, and the answer with that value.
fn raised(replays: &Replays<'_>, what_if: &WhatIf, knob: &Knob, was: u64) -> Result<(u64, Answer), NoReplay> {
    let mut factor = MAX_FACTOR;
    loop {
        let most = was.saturating_mul(factor);
        match replays.to(&knob.turn(what_if.clone(), most)) {
            Err(NoReplay::Not(_)) if factor > 2 => factor /= 2,
            answered => return answered.map(|answer| (most, answer)),
        }
    }
}

/// The lowest value of a setting above which a further increase has no effect.
fn enough(replays: &Replays<'_>, what_if: &WhatIf, knob: &Knob, was: u64) -> Result<(u64, Answer), NoReplay> {
    let at = |value: u64| replays.to(&knob.turn(what_if.clone(), value));
    // The setting may have a limit, so the highest possible value is determined first.
    let (most, best) = raised(replays, what_if, knob, was)?;
    let is_enough = |answer: &Answer| answer.wall_s <= best.wall_s * (1.0 + WORTH_IT);
    let (mut too_few, mut enough, mut answer) = (was, most, best.clone());
    while enough - too_few > 1 + too_few / 16 {
        let middle = too_few + (enough - too_few) / 2;
        let found = at(middle)?;
        if is_enough(&found) {
            (enough, answer) = (middle, found);
        } else {
            too_few = middle;
        }
    }
    Ok((enough, answer))
}

/// Computes the answer for each value of a setting.
pub(super) fn sweep(
    replays: &Replays<'_>,
    what_if: &WhatIf,
    sweep: &Sweep,
) -> Result<(Knob, Vec<(u64, Answer)>), NoReplay> {
    let mut answers = Vec::new();
    for &value in &sweep.values {
        match replays.to(&sweep.knob.turn(what_if.clone(), value)) {
            Ok(answer) => answers.push((value, answer)),
            // The value exceeds a limit of the setting, and so do all further values.
            Err(NoReplay::Not(_)) if !answers.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    Ok((sweep.knob.clone(), answers))
}

/// Searches for settings that reach a goal. Repeatedly doubles the setting whose increase brings the answer closest to
/// the goal, until the goal is reached or no increase helps. Then undoes the increases that are not needed.
pub(super) fn reach(replays: &Replays<'_>, what_if: &WhatIf, goal: &Goal) -> Result<Reached, NoReplay> {
    let mut knobs: Vec<(Knob, u64, u64)> =
        knobs(replays.trace).into_iter().map(|(knob, was)| (knob, was, was)).collect();
    let with = |knobs: &[(Knob, u64, u64)]| {
        let turned = knobs.iter().filter(|(_, was, to)| to != was);
        turned.fold(what_if.clone(), |what_if, (knob, _, to)| knob.turn(what_if, *to))
    };
    let mut answer = replays.to(&with(&knobs))?;
    while !goal.is_reached(&answer) {
        let mut best: Option<(usize, u64, Answer)> = None;
        for place in 0..knobs.len() {
            let (_, was, to) = knobs[place];
            // Sometimes only a factor of four helps, for example if the units in flight must fill a batch.
            for raised in [to.saturating_mul(2), to.saturating_mul(4)] {
                if raised > was.saturating_mul(MAX_FACTOR) {
                    continue;
                }
                let mut tried = knobs.clone();
                tried[place].2 = raised;
                let Some(found) = replays.tried(&with(&tried))? else { continue };
                if best.as_ref().is_none_or(|(.., best)| goal.distance(&found) < goal.distance(best) * (1.0 - WORTH_IT))
                {
                    best = Some((place, raised, found));
                }
            }
        }
        match best {
            Some((place, raised, found)) if goal.distance(&found) < goal.distance(&answer) * (1.0 - WORTH_IT) => {
                (knobs[place].2, answer) = (raised, found);
            }
            _ => break,
        }
    }
    let is_reached = goal.is_reached(&answer);
    if is_reached {
        for place in 0..knobs.len() {
            let (_, was, to) = knobs[place];
            let (mut too_few, mut enough) = (was.saturating_sub(1), to);
            while enough > was && enough - too_few > 1 {
                let middle = too_few + (enough - too_few) / 2;
                let mut tried = knobs.clone();
                tried[place].2 = middle;
                match replays.tried(&with(&tried))? {
                    Some(found) if goal.is_reached(&found) => (enough, answer) = (middle, found),
                    _ => too_few = middle,
                }
            }
            knobs[place].2 = enough;
        }
    }
    let settings = knobs.into_iter().filter(|(_, was, to)| to != was).collect();
    Ok(Reached { goal: goal.text().to_owned(), is_reached, settings, answer })
}
