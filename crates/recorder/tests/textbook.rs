//! Textbook structures, each beside a twin that lacks one thing, recorded and checked: a free list with and without the
//! generation in its head, Peterson's lock with and without its fence, a stack's pop with and without its second look.
//!
//! The sound structure holds, and the twin is caught. With `MILLSTREAM_PICTURES=folder` the twin's history is drawn
//! there; `MILLSTREAM_STRESS=n` makes the sound ones run n times longer.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

use millstream_history::timeline::Timeline;
use millstream_history::{History, Kind, Model, Op, Options, Verdict, check};
use millstream_recorder::{Log, Recorder};

fn stress() -> u64 {
    std::env::var("MILLSTREAM_STRESS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// Records the operations of `threads` threads.
fn record(threads: u32, work: impl Fn(u32, &mut Log) + Sync) -> History {
    let recorder = Recorder::new();
    thread::scope(|scope| {
        for number in 0..threads {
            let (work, mut log) = (&work, recorder.log());
            scope.spawn(move || work(number, &mut log));
        }
    });
    recorder.finish()
}

fn assert_holds(history: &History, model: &Model) {
    let verdict = check(history, model, &Options::default()).unwrap();
    assert_eq!(verdict.holds(), Some(true), "{model}: {verdict:?}");
}

/// The maximum number of runs in which a twin may stay undetected.
const MAX_RUNS: u32 = 200;

/// Within this time a twin may stay undetected for more runs: on a busy machine its threads seldom run at once.
const LONG: Duration = Duration::from_secs(120);

/// The first run in which the twin is caught.
fn caught(title: &str, model: &Model, run: impl FnMut(u32) -> History) -> History {
    let quick = Options { explain: false, ..Options::default() };
    let fails = |history: &History| check(history, model, &quick).unwrap().holds() == Some(false);
    let began = Instant::now();
    let history = (0..).take_while(|&number| number < MAX_RUNS || began.elapsed() < LONG).map(run).find(fails);
    history.unwrap_or_else(|| panic!("{title} was not caught in {MAX_RUNS} runs and {LONG:?}"))
}

/// Asserts that the counter-example is small, and draws it if pictures are requested.
fn assert_explained(name: &str, title: &str, model: &Model, history: &History) {
    let verdict = check(history, model, &Options::default()).unwrap();
    let Verdict::Fails(found) = &verdict else { panic!("{verdict:?}") };
    assert!((1..=10).contains(&found.operations.len()), "{title}: {found:?}");
    if let Some(folder) = std::env::var_os("MILLSTREAM_PICTURES").map(PathBuf::from) {
        fs::write(folder.join(format!("{name}.svg")), Timeline::new(title, history, &verdict).svg()).unwrap();
    }
}

/// Preempts the operation now and then: the scheduler's work, done more often.
fn preempted() {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    match TURN.fetch_add(1, Ordering::Relaxed) % 61 {
        0..7 => thread::yield_now(),
        7 => thread::sleep(Duration::from_micros(20)),
        _ => (),
    }
}

/// A free list of numbered objects: the top of a linked stack and, if `GENERATION`, the number of its changes.
struct FreeList<const GENERATION: bool> {
    head: AtomicU64,
    next: Vec<AtomicU32>,
}

const END: u32 = u32::MAX;

impl<const GENERATION: bool> FreeList<GENERATION> {
    fn new(objects: u32) -> Self {
        let next = (1..=objects).map(|next| AtomicU32::new(if next == objects { END } else { next })).collect();
        FreeList { head: AtomicU64::new(0), next }
    }

    /// A head with another top, of the next generation.
    fn with_top(head: u64, top: u32) -> u64 {
        let generation = if GENERATION { (head >> 32) + 1 } else { 0 };
        generation << 32 | u64::from(top)
    }

    /// `between` runs between the load and the swap.
    fn alloc(&self, mut between: impl FnMut()) -> Option<u32> {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let top = head as u32;
            if top == END {
                return None;
            }
            let below = self.next[top as usize].load(Ordering::Relaxed);
            // Here another thread may take `top`, take `below`, and free `top`: the head looks as before, and `below`,
            // which is in use, becomes the top.
            between();
            match self.head.compare_exchange(head, Self::with_top(head, below), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(top),
                Err(found) => head = found,
            }
        }
    }

    fn free(&self, object: u32) {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            self.next[object as usize].store(head as u32, Ordering::Relaxed);
            match self.head.compare_exchange(head, Self::with_top(head, object), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(found) => head = found,
            }
        }
    }
}

