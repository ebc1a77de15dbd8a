//! Sections whose threads are interrupted all the time: by signals, by moves to other processors, by the scheduler, and
//! step by step under a debugger. No value is lost or duplicated, and every operation finishes. `MILLSTREAM_STRESS=n`
//! makes the storms n times longer.
#![cfg(all(feature = "std", not(loom)))]

#[path = "support/length.rs"]
mod length;
#[path = "support/random.rs"]
mod random;
#[path = "support/sources.rs"]
mod sources;

use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::thread;
use std::time::{Duration, Instant};

use length::stress;
use millstream_sync::percpu::raw::{self, Here, Numbers, Outcome, STRIDE, Slots};
use millstream_sync::percpu::{Sections, Words, processors, restart};
use random::Random;

const WORKERS: usize = 4;

#[derive(Clone)]
#[repr(align(4096))]
struct Page([u64; STRIDE / 8]);

/// Slots for lists, stacks and words, at different offsets of the same pages.
struct Memory(Vec<Page>);

// SAFETY: only sections change the memory until all threads are done.
unsafe impl Sync for Memory {}

/// The layout of a page, by the index of each item's first word.
mod place {
    pub(super) const SUM: usize = 0;
    pub(super) const SWAPPED: usize = 2;
    pub(super) const PAIR: usize = 4;
    pub(super) const LIST: usize = 8;
    pub(super) const STACK: usize = 16;
}

/// The capacity of a stack in values.
const ROOM: u64 = 20;
/// The number of nodes, and of values, in circulation.
const ITEMS: usize = 30;
/// This many fruitless attempts in a row are no coincidence: a section did not do what it reported.
const PATIENCE: u64 = 1 << 20;

impl Memory {
    fn new() -> Self {
        Memory(vec![Page([0; STRIDE / 8]); processors() as usize])
    }

    fn slots(&self, place: usize) -> Slots {
        let first = NonNull::from(&self.0[0].0[place]);
        // SAFETY: the vector has a page for each slot.
        unsafe { Slots::new(first, self.0.len() as u32) }
    }

    fn sum(&self, place: usize) -> u64 {
        self.0.iter().map(|page| page.0[place]).sum()
    }
}

/// A node of a list, and whether a worker has taken it.
#[derive(Default)]
#[repr(C)]
struct Node {
    next: AtomicU64,
    taken: AtomicBool,
}

/// Totals of the workers' operations.
#[derive(Default)]
struct Done {
    added: AtomicU64,
    swapped: AtomicU64,
    aborted: AtomicU64,
    finished: AtomicU64,
}

/// Ids of the worker threads, for the disturbance.
#[derive(Default)]
struct Workers([AtomicI32; WORKERS]);

/// The second word that belongs to a pair's first word `value`.
fn partner(value: u64) -> u64 {
    value.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Counts fruitless attempts.
#[derive(Default)]
struct Patience(u64);

impl Patience {
    fn attempt(&mut self, what: &str) {
        self.0 += 1;
        assert!(self.0 < PATIENCE, "{what} has failed {PATIENCE} times in a row");
    }
}

/// A worker's state: it runs every operation until the storm is over.
struct Work<'a> {
    memory: &'a Memory,
    nodes: &'a [Node],
    values: &'a [AtomicBool],
    done: &'a Done,
    numbers: Numbers,
}

