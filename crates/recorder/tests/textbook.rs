//! Records and checks textbook structures. Each is compared with a *twin*, which lacks one essential thing: a free list without
//! the generation in its head, Peterson's lock without its fence, and a stack whose `pop` does not check the length a second
//! time.
//!
//! The check must accept the correct structure and reject the twin. With `MILLSTREAM_PICTURES=folder`, a picture of each twin's
//! history is written to this folder. `MILLSTREAM_STRESS=n` makes the tests of correct structures run n times longer.

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

/// The maximum number of runs after which a twin must be detected.
const MAX_RUNS: u32 = 200;

/// Before this time has passed, more runs are allowed: on a busy machine the twin's threads seldom run at the same time.
const LONG: Duration = Duration::from_secs(120);

/// Repeats runs of a twin until the check rejects one, and returns its history.
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

/// Yields at random in the middle of an operation, as if the scheduler preempted the thread, but more often.
fn preempted() {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    match TURN.fetch_add(1, Ordering::Relaxed) % 61 {
        0..7 => thread::yield_now(),
        7 => thread::sleep(Duration::from_micros(20)),
        _ => (),
    }
}

/// A free list of numbered objects: a linked stack. The head has the number of the top object and, if `GENERATION`, the number of
/// changes so far.
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

    /// Returns a head with another top, and the next generation.
    fn with_top(head: u64, top: u32) -> u64 {
        let generation = if GENERATION { (head >> 32) + 1 } else { 0 };
        generation << 32 | u64::from(top)
    }

    /// Allocates an object. `between` runs between the load and the swap.
    fn alloc(&self, mut between: impl FnMut()) -> Option<u32> {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let top = head as u32;
            if top == END {
                return None;
            }
            let below = self.next[top as usize].load(Ordering::Relaxed);
            // At this point another thread may allocate `top` and `below`, and then free `top`. Without the generation, the head
            // is then the same as before, and the swap makes `below` the top, although it is in use.
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
        // The list of a twin may have become a cycle and never be empty, so the number of rounds is limited.
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

/// The same mistake step by step: while one allocation is stopped between its load and its swap, another process allocates this
/// object and the next one, and then frees this object.
fn stopped_allocation<const GENERATION: bool>() -> History {
    let list = FreeList::<GENERATION>::new(4);
    let recorder = Recorder::new();
    let (mut stopped, mut other, mut last) = (recorder.log(), recorder.log(), recorder.log());
    // The pause is longer than the possible difference between the clocks of two cores.
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

/// Peterson's lock for two threads. A thread announces that it wants the lock and gives the other thread precedence. It then
/// waits as long as the other thread wants the lock and has precedence.
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
            // The fence makes both stores visible before this thread loads the other's words. Without the fence, the stores of
            // each core may still be in its store buffer at that time, and both threads find the lock free.
            fence(Ordering::SeqCst);
        }
        wait(|| !self.wants[1 - me].load(Ordering::Acquire) || self.turn.load(Ordering::Acquire) == me);
        fence(Ordering::Acquire);
    }

    fn release(&self, me: usize) {
        self.wants[me].store(false, Ordering::Release);
    }
}

/// Waits until the condition is true: first spins, then sleeps. A thread that wakes up gets a processor sooner than a thread that
/// has yielded, so two threads that wait for each other soon run at the same time.
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
            // A round shows something only if both threads run at the same time, so they wait for each other now and then.
            if round % 500 == 0 {
                arrived.fetch_add(1, Ordering::Relaxed);
                wait(|| arrived.load(Ordering::Relaxed) >= 2 * (round / 500 + 1));
            }
            log.record(Op::ACQUIRE, (), || lock.acquire(me as usize));
            // This takes long enough that, if two threads are inside at the same time, their operations overlap in the history
            // despite any difference between the clocks.
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

/// A stack of numbers in an array under a spin lock. `pop` reads the length, and removes the last number.
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

    /// Checks the length before it locks, so that an empty stack need not be locked.
    fn pop(&self) -> Option<u64> {
        let seen = self.len.load(Ordering::Acquire);
        if seen == 0 {
            return None;
        }
        preempted();
        self.locked(|| {
            // The length may have changed before the lock was acquired, so it is checked again.
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