fn allocations<const GENERATION: bool>(threads: u32, rounds: u64) -> History {
    const OBJECTS: u32 = 4;
    let list = FreeList::<GENERATION>::new(OBJECTS);
    record(threads, |_, log| {
        let mut mine = Vec::new();
        for round in 0..rounds {
            if mine.len() < 2 && round % 3 != 2 {
                mine.extend(log.record(Op::ALLOC, (), || list.alloc(preempted)));
            } else if let Some(object) = mine.pop() {
                log.record(Op::FREE, object, || list.free(object));
            }
        }
        // A twin's list may have become a cycle, which never runs out, so the number of rounds is limited.
    })
}

#[test]
fn a_free_list_with_generations_gives_no_object_twice() {
    for threads in [2, 4, 8] {
        let history = allocations::<true>(threads, 20_000 * stress());
        assert_holds(&history, &Kind::Allocator.into());
    }
}

#[test]
fn a_free_list_without_generations_is_caught() {
    let title = "a free list whose head has no generation";
    caught(title, &Kind::Allocator.into(), |_| allocations::<false>(4, 2000));
}

/// The same, step by step: while one allocation is stopped between its load and its swap, another process takes that
/// object and the next, and frees the first one.
fn stopped_allocation<const GENERATION: bool>() -> History {
    let list = FreeList::<GENERATION>::new(4);
    let recorder = Recorder::new();
    let (mut stopped, mut other, mut last) = (recorder.log(), recorder.log(), recorder.log());
    // The pause is longer than the clocks of two cores may differ.
    let pause = || thread::sleep(Duration::from_micros(10));
    let mut first_time = true;
    stopped.begin(Op::ALLOC, ());
    let object = list.alloc(|| {
        if !std::mem::take(&mut first_time) {
            return;
        }
        pause();
        let first = other.record(Op::ALLOC, (), || list.alloc(|| ())).unwrap();
        pause();
        other.record(Op::ALLOC, (), || list.alloc(|| ()));
        pause();
        other.record(Op::FREE, first, || list.free(first));
        pause();
    });
    stopped.end(object);
    pause();
    last.record(Op::ALLOC, (), || list.alloc(|| ()));
    drop((stopped, other, last));
    recorder.finish()
}

#[test]
fn a_stopped_allocation_needs_the_generation() {
    assert_holds(&stopped_allocation::<true>(), &Kind::Allocator.into());
    let title = "a free list whose head has no generation";
    let history = caught(title, &Kind::Allocator.into(), |_| stopped_allocation::<false>());
    assert_explained("no-generation", title, &Kind::Allocator.into(), &history);
}

/// Peterson's lock for two threads: each thread says "I want; you first", then waits while the other wants the lock and
/// has the turn.
struct Peterson<const FENCE: bool> {
    wants: [AtomicBool; 2],
    turn: AtomicUsize,
}

impl<const FENCE: bool> Peterson<FENCE> {
    fn new() -> Self {
        Peterson { wants: [AtomicBool::new(false), AtomicBool::new(false)], turn: AtomicUsize::new(0) }
    }

    fn acquire(&self, me: usize) {
        self.wants[me].store(true, Ordering::Relaxed);
        self.turn.store(1 - me, Ordering::Release);
        if FENCE {
            // Both stores are visible before the other thread's are looked at. Without the fence, each core's stores
            // may still be in its store buffer while it looks, and both threads find the lock free.
            fence(Ordering::SeqCst);
        }
        wait(|| !self.wants[1 - me].load(Ordering::Acquire) || self.turn.load(Ordering::Acquire) == me);
        fence(Ordering::Acquire);
    }

    fn release(&self, me: usize) {
        self.wants[me].store(false, Ordering::Release);
    }
}

