//! The complete event counts never lose a wake-up; if any one of their parts is removed, they can.

use millstream_verify_tso::eventcount::*;
use millstream_verify_tso::explore::{Outcome, explore};

fn one_word(increment: Increment, careful: Waiter, compared: Compared, times: u8, waiters: usize) -> Outcome {
    let mut programs = vec![incrementer(increment, times)];
    programs.extend(vec![waiter(careful, compared, times); waiters]);
    explore(&programs)
}

fn two_word(fence: LightFence, careful: Waiter, times: u8, waiters: usize) -> Outcome {
    let mut programs = vec![two_word_incrementer(fence, times)];
    programs.extend(vec![two_word_waiter(careful, times); waiters]);
    explore(&programs)
}

#[track_caller]
fn holds(outcome: Outcome) {
    match outcome {
        Outcome::EveryThreadEnds { states } => println!("{states} states"),
        Outcome::LostWakeUp(trace) => panic!("a wake-up is lost:\n{trace}"),
    }
}

#[track_caller]
fn loses(outcome: Outcome) {
    match outcome {
        Outcome::EveryThreadEnds { states } => panic!("a lost wake-up was expected, but {states} states have none"),
        Outcome::LostWakeUp(trace) => println!("{trace}"),
    }
}

const NO_FENCE: Waiter = Waiter { fence: false, ..Waiter::CAREFUL };
const NO_RECHECK: Waiter = Waiter { recheck: false, ..Waiter::CAREFUL };

const BOTH: [Compared; 2] = [Compared::All, Compared::LowHalf];

#[test]
fn with_fence_and_recheck_no_wake_up_is_lost() {
    for compared in BOTH {
        for times in 1..=4 {
            holds(one_word(Increment::Proven, Waiter::CAREFUL, compared, times, 1));
        }
        for times in 1..=2 {
            holds(one_word(Increment::Proven, Waiter::CAREFUL, compared, times, 2));
        }
    }
}

/// This is also the timed rule on a core without interrupts.
#[test]
fn without_the_fence_the_flag_is_overwritten() {
    for compared in BOTH {
        loses(one_word(Increment::Proven, NO_FENCE, compared, 1, 1));
    }
}

#[test]
fn without_the_recheck_the_fence_is_useless() {
    for compared in BOTH {
        loses(one_word(Increment::Proven, NO_RECHECK, compared, 1, 1));
    }
}

#[test]
fn a_fence_does_not_help_if_an_interrupt_can_cut_the_addition_in_two() {
    for compared in BOTH {
        loses(one_word(Increment::CutInTwo, Waiter::CAREFUL, compared, 1, 1));
    }
}

#[test]
fn a_fence_does_not_help_if_the_incrementer_checks_only_before_the_addition() {
    for compared in BOTH {
        loses(one_word(Increment::CheckBefore, Waiter::CAREFUL, compared, 1, 1));
    }
}

/// A waiter whose fence has completed would sleep on the flag of another waiter whose fence has not.
#[test]
fn a_flag_cleared_without_a_change_of_the_value_misleads_the_first_of_two_waiters() {
    holds(one_word(Increment::ClearAtOnce, Waiter::CAREFUL, Compared::All, 3, 1));
    loses(one_word(Increment::ClearAtOnce, Waiter::CAREFUL, Compared::All, 2, 2));
}

#[test]
fn a_flag_outside_the_compared_word_is_cleared_only_with_a_change_of_the_value() {
    loses(one_word(Increment::ClearAtOnce, Waiter::CAREFUL, Compared::LowHalf, 2, 1));
}

#[test]
fn two_word_with_a_fence_on_either_side_no_wake_up_is_lost() {
    for times in 1..=3 {
        holds(two_word(LightFence::Free, Waiter::CAREFUL, times, 1));
        holds(two_word(LightFence::Full, NO_FENCE, times, 1));
    }
    holds(two_word(LightFence::Free, Waiter::CAREFUL, 2, 2));
    holds(two_word(LightFence::Full, NO_FENCE, 2, 2));
}

#[test]
fn two_word_without_any_fence_a_wake_up_is_lost() {
    loses(two_word(LightFence::Free, NO_FENCE, 1, 1));
}

#[test]
fn two_word_without_the_recheck_a_wake_up_is_lost() {
    loses(two_word(LightFence::Free, NO_RECHECK, 1, 1));
}
