//! Sections whose threads are interrupted all the time: by signals, by moves to other processors, by the scheduler, and
//! by restarts from another thread. No value is lost or duplicated, and every operation finishes. `MILLSTREAM_STRESS=n`
//! makes the storms n times longer.

use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::thread;
use std::time::{Duration, Instant};

use super::Memory;
use crate::percpu::section::{self, Here, Numbers, Outcome};
use crate::percpu::{Sections, Words, processors, restart};
use millstream_verify_random::{Random, stress};

const WORKERS: usize = 4;

/// The layout of a page, by the index of each item's first word.
mod word {
    pub(super) const SUM: usize = 0;
    pub(super) const SWAPPED: usize = 2;
    pub(super) const RAISED: usize = 4;
    pub(super) const LIST: usize = 8;
}

/// The number of nodes in circulation.
const NODES: usize = 30;
/// More failures in a row are not a coincidence: a section did not do what it reported.
const MAX_FAILURES: u64 = 1 << 20;

/// A node of a list, and whether a worker has taken it.
#[derive(Default)]
#[repr(C)]
struct Node {
    next: AtomicU64,
    taken: AtomicBool,
}

/// The results of all the workers' operations.
#[derive(Default)]
struct Done {
    added: AtomicU64,
    swapped: AtomicU64,
    /// The last number drawn by a worker. The numbers ascend, and each is drawn once.
    largest: AtomicU64,
    /// The largest drawn number to which a word was raised.
    raised: AtomicU64,
    aborted: AtomicU64,
    finished: AtomicU64,
}

/// Ids of the worker threads, for the code that disturbs them.
#[derive(Default)]
struct Workers([AtomicI32; WORKERS]);

/// Counts the failures of one operation.
#[derive(Default)]
struct Failures(u64);

impl Failures {
    fn count(&mut self, operation: &str) {
        self.0 += 1;
        assert!(self.0 < MAX_FAILURES, "{operation} has failed {MAX_FAILURES} times in a row");
    }
}

/// A worker's state: it runs every operation until the storm is over.
struct Work<'a> {
    memory: &'a Memory,
    nodes: &'a [Node],
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
    fn round(&self, random: &mut Random, mine: &mut Vec<usize>) -> bool {
        let Some(here) = Here::current(self.numbers) else { return false };
        let slots = |word| self.memory.slots(word);
        // SAFETY: `word` keeps the items apart, and nodes live until all threads are done.
        unsafe {
            if self.outcome(section::add(here, slots(word::SUM), 3)) == Outcome::Done {
                self.done.added.fetch_add(3, Relaxed);
            }
            let (mut outcome, mut found) = section::compare_and_store(here, slots(word::SWAPPED), 0, 1);
            let mut failures = Failures::default();
            while outcome == Outcome::Different {
                failures.count("a comparison");
                (outcome, found) = section::compare_and_store(here, slots(word::SWAPPED), found, found + 1);
            }
            if self.outcome(outcome) == Outcome::Done {
                self.done.swapped.fetch_add(1, Relaxed);
            }
            let largest = self.done.largest.fetch_add(1, Relaxed) + 1;
            if self.outcome(section::raise(here, slots(word::RAISED), largest)) == Outcome::Done {
                self.done.raised.fetch_max(largest, Relaxed);
            }
            self.move_node(here, random, mine);
        }
        true
    }

    /// Moves a node between the list and this worker.
    ///
    /// # Safety
    /// The list holds only nodes of this test.
    unsafe fn move_node(&self, here: Here, random: &mut Random, mine: &mut Vec<usize>) {
        let slots = self.memory.slots(word::LIST);
        if random.below(2) == 0 {
            // SAFETY: the caller promises that the list's nodes are readable.
            let (outcome, node) = unsafe { section::list_pop(here, slots) };
            if self.outcome(outcome) == Outcome::Done {
                let index = (node as usize - self.nodes.as_ptr() as usize) / size_of::<Node>();
                assert!(!self.nodes[index].taken.swap(true, SeqCst), "node {index} is there twice");
                mine.push(index);
            }
        } else if let Some(index) = mine.pop() {
            let node = &self.nodes[index];
            assert!(node.taken.swap(false, SeqCst));
            let mut failures = Failures::default();
            // SAFETY: this worker owns the node, which outlives the list; in the list, only sections write to it.
            while self.outcome(unsafe { section::list_push(here, slots, node.next.as_ptr()) }) != Outcome::Done {
                failures.count("a push onto a list");
            }
        }
    }
}

