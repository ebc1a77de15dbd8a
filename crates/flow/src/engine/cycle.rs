//! The cycle of a unit, as a worker drives it.
//!
//! | step | what happens | where |
//! | --- | --- | --- |
//! | **admit** | units from the gate enter their first queue, as long as there is room | `admit` |
//! | **grant** | each unit in a queue or in a line gets all that it needs, or waits; pulled units are admitted | `grant` (pulled: `pulling`) |
//! | **dispatch** | the worker takes a granted batch, or the right to pull the source | `dispatch`, `turn` |
//! | **wake** | the worker wakes other threads for the work that it leaves | `wake` |
//! | **run** | the stage's code runs on the batch, or the source is pulled; if all units of a batch are plain and done, they retire | `turn`, `run/lane`, `run/settlement` (a pull: `threads/source_slot`, `intake/source`) |
//! | **settle** | each unit of the batch goes on, is retried, or leaves; retired units are counted | `settle` |
//!
//! A turn is one round of this cycle. The worker holds the mutex from the moment it begins to settle one batch until it
//! has taken the next. It unlocks the mutex in between only when the source has ended, to notify the source's listener.
//! Before the worker runs its batch, it plans wake-ups under the mutex, and carries them out after it has unlocked the
//! mutex. Meanwhile, the woken workers run the remaining work.
//!
//! The path of a unit from the source begins at *dispatch*: a worker dispatches itself to pull the source, *runs* the
//! pull, and *settles* it. The next *grant* admits the unit.

use std::sync::Arc;

use super::crew::post::Post;
use super::threads::shared::Shared;
use super::threads::sleep::sleep;
use super::turn::Hands;

/// The loop of a worker, from its first turn to its end.
pub(super) fn work(shared: &Arc<Shared>, post: Post) {
    let mut hands = Hands::new(shared, post);
    let mut state = hands.lock();
    if let Some(turn) = hands.turn() {
        state.join_crew(turn.clone());
    }
    loop {
        // Admit, grant, dispatch.
        state.admit_from_gate_if_wanted(shared.gate(), hands.now());
        state.grant_all(hands.now());
        state.note_room(hands.now());
        let task = hands.dispatch(&mut state);
        hands.take_pocket(&mut state);

        let Some(task) = task else {
            if state.end_if_finished(post) {
                return;
            }
            if shared.are_fibers(post) {
                // A fiber without work ends, because starting a new fiber costs less than keeping this one asleep.
                state.crew.threads_mut(post).count_end();
                shared.unlock_and_wake(state);
                return hands.end();
            }
            hands.rest();
            let Some(woken) = sleep(shared, state, post, hands.now()) else { return hands.end() };
            state = woken;
            hands.lend_pocket(&mut state);
            hands.read_clock();
            // The thread may have been woken only for the units at the gate. So it admits them here, even if the
            // workers need no further units.
            if !shared.gate().is_empty() {
                shared.gate().admit_from_gate(&mut state, hands.now());
            }
            continue;
        };

        // Wake others for the remaining work, and run.
        shared.unlock_and_wake(state);
        hands.run(task);
        state = hands.lock();

        // Settle.
        if let Some(end) = hands.settle(&mut state) {
            state.grant_all(hands.now());
            state.note_room(hands.now());
            hands.take_pocket(&mut state);
            shared.unlock_and_wake(state);
            shared.end_source(end);
            state = hands.lock();
        }
        // Units in line come before units at the gate, so the worker grants before it admits.
        state.grant_all(hands.now());
    }
}
