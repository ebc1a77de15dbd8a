//! Runs each section on one thread that stays on its processor.

use std::ptr::NonNull;
use std::thread;

use super::Memory;
use crate::percpu::section::{self, Here, Numbers, Outcome, Slots};
use crate::percpu::{Area, Source, processors};

/// Repeats an attempt until it is not aborted.
fn insist<T>(mut attempt: impl FnMut() -> (Outcome, T)) -> (Outcome, T) {
    loop {
        let (outcome, value) = attempt();
        if outcome != Outcome::Aborted {
            return (outcome, value);
        }
    }
}

/// Pins this thread to its processor, so that it finds again what it stored there.
fn stay() {
    // SAFETY: the calls only read and write `one`, and zeros are a valid mask.
    unsafe {
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(libc::sched_getcpu() as usize, &mut one);
        assert_eq!(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &one), 0);
    }
}

/// Runs `test` in a thread that has an area and is pinned to its processor; without areas there is nothing to check.
fn with_an_area(test: impl FnOnce(Here) + Send) {
    thread::scope(|scope| {
        scope.spawn(|| {
            stay();
            match Here::current(Numbers::Processor) {
                Some(here) => test(here),
                None => assert_eq!(Area::source(), Source::None),
            }
        });
    });
}

#[test]
fn the_area_says_where_the_thread_runs() {
    with_an_area(|_| {
        let area = Area::current().unwrap();
        // SAFETY: `sched_getcpu` has no preconditions.
        assert_eq!(area.cpu() as i32, unsafe { libc::sched_getcpu() });
        assert!(area.cpu() < processors());
    });
}

#[test]
fn adding_and_raising() {
    with_an_area(|here| {
        let memory = Memory::new();
        let slots = memory.slots(0);
        // SAFETY: the memory has the words in every slot.
        unsafe {
            insist(|| (section::add(here, slots, 5), ()));
            insist(|| (section::add(here, slots, u64::MAX), ()));
            assert_eq!(memory.sum(0), 4);
            insist(|| (section::raise(here, slots, 3), ()));
            assert_eq!(memory.sum(0), 4);
            insist(|| (section::raise(here, slots, u64::MAX), ()));
        }
        assert_eq!(memory.sum(0), u64::MAX);
    });
}

#[test]
fn a_number_beyond_the_slots_aborts_and_changes_nothing() {
    with_an_area(|here| {
        let memory = Memory::new();
        // SAFETY: no slot is touched, because there are none.
        unsafe {
            let none = Slots::new(NonNull::from(&memory.0[0]).cast(), 0);
            assert_eq!(section::add(here, none, 1), Outcome::Aborted);
            assert_eq!(section::raise(here, none, 1), Outcome::Aborted);
            assert_eq!(section::list_pop(here, none).0, Outcome::Aborted);
            assert_eq!(section::compare_and_store(here, none, 0, 1).0, Outcome::Aborted);
        }
        assert_eq!(memory.sum(0), 0);
    });
}

#[test]
fn comparing_and_storing() {
    with_an_area(|here| {
        let memory = Memory::new();
        let slots = memory.slots(0);
        // SAFETY: the memory has the words in every slot.
        unsafe {
            assert_eq!(insist(|| section::compare_and_store(here, slots, 0, 7)), (Outcome::Done, 0));
            assert_eq!(insist(|| section::compare_and_store(here, slots, 0, 8)), (Outcome::Different, 7));
            assert_eq!(insist(|| section::compare_and_store(here, slots, 7, 8)), (Outcome::Done, 7));
        }
        assert_eq!(memory.sum(0), 8);
    });
}

#[test]
fn a_list_gives_back_the_last_node_first() {
    with_an_area(|here| {
        let memory = Memory::new();
        let slots = memory.slots(0);
        let mut nodes = [[0_u64; 2]; 5];
        let nodes: Vec<*mut u64> = nodes.iter_mut().map(|node| node.as_mut_ptr()).collect();
        // SAFETY: the memory has the words in every slot, and the nodes outlive the list.
        unsafe {
            assert_eq!(insist(|| section::list_pop(here, slots)).0, Outcome::Empty);
            for &node in &nodes {
                assert_eq!(insist(|| (section::list_push(here, slots, node), ())).0, Outcome::Done);
            }
            for &node in nodes.iter().rev() {
                assert_eq!(insist(|| section::list_pop(here, slots)), (Outcome::Done, node));
            }
            assert_eq!(insist(|| section::list_pop(here, slots)).0, Outcome::Empty);
        }
    });
}

#[test]
fn frozen_slots_keep_sections_out() {
    with_an_area(|here| {
        let mut memory = Memory::new();
        memory.0.iter_mut().for_each(|slot| slot.0[1] = 1);
        let slots = memory.slots(0);
        let mut node = [0_u64; 2];
        // SAFETY: the memory has the words in every slot, and the node outlives the call.
        unsafe {
            assert_eq!(insist(|| section::list_pop(here, slots)).0, Outcome::Frozen);
            assert_eq!(insist(|| (section::list_push(here, slots, node.as_mut_ptr()), ())).0, Outcome::Frozen);
        }
        assert_eq!(memory.sum(0), 0);
    });
}

#[test]
fn a_store_is_made_only_while_its_guard_has_the_expected_value() {
    with_an_area(|_| {
        let area = Area::current().unwrap();
        let (guard, mut target) = (7_u64, 0_u64);
        // SAFETY: both words are live, and no other thread can access them.
        let mut store_if =
            |expected| insist(|| (unsafe { section::store_if(area, &guard, expected, &mut target, 5) }, ()));
        assert_eq!(store_if(8).0, Outcome::Different);
        assert_eq!(store_if(7).0, Outcome::Done);
        assert_eq!(target, 5);
    });
}
