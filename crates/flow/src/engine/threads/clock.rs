//! The timekeeper: one thread that serves all timers of a flow.

use std::sync::Arc;

use millstream_sync::eventcount::SpinPolicy;

use super::shared::Shared;
use crate::engine::state::State;

/// Fires the timers that are due.
pub(crate) fn fire(shared: &Shared, state: &mut State, now: u64) {
    state.fire_timers(now);
    if state.crew.watch_has_ended() {
        // The worker that attends the gate may be late, so the units at the gate are admitted here, too.
        shared.gate().admit_from_gate(state, now);
        state.grant_all(now);
        state.watch_again(now);
    }
}

/// Fires timers when they are due, until the flow is joined.
pub(super) fn keep_time(shared: &Arc<Shared>) {
    let mut state = shared.lock();
    while !state.life.is_finished() {
        let now = shared.now();
        if state.timers.next_at() <= now {
            fire(shared, &mut state, now);
            shared.unlock_and_wake(state);
            state = shared.lock();
            continue;
        }
        let next = state.sleep_clock();
        let key = shared.clock.snapshot();
        drop(state);
        let deadline = (next != u64::MAX).then(|| shared.site().instant(next));
        let _ = shared.clock.wait_with(key, deadline, SpinPolicy::NONE);
        state = shared.lock();
    }
}
