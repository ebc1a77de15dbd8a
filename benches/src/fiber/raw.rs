//! Switches without a scheduler.

use std::hint::black_box;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::alone::per_step;
use super::row::{Row, STACKS};

pub(super) fn run(peer: &str, row: Row, count: u64) -> Option<f64> {
    match (peer, row) {
        ("corosensei", Row::Switch) => Some(corosensei(1, count)),
        ("corosensei", Row::Rotate) => Some(corosensei(STACKS.min(count as usize), count)),
        ("generator", Row::Switch) => Some(generator(count)),
        _ => None,
    }
}

/// Resumes coroutines in turn.
fn corosensei(coroutines: usize, count: u64) -> f64 {
    let forever = |yielder: &Yielder<(), u64>, ()| {
        let mut n = 0;
        loop {
            yielder.suspend(black_box(n));
            n += 1;
        }
    };
    let stack = || DefaultStack::new(64 << 10).expect("the kernel has mappings");
    let mut all: Vec<Coroutine<(), u64, u64, DefaultStack>> =
        (0..coroutines).map(|_| Coroutine::with_stack(stack(), forever)).collect();
    for coroutine in &mut all {
        assert!(matches!(coroutine.resume(()), CoroutineResult::Yield(_)));
    }
    let rounds = count / coroutines as u64;
    let figure = per_step(rounds * coroutines as u64, || {
        for _ in 0..rounds {
            for coroutine in &mut all {
                assert!(matches!(coroutine.resume(()), CoroutineResult::Yield(_)));
            }
        }
    });
    // The coroutines never return. The process ends, so they are not unwound.
    std::mem::forget(all);
    figure
}

fn generator(count: u64) -> f64 {
    let mut numbers = generator::Gn::new_scoped(|mut scope| {
        loop {
            scope.yield_with(black_box(1_u64));
        }
    });
    assert_eq!(numbers.next(), Some(1));
    let figure = per_step(count, || (0..count).for_each(|_| assert_eq!(numbers.next(), Some(1))));
    std::mem::forget(numbers);
    figure
}
