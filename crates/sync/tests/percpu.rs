//! Tests of sections and per-CPU words, by one thread and by many undisturbed threads, with every kind of area.
#![cfg(all(feature = "std", not(loom)))]

#[path = "support/sources.rs"]
mod sources;

use std::ptr::NonNull;
use std::thread;

use millstream_sync::percpu::raw::{self, Here, Numbers, Outcome, STRIDE, Slots};
use millstream_sync::percpu::{Area, Sections, Source, Words, processors, restart};

/// A slot, as far from the next one as slots must be.
#[derive(Clone)]
#[repr(align(4096))]
struct Page([u64; STRIDE / 8]);

/// Slots for all processors, with as many words as fit.
struct Memory(Vec<Page>);

impl Memory {
    fn new() -> Self {
        Memory(vec![Page([0; STRIDE / 8]); processors() as usize])
    }

    fn slots(&mut self) -> Slots {
        let first = NonNull::new(self.0.as_mut_ptr().cast()).unwrap();
        // SAFETY: the vector has a page for each slot, and each test uses one kind of number.
        unsafe { Slots::new(first, self.0.len() as u32) }
    }

    /// The sum of the words at this index over all slots.
    fn sum(&self, word: usize) -> u64 {
        self.0.iter().map(|slot| slot.0[word]).sum()
    }
}

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
    // SAFETY: the calls only read and write `one`, which is a valid mask.
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
                None => assert_eq!(Area::source(), Source::Nobody),
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
        if let Some(id) = area.concurrency_id() {
            assert!(id < processors());
        }
    });
}

#[test]
fn the_environment_selects_the_source() {
    let wish = std::env::var("MILLSTREAM_RSEQ").unwrap_or_default();
    let told_not_to = std::env::var("GLIBC_TUNABLES").is_ok_and(|tunables| tunables.contains("rseq=0"));
    let sources: Vec<Source> =
        (0..3).flat_map(|_| thread::spawn(|| [Area::source(), Area::source()]).join().unwrap()).collect();
    let allowed: &[Source] = match wish.as_str() {
        "off" => &[Source::Nobody],
        // The kernel may lack the call, or glibc may have registered the thread first.
        "own" if told_not_to => &[Source::Own],
        "own" => &[Source::Own, Source::Nobody],
        _ => &[Source::Libc, Source::Own, Source::Nobody],
    };
    assert!(sources.iter().all(|source| allowed.contains(source)), "{sources:?} by MILLSTREAM_RSEQ={wish}");
}

#[test]
fn adding_and_raising() {
    with_an_area(|here| {
        let mut memory = Memory::new();
        let slots = memory.slots();
        // SAFETY: the memory has the words in every slot.
        unsafe {
            insist(|| (raw::add(here, slots, 5), ()));
            insist(|| (raw::add(here, slots, u64::MAX), ()));
            assert_eq!(memory.sum(0), 4);
            let slots = memory.slots();
            insist(|| (raw::raise(here, slots, 3), ()));
            assert_eq!(memory.sum(0), 4);
            insist(|| (raw::raise(here, slots, u64::MAX), ()));
        }
        assert_eq!(memory.sum(0), u64::MAX);
    });
}

#[test]
fn a_number_beyond_the_slots_aborts_and_changes_nothing() {
    with_an_area(|here| {
        let mut memory = Memory::new();
        // SAFETY: no slot is touched, since there are none.
        unsafe {
            let none = Slots::new(NonNull::from(&mut memory.0[0]).cast(), 0);
            assert_eq!(raw::add(here, none, 1), Outcome::Aborted);
            assert_eq!(raw::pop(here, none).0, Outcome::Aborted);
            assert_eq!(raw::compare_and_store(here, none, 0, 1).0, Outcome::Aborted);
        }
        assert_eq!(memory.sum(0), 0);
    });
}

#[test]
fn comparing_and_storing_one_word_or_two() {
    with_an_area(|here| {
        let mut memory = Memory::new();
        let slots = memory.slots();
        // SAFETY: the memory has the words in every slot.
        unsafe {
            assert_eq!(insist(|| raw::compare_and_store(here, slots, 0, 7)), (Outcome::Done, 0));
            assert_eq!(insist(|| raw::compare_and_store(here, slots, 0, 8)), (Outcome::Different, 7));
            assert_eq!(insist(|| raw::compare_and_store_two(here, slots, 0, [1, 2])), (Outcome::Different, 7));
            assert_eq!((memory.sum(0), memory.sum(1)), (7, 0));
            let slots = memory.slots();
            assert_eq!(insist(|| raw::compare_and_store_two(here, slots, 7, [1, 2])), (Outcome::Done, 7));
        }
        assert_eq!((memory.sum(0), memory.sum(1)), (1, 2));
    });
}

