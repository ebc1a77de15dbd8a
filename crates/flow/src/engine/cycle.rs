//! The cycle of a unit, as a worker drives it.
//!
//! | step | what happens | where |
//! | --- | --- | --- |
//! | **admit** | units from the gate enter their first queue, as long as there is room | `admit` |
//! | **grant** | each unit in a queue or in a line gets all that it needs, or waits; pulled units are admitted | `grant` (pulled: `pulling`) |
//! | **dispatch** | the worker takes a granted batch, or the right to pull the source | `dispatch`, `turn` |
//! | **wake** | other threads hear of the work that is left to them | `wake` |
//! | **run** | the stage's code runs on the batch, or the source is pulled; a batch of plain units that are all done retires | `turn`, `run/lane`, `run/settlement` (a pull: `threads/source_slot`, `intake/source`) |
//! | **settle** | each unit of the batch goes on, is retried, or leaves; those that have retired are counted | `settle` |
//!
//! A turn is one round of this cycle. The worker holds the mutex from settling one batch until it has taken the next
//! one. Only when the source has ended does it unlock the mutex in between, to tell the source's listener. Before it
//! runs what it took, the plan of wake-ups is made under the mutex and sent without it, so other workers run what it
//! leaves meanwhile.
//!
//! A unit of the source begins its path at *dispatch*: a worker dispatches itself to pull it, *runs* the pull,
//! *settles* it, and the *grant* after that admits the unit.

use std::sync::Arc;

use super::crew::post::Post;
use super::threads::shared::Shared;
use super::threads::sleep::sleep;
use super::turn::Hands;

/// The life of a worker.
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
                // A new fiber costs less than one that sleeps.
                state.crew.threads_mut(post).count_end();
                shared.unlock_and_wake(state);
                return hands.end();
            }
            hands.rest();
            let Some(woken) = sleep(shared, state, post, hands.now()) else { return hands.end() };
            state = woken;
            hands.lend_pocket(&mut state);
            hands.read_clock();
            // The wake-up may be for units at the gate alone.
            if !shared.gate().is_empty() {
                shared.gate().admit_from_gate(&mut state, hands.now());
            }
            continue;
        };

        // Wake others for what is left, and run.
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
        // Units in line come before those that wait at the gate.
        state.grant_all(hands.now());
    }
}
