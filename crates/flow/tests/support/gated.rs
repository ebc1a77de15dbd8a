//! A flow that is full until the test opens its gate.

use millstream_flow::Flow;

use crate::support::Gate;

/// A flow for `inflight` units with one stage. The stage takes one unit at a time, keeps it until the gate opens, and
/// doubles it.
pub(crate) fn gated(inflight: u64) -> (Flow<u64, u64>, Gate) {
    let gate = Gate::default();
    let mut flow = Flow::builder("gated");
    flow.inflight(inflight);
    let (hold, done) = (flow.inlet("hold"), flow.retire());
    let held = gate.clone();
    flow.stage(hold, move |n: &mut u64, _| {
        held.pass();
        Ok(*n * 2)
    })
    .workers(0..=1)
    .to(done);
    (flow.build(hold).unwrap(), gate)
}
