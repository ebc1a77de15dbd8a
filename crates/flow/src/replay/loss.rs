//! The loss of crowded cores: the speed that a machine loses because it does not share its cores perfectly.
//!
//! The kernel measures the time for which threads and programs were ready to run but had no processor. In a
//! simulation, where jobs share the cores evenly and an idle core takes a ready job at once, this delay is shorter. A
//! real scheduler may leave a job waiting behind another job while a core is idle, and other programs compute as well.
//! The loss is chosen so that a replay of the run has the recorded delay. The loss is fitted only to that delay, never to
//! the length of the run, which remains a prediction.

use std::sync::Arc;

use super::play::play;
use super::script::Script;
use super::what_if::ReplayError;
use crate::engine::simulate::drive::Costs;
use crate::trace::model::Model;

/// The largest loss.
const MAX_LOSS: f64 = 0.5;

/// The number of replays, each of which halves the interval of the loss; the last interval is a 64th of [`MAX_LOSS`].
const HALVINGS: u32 = 6;

/// If the delay is at most the processor time divided by this number, the loss is 0.
const WORTH_ONE_IN: u64 = 200;

/// The maximum number of visits in each replay. The loss of a long run is computed from the beginning of the run.
const MAX_VISITS: usize = 20_000;

/// Returns the loss of the machine during the run of the script.
pub(super) fn fit_loss(model: &Model, script: &Arc<Script>, costs: Costs) -> f64 {
    let account = script.account();
    if account.cpu_ns == 0 || account.delayed_ns <= account.cpu_ns / WORTH_ONE_IN {
        return 0.0;
    }
    let recorded = account.delayed_ns as f64 / account.cpu_ns as f64;
    let factors = vec![1.0; model.stages.len()];
    let roots = script.roots().len();
    let part = (roots as u128 * MAX_VISITS as u128 / script.visits().len().max(MAX_VISITS) as u128) as usize;
    let order: Vec<usize> = (0..part.max(1).min(roots)).collect();
    let delay = |loss: f64| -> Result<f64, ReplayError> {
        let report =
            play(model, &factors, script, order.clone(), script.standing(), Costs { loss, ..costs }, None)?.report;
        let busy: u64 = report.stages.iter().map(|stage| stage.busy_ns).sum();
        let (cpu_ns, wait_ns) = script.spent_by(&order);
        Ok(busy.saturating_sub(cpu_ns).saturating_sub(wait_ns) as f64 / cpu_ns.max(1) as f64)
    };
    let (mut low, mut high) = (0.0, MAX_LOSS);
    // If sharing alone explains the delay, there is no loss. If no loss explains it, the delay has another cause, such
    // as other programs that delay a single worker. Errors of these replays are ignored here: a replay that the
    // program asks for reports its own errors.
    let (Ok(least), Ok(most)) = (delay(low), delay(high)) else { return 0.0 };
    if recorded <= least || most < recorded {
        return 0.0;
    }
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        match delay(middle) {
            Ok(delay) if delay < recorded => low = middle,
            Ok(_) => high = middle,
            Err(_) => return 0.0,
        }
    }
    (low + high) / 2.0
}