#[test]
fn a_list_gives_back_the_last_node_first() {
    with_an_area(|here| {
        let mut memory = Memory::new();
        let slots = memory.slots();
        let mut nodes = [[0_u64; 2]; 5];
        let nodes: Vec<*mut u64> = nodes.iter_mut().map(|node| node.as_mut_ptr()).collect();
        // SAFETY: the memory has the words in every slot, and the nodes outlive the list.
        unsafe {
            assert_eq!(insist(|| raw::list_pop(here, slots)).0, Outcome::Empty);
            for &node in &nodes {
                assert_eq!(insist(|| (raw::list_push(here, slots, node), ())).0, Outcome::Done);
            }
            for &node in nodes.iter().rev() {
                assert_eq!(insist(|| raw::list_pop(here, slots)), (Outcome::Done, node));
            }
            assert_eq!(insist(|| raw::list_pop(here, slots)).0, Outcome::Empty);
        }
    });
}

#[test]
fn a_stack_is_full_and_empty_at_its_ends() {
    with_an_area(|here| {
        let mut memory = Memory::new();
        let slots = memory.slots();
        let room = STRIDE as u64 / 8 - 2;
        // SAFETY: the memory has room for the stack in every slot.
        unsafe {
            assert_eq!(insist(|| raw::pop(here, slots)).0, Outcome::Empty);
            for value in 0..room {
                assert_eq!(insist(|| (raw::push(here, slots, room, value), ())).0, Outcome::Done);
            }
            assert_eq!(insist(|| (raw::push(here, slots, room, 0), ())).0, Outcome::Full);
            for value in (0..room).rev() {
                assert_eq!(insist(|| raw::pop(here, slots)), (Outcome::Done, value));
            }
            assert_eq!(insist(|| raw::pop(here, slots)).0, Outcome::Empty);
        }
    });
}

#[test]
fn frozen_slots_keep_sections_out() {
    with_an_area(|here| {
        let mut memory = Memory::new();
        memory.0.iter_mut().for_each(|slot| slot.0[1] = 1);
        let slots = memory.slots();
        let mut node = [0_u64; 2];
        // SAFETY: the memory has the words in every slot, and the node outlives the call.
        unsafe {
            assert_eq!(insist(|| raw::list_pop(here, slots)).0, Outcome::Frozen);
            assert_eq!(insist(|| (raw::list_push(here, slots, node.as_mut_ptr()), ())).0, Outcome::Frozen);
            assert_eq!(insist(|| (raw::push(here, slots, 3, 1), ())).0, Outcome::Frozen);
            assert_eq!(insist(|| raw::pop(here, slots)).0, Outcome::Frozen);
        }
        assert_eq!(memory.sum(0), 0);
    });
}

#[test]
fn words_add_raise_and_update() {
    let words = Words::new(3);
    thread::scope(|scope| {
        for thread in 0..4 {
            let words = &words;
            scope.spawn(move || {
                for i in 0..10_000 {
                    words.word(0).add(2);
                    words.word(1).raise(thread * 10_000 + i);
                    words.word(2).update(|old| old + 3);
                }
            });
        }
    });
    assert_eq!(words.word(0).copies().sum::<u64>(), 80_000);
    assert_eq!(words.word(1).copies().max(), Some(39_999));
    assert_eq!(words.word(2).copies().sum::<u64>(), 120_000);
}

#[test]
fn update_returns_the_former_value() {
    thread::spawn(|| {
        stay();
        let words = Words::new(1);
        // Only a change of the concurrency id can interfere, and then the other copy starts at zero.
        let old: Vec<u64> = (0..100).map(|_| words.word(0).update(|old| old + 1)).collect();
        assert_eq!(words.word(0).copies().sum::<u64>(), 100);
        assert!(old.iter().all(|&old| old < 100) && old.windows(2).filter(|two| two[1] == two[0] + 1).count() > 50);
    })
    .join()
    .unwrap();
}

#[test]
fn sections_are_restarted_where_the_kernel_can() {
    // Only a kernel before 5.10 or a sandbox refuses these, and then it refuses both.
    let all = restart(Sections::All).map_err(|error| error.raw_os_error());
    let one = restart(Sections::On(0)).map_err(|error| error.raw_os_error());
    assert_eq!(all, one);
    assert!(all.is_ok() || matches!(all, Err(Some(libc::EINVAL | libc::ENOSYS | libc::EPERM))), "{all:?}");
}

#[test]
fn again_with_other_areas() {
    sources::again_with_other_areas("again_with_other_areas");
}
