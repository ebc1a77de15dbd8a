//! Loom explores every interleaving of small rings: two or three threads, one to three events each.
//!
//! What is explored is the source that runs: sequencers, channels, the bell and the waiting. The strategy is
//! `Block`, so that every wait gets to the point where a wake-up could be lost; a lost one is a deadlock, which loom
//! reports. Every access to a slot goes through loom's cell, so a claim that overlaps another, or a missing
//! acquire or release, is reported as a data race.
//!
//! Not explored: whom consumers wake among the *threads* that wait for room. Their sleeps are bounded, in a model they end at any
//! time, and the rest is advice; tests on the machine cover it. Tasks, whose sleeps are not bounded, are explored.
//!
//! # Mutations
//! Each of these changes was made by hand, and the test named found it:
//!
//! | change | found by |
//! | --- | --- |
//! | a flag is stored, or loaded, relaxed (`Multi`) | `a_sender_learns_…` |
//! | the limit hint is stored, or loaded, relaxed (`Multi`) | `two_consumers_share_…` |
//! | the cursor is stored, or loaded, relaxed (`Single`) | `a_sender_learns_…` |
//! | the cursor of claims is loaded and changed relaxed (`Multi`) | `the_end_ends_every_receivers_wait` |
//! | claims by load and store instead of compare-and-swap | `two_producers_lose_…` |
//! | a limit one position too far | `a_sender_learns_…` |
//! | the search for free positions starts at an old hint, not at the cursor | `sequencer::multi`: `an_outdated_hint_…` |
//! | a skipped position sets no flag, or is not marked as skipped | `a_place_that_is_given_up_…` |
//! | no heavy fence in `Bell::listen`, no light fence in `Bell::is_heard` | `a_sender_learns_…` |
//! | a lone receiver listens on without a heavy fence, or without listening | `a_task_that_sends_…` |
//! | it stops listening and believes it listens | `batches_are_as_good_…` |
//! | several receivers believe each is alone | `the_end_ends_…` |
//! | no heavy fence where a task begins to wait (`Bell::wait_async`) | `a_task_that_sends_…` |
//! | no look between listening and sleeping | `a_sender_learns_…` |
//! | the count of senders is loaded relaxed | `batches_are_as_good_…` |
//! | no second look when the last sender has left | `batches_are_as_good_…` |
//! | the last sender wakes nobody | `batches_are_as_good_…` |
//! | a producer learns of more than is free (`Slots::portion`) | `one_to_one_…` |
//! | completions wake no tasks (`Room::ring`) | `a_task_that_sends_…` |
//! | a consumer follows the producers only, not those it should | `a_follower_…` |
//! | producers wait for one leaf of two | `all_see_all_…` |
//! | the floor below which leaves are not looked at is relaxed | `a_pool_handles_every_event_once`, under ThreadSanitizer |
//! | between processes: no fence in the wake, or in the sleep; the sleeper does not say that it sleeps; the snapshot comes after the look; a position is stored relaxed | `shared` |

mod channel;
mod graph;
mod shared;

use crate::{Options, WaitStrategy};

fn options(capacity: usize) -> Options {
    Options::new(capacity).wait_strategy(WaitStrategy::Block)
}

fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}