/// Runs the workers while `disturb` is called repeatedly; returns the number of aborted and of finished attempts.
fn storm(numbers: Numbers, mut disturb: impl FnMut(&Workers, &mut Random)) -> [u64; 2] {
    let seed = millstream_verify_random::seed();
    let (memory, done, over, workers) = (Memory::new(), Done::default(), AtomicBool::new(false), Workers::default());
    let nodes: Vec<Node> = (0..NODES).map(|_| Node { taken: AtomicBool::new(true), ..Node::default() }).collect();
    let words = Words::new(1);
    let work = Work { memory: &memory, nodes: &nodes, done: &done, numbers };
    let (rounds, held): (u64, usize) = thread::scope(|scope| {
        let (work, over, workers, words) = (&work, &over, &workers, &words);
        let running: Vec<_> = (0..WORKERS)
            .map(|worker| {
                scope.spawn(move || {
                    // SAFETY: `gettid` has no preconditions and touches no memory.
                    workers.0[worker].store(unsafe { libc::gettid() }, SeqCst);
                    let mut random = Random::new(seed + worker as u64);
                    let mut mine: Vec<usize> = (worker..NODES).step_by(WORKERS).collect();
                    let mut rounds = 0;
                    while !over.load(Relaxed) {
                        words.word(0).add(1);
                        rounds += 1;
                        work.round(&mut random, &mut mine);
                    }
                    (rounds, mine.len())
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
    assert_eq!(memory.sum(word::SUM), done.added.load(Relaxed));
    assert_eq!(memory.sum(word::SWAPPED), done.swapped.load(Relaxed));
    let raised = memory.0.iter().map(|page| page.0[word::RAISED]).max();
    assert_eq!(raised, Some(done.raised.load(Relaxed)), "a word was not raised, or an aborted section raised it");
    let listed: usize = memory.0.iter().map(|page| length(page.0[word::LIST])).sum();
    assert_eq!(listed + held, NODES, "a node was lost or duplicated");
    [done.aborted.into_inner(), done.finished.into_inner()]
}

/// The number of nodes in a list that no thread uses any longer.
fn length(mut node: u64) -> usize {
    let mut length = 0;
    while node != 0 {
        assert!(length < NODES, "a list contains a cycle");
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

/// The maximum number of storms to try until one interrupts a section.
const MAX_STORMS: usize = 40;

/// Asserts that a storm interrupted sections; otherwise, the test proves nothing.
fn assert_aborted(mut storm: impl FnMut() -> [u64; 2]) {
    // On a busy machine, the thread that interrupts may not run at all during a storm.
    for _ in 0..MAX_STORMS {
        let [aborted, finished] = storm();
        println!("{aborted} attempts aborted, {finished} finished");
        if !has_sections() || aborted > 0 && finished > 0 {
            return;
        }
    }
    panic!("{MAX_STORMS} storms have interrupted no section");
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
    assert_aborted(|| {
        storm(Numbers::Private, |workers, random| {
            let worker = workers.0[random.below(WORKERS as u64) as usize].load(SeqCst);
            // SAFETY: the thread is a worker of this test, and the signal has a handler.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), worker, libc::SIGUSR1) };
        })
    });
    // Pending signals merge, so only the handler knows how many arrived. The pause lets the last of them arrive.
    thread::sleep(Duration::from_millis(10));
    let handled = IN_HANDLERS.load(Relaxed);
    assert!(handled > 0);
    assert_eq!(HANDLERS_WORDS.get().unwrap().word(0).copies().sum::<u64>(), handled);
}

#[test]
fn moves_to_other_processors_abort_sections_and_nothing_else() {
    assert_aborted(|| {
        storm(Numbers::Processor, |workers, random| {
            let worker = workers.0[random.below(WORKERS as u64) as usize].load(SeqCst);
            let processor = random.below(u64::from(processors())) as usize;
            // SAFETY: the mask is valid and the thread is a worker of this test. The kernel refuses a processor that is off
            // or not allowed.
            unsafe {
                let mut one: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(processor, &mut one);
                libc::sched_setaffinity(worker, size_of::<libc::cpu_set_t>(), &one);
            }
        })
    });
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
    assert_aborted(|| {
        storm(Numbers::Private, |_, random| {
            let which = if random.below(2) == 0 { Sections::All } else { Sections::On(random.below(2) as u32) };
            let _a_processor_that_is_off_is_refused = restart(which);
        })
    });
}
