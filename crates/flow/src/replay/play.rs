//! Playing a script: the stand-in of a model runs it in simulated time.

use std::sync::Arc;
use std::time::Duration;

use super::script::Script;
use super::stand_in::{Shade, build};
use super::what_if::ReplayError;
use super::window::{at_pace, steady_part};
use crate::engine::simulate::drive::{Costs, NoEnd, Pulls, Simulated, Viewer, simulate};
use crate::engine::simulate::meter::{Meter, Spent};
use crate::report::Report;
use crate::trace::model::Model;

/// The outcome of a replay.
#[derive(Debug)]
#[non_exhaustive]
pub struct Replayed {
    /// The report of the simulated run. If the trace is a [sample](crate::Trace::read_or_sample), it covers only the
    /// sample's units.
    pub report: Report,
    /// The time that the units take at the pace of the steady part of the simulated run. The steady part begins when
    /// a tenth of the units have left, and ends when nine tenths have left.
    pub steady_wall: Duration,
}

/// Plays a script on the stand-in of a model. `order` lists the indices of the script's roots. The first `standing` of
/// them represent units that already wait at the beginning.
pub(super) fn play(
    model: &Model,
    factors: &[f64],
    script: &Arc<Script>,
    order: Vec<usize>,
    standing: usize,
    costs: Costs,
    viewer: Option<Viewer<'_>>,
) -> Result<Replayed, ReplayError> {
    let meter = Arc::new(Meter::default());
    let flow = build(model, factors, script, &meter)?;
    let roots: Vec<Shade> = order.iter().map(|&place| Shade::new(script.roots()[place])).collect();
    flow.give_source(roots.into_iter());
    let mut pulls = ScriptedPulls { script, order: order.into_iter() };
    let max_events = 10_000 + 64 * (script.visits().len() + script.units()) as u64;
    // The flow begins with `standing` units in line, and about as many are in line when the last unit arrives. After
    // that the line only shrinks, so the last `standing` departures do not count.
    let part = steady_part(script.units().saturating_sub(standing).max(standing));
    let marks = part.map(|nth| nth as u64);
    let simulated = simulate(&flow.shared, &meter, costs, &mut pulls, marks, max_events, viewer);
    let Simulated { report, marks_ns: [first_ns, last_ns] } = simulated.map_err(|no_end| match no_end {
        NoEnd::Stuck { left, held_by } => ReplayError::NoEnd { left, held_by },
        NoEnd::TooManyEvents => {
            ReplayError::NoEnd { left: 0, held_by: format!("it still runs after {max_events} events") }
        }
    })?;
    let steady_ns = at_pace(script.units(), part, last_ns.saturating_sub(first_ns));
    Ok(Replayed { report, steady_wall: Duration::from_nanos(steady_ns) })
}

struct ScriptedPulls<'a> {
    script: &'a Script,
    order: std::vec::IntoIter<usize>,
}

impl Pulls for ScriptedPulls<'_> {
    fn next(&mut self, units: usize) -> Spent {
        let mut spent = Spent::default();
        for place in self.order.by_ref().take(units) {
            let Spent { cpu_ns, wait_ns } = self.script.pull(place);
            spent.cpu_ns += cpu_ns;
            spent.wait_ns += wait_ns;
        }
        spent
    }
}