/// Spins, and sleeps when it takes long: a thread that wakes up gets a processor sooner than one that yields it, so two
/// threads that wait for each other soon run at once.
fn wait(mut until: impl FnMut() -> bool) {
    let mut looks = 0_u32;
    while !until() {
        looks += 1;
        if looks.is_multiple_of(1 << 12) {
            thread::sleep(Duration::from_micros(50));
        }
        std::hint::spin_loop();
    }
}

fn lockings<const FENCE: bool>(rounds: u64) -> History {
    let lock = Peterson::<FENCE>::new();
    let arrived = AtomicU64::new(0);
    record(2, |me, log| {
        for round in 0..rounds {
            // One thread alone, while the other has no processor, shows nothing: they meet now and then.
            if round % 500 == 0 {
                arrived.fetch_add(1, Ordering::Relaxed);
                wait(|| arrived.load(Ordering::Relaxed) >= 2 * (round / 500 + 1));
            }
            log.record(Op::ACQUIRE, (), || lock.acquire(me as usize));
            // This takes long enough that two threads inside at once overlap in the history, however much their clocks
            // differ.
            (0..10 + round % 20).for_each(|_| std::hint::spin_loop());
            log.record(Op::RELEASE, (), || lock.release(me as usize));
        }
    })
}

#[test]
fn petersons_lock_excludes() {
    assert_holds(&lockings::<true>(20_000 * stress()), &Kind::Mutex.into());
}

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "whether the weaker order shows depends on the machine")]
fn petersons_lock_without_its_fence_is_caught() {
    let title = "Peterson's lock without its fence";
    let history = caught(title, &Kind::Mutex.into(), |_| lockings::<false>(20_000));
    assert_explained("no-fence", title, &Kind::Mutex.into(), &history);
}

/// A stack of numbers in an array under a spin lock: `pop` reads how many there are, and takes the last.
struct LookTwice<const AGAIN: bool> {
    len: AtomicUsize,
    values: Vec<AtomicU64>,
    locked: AtomicBool,
}

impl<const AGAIN: bool> LookTwice<AGAIN> {
    fn new() -> Self {
        LookTwice {
            len: AtomicUsize::new(0),
            values: (0..64).map(|_| AtomicU64::new(0)).collect(),
            locked: AtomicBool::new(false),
        }
    }

    fn locked<T>(&self, work: impl FnOnce() -> T) -> T {
        while self.locked.swap(true, Ordering::Acquire) {
            thread::yield_now();
        }
        let done = work();
        self.locked.store(false, Ordering::Release);
        done
    }

    fn push(&self, value: u64) -> bool {
        self.locked(|| {
            let len = self.len.load(Ordering::Relaxed);
            if len == self.values.len() {
                return false;
            }
            self.values[len].store(value, Ordering::Relaxed);
            self.len.store(len + 1, Ordering::Relaxed);
            true
        })
    }

    /// Looks before it locks, to spare the lock if the stack is empty.
    fn pop(&self) -> Option<u64> {
        let seen = self.len.load(Ordering::Acquire);
        if seen == 0 {
            return None;
        }
        preempted();
        self.locked(|| {
            // The value seen may be gone by now: look again.
            let len = if AGAIN { self.len.load(Ordering::Relaxed) } else { seen };
            let last = len.checked_sub(1)?;
            self.len.store(last, Ordering::Relaxed);
            Some(self.values[last].load(Ordering::Relaxed))
        })
    }
}

fn stackings<const AGAIN: bool>(threads: u32, rounds: u64) -> History {
    let stack = LookTwice::<AGAIN>::new();
    record(threads, |thread, log| {
        for round in 0..rounds {
            let value = u64::from(thread) * rounds + round;
            log.begin(Op::PUSH, value);
            if stack.push(value) {
                log.end(());
            } else {
                log.fail();
            }
            log.record(Op::POP, (), || stack.pop());
        }
    })
}

#[test]
fn a_stack_that_looks_again_under_its_lock_holds() {
    for threads in [2, 4] {
        assert_holds(&stackings::<true>(threads, 5000 * stress()), &Kind::Stack.into());
    }
}

#[test]
fn a_stack_that_does_not_look_again_is_caught() {
    let title = "a stack that trusts what it saw before it locked";
    let history = caught(title, &Kind::Stack.into(), |_| stackings::<false>(4, 500));
    assert_explained("no-second-look", title, &Kind::Stack.into(), &history);
}
