//! A chain: units run in a stage, then in the following stages, as long as these are open.

use super::claims::{GATHERED, NO_STAGE};
use super::crew::turn_slot::TurnSlot;
use super::pace::CHAIN_NS;
use super::run::advance::Advance;
use super::run::batch_run::Run;
use super::run::brood::Brood;
use super::run::settlement::Settlement;
use super::run::witness::{Ran, Track};
use super::threads::shared::Shared;
use super::units::column::Row;

/// The maximum number of stages that one chain runs a batch through.
const MAX_STAGE_RUNS: usize = 64;

/// How a chain begins.
#[derive(Clone, Copy)]
pub(super) struct Chain {
    pub(super) stage: u16,
    /// All its units are plain (see `Record`).
    pub(super) plain: bool,
    pub(super) time_each: bool,
    pub(super) began_ns: u64,
}

/// Runs units in a stage. If they run in a `turn`, they go on through the following stages, as long as these are open.
pub(super) fn run_chain(
    shared: &Shared,
    chain: Chain,
    rows: &mut [Row],
    mut brood: Option<&mut Brood>,
    turn: Option<&TurnSlot>,
    settlement: &mut Settlement,
    mut track: Option<&mut (dyn Track + 'static)>,
) {
    let Chain { mut stage, plain: all_plain, time_each: times_each, began_ns } = chain;
    let site = shared.site();
    let mut started_ns = began_ns;
    settlement.plain = all_plain;
    settlement.lighter = false;
    if let Some(turn) = turn {
        turn.go(stage);
    }
    let advance = Advance::new(shared, rows.len());
    let mut goes_on = false;
    loop {
        let first_timing = settlement.timings.len();
        settlement.keys.clear();
        // A time limit counts from the start of each unit, so the units must be timed one by one.
        let time_each = times_each || site.stage(stage).timeout.is_some();
        let plain = all_plain && settlement.plain;
        let room = brood.as_deref_mut();
        let mut run = Run { site, advance: &advance, stage, plain, time_each, started_ns, settlement, brood: room };
        shared.lane(stage).run(rows, &mut run);
        if let Some(track) = &mut track {
            let (brood, plain) = (brood.as_deref(), plain && settlement.plain);
            let began_ns = started_ns;
            track.ran(&Ran { site, stage, began_ns, goes_on, plain, rows, settlement, first_timing, brood });
        }
        settlement.advance = advance.bytes();
        let Some(turn) = turn else { return };
        let next = settlement.to;
        goes_on = settlement.exceptions.is_empty()
            && next != NO_STAGE
            && next != GATHERED
            && settlement.ended_ns - began_ns < CHAIN_NS
            && settlement.stage_runs.len() < MAX_STAGE_RUNS
            && shared.open_stages().is_open(next, rows.len());
        if !goes_on {
            return;
        }
        turn.go(next);
        started_ns = settlement.ended_ns;
        stage = next;
    }
}
