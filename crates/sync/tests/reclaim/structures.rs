//! The order and the lifetimes of values in the structures.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use millstream_sync::reclaim::{Epochs, Hazards, Queue, Scheme, Snapshot, Stack};

use crate::{Counted, alive, until_freed};

fn values_left_in_a_structure_are_dropped<S: Scheme>() {
    let alive = alive();
    let counted = || {
        alive.fetch_add(1, Relaxed);
        Counted(Arc::clone(&alive))
    };
    let (stack, queue) = (Stack::<_, S>::with_scheme(), Queue::<_, S>::with_scheme());
    for _ in 0..10 {
        stack.push(counted());
        queue.push(counted());
    }
    for _ in 0..5 {
        assert!(stack.pop().is_some() && queue.pop().is_some());
    }
    assert_eq!(alive.load(Relaxed), 10, "a popped value was dropped twice or not at all");
    drop((stack, queue));
    assert_eq!(alive.load(Relaxed), 0);
}

#[test]
fn values_left_in_structures_are_dropped() {
    values_left_in_a_structure_are_dropped::<Epochs>();
    values_left_in_a_structure_are_dropped::<Hazards>();
}

#[test]
fn a_stack_is_last_in_first_out_and_a_queue_first_in_first_out() {
    let (stack, queue) = (Stack::new(), Queue::new());
    assert!(stack.is_empty() && queue.is_empty());
    for number in 0..1000 {
        stack.push(number);
        queue.push(number);
    }
    assert!(!stack.is_empty() && !queue.is_empty());
    assert!((0..1000).all(|number| stack.pop() == Some(999 - number) && queue.pop() == Some(number)));
    assert!(stack.is_empty() && queue.is_empty() && stack.pop().is_none() && queue.pop().is_none());
}

#[test]
fn a_snapshot_s_values_live_as_long_as_they_are_held() {
    let alive = alive();
    let counted = || {
        alive.fetch_add(1, Relaxed);
        Counted(Arc::clone(&alive))
    };
    let cell = Snapshot::new(counted());
    let first = cell.get();
    cell.set(counted());
    let second = cell.update(|_| counted());
    assert!(Arc::ptr_eq(&second, &cell.get()));
    until_freed(|| alive.load(Relaxed) <= 2);
    assert_eq!(Arc::strong_count(&first), 1, "the cell still holds the first value");
    drop((cell, first, second));
    until_freed(|| alive.load(Relaxed) == 0);
}