impl Work<'_> {
    fn outcome(&self, outcome: Outcome) -> Outcome {
        let count = if outcome == Outcome::Aborted { &self.done.aborted } else { &self.done.finished };
        count.fetch_add(1, Relaxed);
        outcome
    }

    /// Runs one of each operation. Returns `false` without an area.
    fn round(&self, random: &mut Random, mine: &mut (Vec<usize>, Vec<u64>)) -> bool {
        let Some(here) = Here::current(self.numbers) else { return false };
        let slots = |place| self.memory.slots(place);
        // SAFETY: `place` keeps the items apart, and nodes live until all threads are done.
        unsafe {
            if self.outcome(raw::add(here, slots(place::SUM), 3)) == Outcome::Done {
                self.done.added.fetch_add(3, Relaxed);
            }
            let (mut outcome, mut found) = raw::compare_and_store(here, slots(place::SWAPPED), 0, 1);
            let mut patience = Patience::default();
            while outcome == Outcome::Different {
                patience.attempt("a comparison");
                (outcome, found) = raw::compare_and_store(here, slots(place::SWAPPED), found, found + 1);
            }
            if self.outcome(outcome) == Outcome::Done {
                self.done.swapped.fetch_add(1, Relaxed);
            }
            let (mut outcome, mut found) = raw::compare_and_store_two(here, slots(place::PAIR), 0, [1, partner(1)]);
            let mut patience = Patience::default();
            while outcome == Outcome::Different {
                patience.attempt("a comparison of a pair's first word");
                let next = [found + 1, partner(found + 1)];
                (outcome, found) = raw::compare_and_store_two(here, slots(place::PAIR), found, next);
            }
            self.outcome(outcome);
            self.move_node(here, random, &mut mine.0);
            self.move_value(here, random, &mut mine.1);
        }
        true
    }

    /// Moves a node between the list and this worker.
    ///
    /// # Safety
    /// The list holds only nodes of this test.
    unsafe fn move_node(&self, here: Here, random: &mut Random, mine: &mut Vec<usize>) {
        let slots = self.memory.slots(place::LIST);
        if random.below(2) == 0 {
            // SAFETY: the caller promises that the list's nodes are readable.
            let (outcome, node) = unsafe { raw::list_pop(here, slots) };
            if self.outcome(outcome) == Outcome::Done {
                let index = (node as usize - self.nodes.as_ptr() as usize) / size_of::<Node>();
                assert!(!self.nodes[index].taken.swap(true, SeqCst), "node {index} is there twice");
                mine.push(index);
            }
        } else if let Some(index) = mine.pop() {
            let node = &self.nodes[index];
            assert!(node.taken.swap(false, SeqCst));
            let mut patience = Patience::default();
            // SAFETY: this worker owns the node, which outlives the list; in the list, only sections write to it.
            while self.outcome(unsafe { raw::list_push(here, slots, node.next.as_ptr()) }) != Outcome::Done {
                patience.attempt("a push onto a list");
            }
        }
    }

    /// Moves a value between the stack and this worker.
    ///
    /// # Safety
    /// The stack has room for [`ROOM`] values.
    unsafe fn move_value(&self, here: Here, random: &mut Random, mine: &mut Vec<u64>) {
        let slots = self.memory.slots(place::STACK);
        if random.below(2) == 0 {
            // SAFETY: the caller promises that every slot has room for the stack.
            let (outcome, value) = unsafe { raw::pop(here, slots) };
            if self.outcome(outcome) == Outcome::Done {
                assert!(!self.values[value as usize].swap(true, SeqCst), "value {value} is there twice");
                mine.push(value);
            }
        } else if let Some(value) = mine.pop() {
            assert!(self.values[value as usize].swap(false, SeqCst));
            let mut patience = Patience::default();
            loop {
                // SAFETY: the caller promises that every slot has room for the stack.
                match self.outcome(unsafe { raw::push(here, slots, ROOM, value) }) {
                    Outcome::Done => break,
                    Outcome::Full => {
                        assert!(!self.values[value as usize].swap(true, SeqCst));
                        break mine.push(value);
                    }
                    _ => patience.attempt("a push onto a stack"),
                }
            }
        }
    }
}

/// Lets the workers work while `disturb` is called again and again; returns the number of aborted and of finished
/// attempts.
fn storm(numbers: Numbers, mut disturb: impl FnMut(&Workers, &mut Random)) -> [u64; 2] {
    let seed = Random::seed();
    let (memory, done, over, workers) = (Memory::new(), Done::default(), AtomicBool::new(false), Workers::default());
    let nodes: Vec<Node> = (0..ITEMS).map(|_| Node { taken: AtomicBool::new(true), ..Node::default() }).collect();
    let values: Vec<AtomicBool> = (0..ITEMS).map(|_| AtomicBool::new(true)).collect();
    let words = Words::new(1);
    let work = Work { memory: &memory, nodes: &nodes, values: &values, done: &done, numbers };
    let (rounds, held): (u64, usize) = thread::scope(|scope| {
        let (work, over, workers, words) = (&work, &over, &workers, &words);
        let running: Vec<_> = (0..WORKERS)
            .map(|worker| {
                scope.spawn(move || {
                    // SAFETY: `gettid` has no preconditions.
                    workers.0[worker].store(unsafe { libc::gettid() }, SeqCst);
                    let mut random = Random::new(seed + worker as u64);
                    let mut mine: (Vec<usize>, Vec<u64>) =
                        (worker..ITEMS).step_by(WORKERS).map(|item| (item, item as u64)).unzip();
                    let mut rounds = 0;
                    while !over.load(Relaxed) {
                        words.word(0).add(1);
                        rounds += 1;
                        work.round(&mut random, &mut mine);
                    }
                    (rounds, mine.0.len() + mine.1.len())
                })
            })
            .collect();
        while workers.0.iter().any(|worker| worker.load(SeqCst) == 0) {
            thread::yield_now();
        }
        let until = Instant::now() + Duration::from_millis(700) * stress() as u32;
        let mut random = Random::new(!seed);
        while Instant::now() < until {
            disturb(workers, &mut random);
        }
        over.store(true, Relaxed);
        running.into_iter().map(|worker| worker.join().unwrap()).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    });
    assert_eq!(words.word(0).copies().sum::<u64>(), rounds);
    assert_eq!(memory.sum(place::SUM), done.added.load(Relaxed));
    assert_eq!(memory.sum(place::SWAPPED), done.swapped.load(Relaxed));
    assert!(memory.0.iter().all(|page| page.0[place::PAIR + 1] == partner(page.0[place::PAIR])));
    let listed: usize = memory.0.iter().map(|page| length(page.0[place::LIST])).sum();
    assert_eq!(
        listed + memory.sum(place::STACK) as usize + held,
        2 * ITEMS,
        "a node or a value was lost or duplicated"
    );
    [done.aborted.into_inner(), done.finished.into_inner()]
}

/// The number of nodes of a list that no thread uses any more.
fn length(mut node: u64) -> usize {
    let mut length = 0;
    while node != 0 {
        assert!(length < ITEMS, "a list contains a cycle");
        // SAFETY: the storm is over, and the nodes are alive.
        node = unsafe { *(node as *const u64) };
        length += 1;
    }
    length
}

/// Whether sections run in this process.
fn has_sections() -> bool {
    Here::current(Numbers::Processor).is_some()
}

/// Asserts that a storm interrupted sections, since otherwise it shows nothing.
fn assert_aborted([aborted, finished]: [u64; 2]) {
    println!("{aborted} attempts aborted, {finished} finished");
    assert!(!has_sections() || aborted > 0 && finished > 0, "{aborted} attempts aborted, {finished} finished");
}

/// The number of additions made by the signal handler.
static IN_HANDLERS: AtomicU64 = AtomicU64::new(0);
static HANDLERS_WORDS: std::sync::OnceLock<Words> = std::sync::OnceLock::new();

extern "C" fn handler(_signal: i32) {
    IN_HANDLERS.fetch_add(1, Relaxed);
    if let Some(words) = HANDLERS_WORDS.get() {
        words.word(0).add(1);
    }
}

#[test]
fn signals_abort_sections_and_nothing_else() {
    HANDLERS_WORDS.get_or_init(|| Words::new(1));
    // SAFETY: the handler only adds to atomics and words.
    assert_ne!(unsafe { libc::signal(libc::SIGUSR1, handler as *const () as usize) }, libc::SIG_ERR);
    assert_aborted(storm(Numbers::Private, |workers, random| {
        let worker = workers.0[random.below(WORKERS as u64) as usize].load(SeqCst);
        // SAFETY: the thread is a worker of this test.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), worker, libc::SIGUSR1) };
    }));
    // Pending signals merge, so only the handler knows how many arrived. The pause lets the last ones in.
    thread::sleep(Duration::from_millis(10));
    let handled = IN_HANDLERS.load(Relaxed);
    assert!(handled > 0);
    assert_eq!(HANDLERS_WORDS.get().unwrap().word(0).copies().sum::<u64>(), handled);
}

#[test]
fn moves_to_other_processors_abort_sections_and_nothing_else() {
    assert_aborted(storm(Numbers::Processor, |workers, random| {
        let worker = workers.0[random.below(WORKERS as u64) as usize].load(SeqCst);
        let processor = random.below(u64::from(processors())) as usize;
        // SAFETY: the mask is valid and the thread is a worker of this test. The kernel refuses a processor that is off
        // or not
        // allowed.
        unsafe {
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(processor, &mut one);
            libc::sched_setaffinity(worker, size_of::<libc::cpu_set_t>(), &one);
        }
    }));
}

#[test]
fn a_crowd_that_yields_loses_nothing() {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 * processors() {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    thread::yield_now();
                }
            });
        }
        storm(Numbers::Private, |_, _| thread::yield_now());
        over.store(true, Relaxed);
    });
}

#[test]
fn sections_that_are_restarted_from_elsewhere_lose_nothing() {
    if restart(Sections::All).is_err() {
        return println!("skipped: the kernel does not restart sections");
    }
    assert_aborted(storm(Numbers::Private, |_, random| {
        let which = if random.below(2) == 0 { Sections::All } else { Sections::On(random.below(2) as u32) };
        let _a_processor_that_is_off_is_refused = restart(which);
    }));
}

#[test]
fn again_with_other_areas() {
    sources::again_with_other_areas("again_with_other_areas");
}
