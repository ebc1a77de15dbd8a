//! The promises of reclamation, step by step.
#![cfg(all(feature = "std", not(loom)))]

#[path = "../../fence/tests/support/again.rs"]
mod again;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::AcqRel, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use millstream_sync::reclaim::epoch::{self, Collector, Stalled};
use millstream_sync::reclaim::hazard::{self, Domain};
use millstream_sync::reclaim::{Epochs, Fence, Hazards, Queue, Scheme, Settings, Snapshot, Stack};

/// Counts its living instances.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn boxed(alive: &Arc<AtomicUsize>) -> *mut Counted {
        alive.fetch_add(1, Relaxed);
        Box::into_raw(Box::new(Counted(Arc::clone(alive))))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

fn alive() -> Arc<AtomicUsize> {
    Arc::new(AtomicUsize::new(0))
}

/// Waits until `is_so` holds: other tests pin for a while, but not forever.
#[track_caller]
fn until_freed(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(120), "an object was not freed within two minutes");
        epoch::flush();
        hazard::flush();
        thread::yield_now();
    }
}

const FENCES: [Fence; 2] = [Fence::FAST, Fence::QUIET];

fn small_batches(fence: Fence) -> Settings {
    Settings { batch: 8, fence }
}

#[test]
fn an_object_waits_for_the_guards_that_were_there_and_no_others() {
    let (collector, alive) = (Collector::with(small_batches(Fence::FAST)), alive());
    let (early, writer, late) = (collector.local(), collector.local(), collector.local());
    let guard = early.pin();
    // SAFETY: each object of this test comes from a box, no other thread can reach it, and it is retired once.
    unsafe { writer.pin().retire(Counted::boxed(&alive)) };
    writer.flush();
    let _late = late.pin();
    writer.flush();
    assert_eq!(alive.load(Relaxed), 1, "freed although an older guard is alive");
    drop(guard);
    writer.flush();
    assert_eq!(alive.load(Relaxed), 0, "not freed although only a later guard is alive");
}

#[test]
fn guards_nest_in_any_order() {
    let (collector, alive) = (Collector::new(), alive());
    let (reader, writer) = (collector.local(), collector.local());
    let (outer, inner, third) = (reader.pin(), reader.pin(), reader.pin());
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    unsafe { writer.pin().retire(Counted::boxed(&alive)) };
    for guard in [outer, third] {
        drop(guard);
        writer.flush();
        assert_eq!(alive.load(Relaxed), 1, "freed although the inner guard is alive");
    }
    drop(inner);
    writer.flush();
    assert_eq!(alive.load(Relaxed), 0);
}

#[test]
fn a_refreshed_guard_holds_nothing_back_unless_there_is_another() {
    let (collector, alive) = (Collector::new(), alive());
    let (reader, writer) = (collector.local(), collector.local());
    let mut guard = reader.pin();
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    unsafe { writer.pin().retire(Counted::boxed(&alive)) };
    let other = reader.pin();
    guard.refresh();
    writer.flush();
    assert_eq!(alive.load(Relaxed), 1, "freed although another guard is as old");
    drop(other);
    guard.refresh();
    writer.flush();
    assert_eq!(alive.load(Relaxed), 0);
    assert_eq!(collector.stats().pinned, 1, "refreshing ended the pin");
}

#[test]
fn a_leaked_guard_ends_with_its_local() {
    let (collector, alive) = (Collector::new(), alive());
    let (reader, writer) = (collector.local(), collector.local());
    std::mem::forget(reader.pin());
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    unsafe { writer.pin().retire(Counted::boxed(&alive)) };
    writer.flush();
    assert_eq!(alive.load(Relaxed), 1);
    drop(reader);
    writer.flush();
    assert_eq!(alive.load(Relaxed), 0);
}

#[test]
fn the_last_handle_of_a_collector_frees_what_is_left() {
    for fence in FENCES {
        let alive = alive();
        let collector = Collector::with(small_batches(fence));
        let (local, other) = (collector.local(), collector.local());
        for _ in 0..20 {
            // SAFETY: the object comes from a box, is unreachable, and is retired once.
            unsafe { local.pin().retire(Counted::boxed(&alive)) };
        }
        drop((collector, local));
        drop(other);
        assert_eq!(alive.load(Relaxed), 0);
    }
}

#[test]
fn a_dropped_domain_frees_what_is_left() {
    for fence in FENCES {
        let alive = alive();
        let domain = Domain::with(small_batches(fence));
        let local = domain.local();
        for _ in 0..20 {
            // SAFETY: the object comes from a box, is unreachable, and is retired once.
            unsafe { local.retire(Counted::boxed(&alive)) };
        }
        drop(local);
        drop(domain);
        assert_eq!(alive.load(Relaxed), 0);
    }
}

#[test]
fn deferred_actions_run_once_after_the_guards() {
    let collector = Collector::new();
    let (reader, writer) = (collector.local(), collector.local());
    let ran = Arc::new(AtomicUsize::new(0));
    let guard = reader.pin();
    for _ in 0..3 {
        let ran = Arc::clone(&ran);
        writer.pin().defer(move || {
            ran.fetch_add(1, Relaxed);
        });
    }
    writer.flush();
    assert_eq!(ran.load(Relaxed), 0);
    drop(guard);
    writer.flush();
    writer.flush();
    assert_eq!(ran.load(Relaxed), 3);
}

#[test]
fn a_stalled_reader_shows_and_make_room_declares_it() {
    const LIMIT: usize = 100;
    for fence in FENCES {
        let (collector, alive) = (Collector::with(small_batches(fence)), alive());
        let (reader, writer) = (collector.local(), collector.local());
        let guard = reader.pin();
        let mut retired = 0;
        let stalled = loop {
            match writer.make_room(1, LIMIT) {
                // SAFETY: the object comes from a box, is unreachable, and is retired once.
                Ok(()) => unsafe { writer.pin().retire(Counted::boxed(&alive)) },
                Err(stalled) => break stalled,
            }
            retired += 1;
            assert!(alive.load(Relaxed) <= LIMIT);
        };
        assert_eq!(retired, LIMIT);
        assert!(matches!(stalled, Stalled { garbage: LIMIT, limit: LIMIT, behind: 12.. }), "{stalled:?}");
        let stats = collector.stats();
        assert!(stats.behind >= 12 && stats.pinned == 1 && stats.members == 2 && stats.garbage == LIMIT, "{stats:?}");
        drop(guard);
        assert_eq!(writer.make_room(LIMIT, LIMIT), Ok(()));
        assert_eq!((alive.load(Relaxed), collector.stats().garbage), (0, 0));
    }
}

#[test]
fn with_readers_that_come_and_go_garbage_is_bounded_by_batches() {
    let (collector, alive) = (Collector::with(small_batches(Fence::FAST)), alive());
    let local = collector.local();
    let mut most = 0;
    for _ in 0..10_000 {
        let guard = local.pin();
        // SAFETY: the object comes from a box, is unreachable, and is retired once.
        unsafe { guard.retire(Counted::boxed(&alive)) };
        most = most.max(alive.load(Relaxed));
        assert_eq!(collector.stats().garbage, alive.load(Relaxed));
    }
    assert!(most <= 3 * 8, "{most} objects waited");
}

#[test]
fn a_stalled_hazard_holds_back_its_object_and_nothing_else() {
    for fence in FENCES {
        let (domain, alive) = (Domain::with(small_batches(fence)), alive());
        let source = AtomicPtr::new(Counted::boxed(&alive));
        let mut hazards: Vec<_> = (0..6).map(|_| domain.hazard()).collect();
        // SAFETY: objects of `source` are retired to this domain.
        let protected: Vec<_> = hazards.iter_mut().map(|hazard| unsafe { hazard.protect(&source) }.unwrap()).collect();
        let local = domain.local();
        let bound = 3 * 12 + 6;
        for _ in 0..10_000 {
            let old = source.swap(Counted::boxed(&alive), AcqRel);
            // SAFETY: the object comes from a box, is unreachable, and is retired once.
            unsafe { local.retire(old) };
            // One object is still reachable.
            let waiting = alive.load(Relaxed) - 1;
            assert!(waiting <= bound, "{waiting} wait with {fence:?}");
            assert_eq!(domain.stats().garbage, waiting);
        }
        assert_eq!(Arc::strong_count(&protected[0].0), 1 + alive.load(Relaxed));
        assert_eq!(domain.stats().protecting, 6);
        drop(protected);
        local.flush();
        // SAFETY: the object comes from a box, is unreachable, and is retired once.
        unsafe { local.retire(source.into_inner()) };
    }
}

#[test]
fn each_of_many_hazards_holds_back_its_own_object() {
    const MANY: usize = 50;
    let domain = Domain::with(small_batches(Fence::FAST));
    let alive: Vec<_> = (0..MANY).map(|_| alive()).collect();
    let sources: Vec<_> = alive.iter().map(|alive| AtomicPtr::new(Counted::boxed(alive))).collect();
    let mut hazards: Vec<_> = (0..MANY).map(|_| domain.hazard()).collect();
    let mut protected: Vec<_> = hazards
        .iter_mut()
        .zip(&sources)
        // SAFETY: objects of the sources are retired to this domain.
        .map(|(hazard, source)| unsafe { hazard.protect(source) })
        .collect();
    let local = domain.local();
    for source in &sources {
        // SAFETY: the object comes from a box, has just been unlinked, and is retired once.
        unsafe { local.retire(source.swap(std::ptr::null_mut(), AcqRel)) };
    }
    let left = |place: usize| alive[place].load(Relaxed);
    for place in (0..MANY).step_by(2) {
        local.flush();
        assert!(
            (0..MANY).all(|other| left(other) == usize::from(other % 2 == 1 || other >= place)),
            "{place} released"
        );
        protected[place] = None;
    }
    local.flush();
    assert!((0..MANY).all(|other| left(other) == other % 2));
    drop(protected);
    local.flush();
    assert!((0..MANY).all(|other| left(other) == 0));
}

#[test]
fn a_hazard_protects_until_it_is_dropped() {
    let (domain, alive) = (Domain::new(), alive());
    let source = AtomicPtr::new(Counted::boxed(&alive));
    let (mut hazard, local) = (domain.hazard(), domain.local());
    // SAFETY: objects of `source` are retired to this domain.
    let protected = unsafe { hazard.protect(&source) }.unwrap();
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    unsafe { local.retire(source.swap(std::ptr::null_mut(), AcqRel)) };
    local.flush();
    assert_eq!(alive.load(Relaxed), 1);
    drop(protected);
    // SAFETY: objects of `source` are retired to this domain.
    assert!(unsafe { hazard.protect(&source) }.is_none(), "null was protected");
    local.flush();
    assert_eq!(alive.load(Relaxed), 0);
}

/// An object whose destructor retires the next object of a long chain.
struct Chained {
    left: usize,
    depth: Arc<AtomicUsize>,
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

impl Drop for Chained {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() + 1));
        self.depth.fetch_max(DEPTH.with(Cell::get), Relaxed);
        if self.left > 0 {
            let next = Chained { left: self.left - 1, depth: Arc::clone(&self.depth) };
            // SAFETY: the object comes from a box, is unreachable, and is retired once.
            unsafe { epoch::pin().retire(Box::into_raw(Box::new(next))) };
        }
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}

#[test]
fn destructors_may_retire_without_deep_recursion() {
    let depth = Arc::new(AtomicUsize::new(0));
    // There are several chains, so that other objects wait while one's destructor retires.
    for _ in 0..4 {
        let first = Chained { left: 5000, depth: Arc::clone(&depth) };
        // SAFETY: the object comes from a box, is unreachable, and is retired once.
        unsafe { epoch::pin().retire(Box::into_raw(Box::new(first))) };
    }
    until_freed(|| Arc::strong_count(&depth) == 1);
    assert_eq!(depth.load(Relaxed), 1);
}

/// An object whose destructor retires the next object of a long chain, to the hazard domain.
struct HazardChained {
    left: usize,
    depth: Arc<AtomicUsize>,
}

impl Drop for HazardChained {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() + 1));
        self.depth.fetch_max(DEPTH.with(Cell::get), Relaxed);
        if self.left > 0 {
            let next = HazardChained { left: self.left - 1, depth: Arc::clone(&self.depth) };
            // SAFETY: the object comes from a box, is unreachable, and is retired once.
            unsafe { hazard::retire(Box::into_raw(Box::new(next))) };
        }
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}

#[test]
fn a_chain_of_destructors_at_a_thread_s_end_takes_no_deep_stack() {
    let depth = Arc::new(AtomicUsize::new(0));
    for late in [false, true] {
        let first = HazardChained { left: 20_000, depth: Arc::clone(&depth) };
        let end = move || {
            // SAFETY: the object comes from a box, is unreachable, and is retired once.
            let retire = || unsafe { hazard::retire(Box::into_raw(Box::new(first))) };
            if late {
                LATE_WORK.with(|work| work.set(Some(Late(Some(Box::new(retire))))));
                hazard::flush();
            } else {
                retire();
            }
        };
        thread::Builder::new().stack_size(128 << 10).spawn(end).unwrap().join().unwrap();
    }
    until_freed(|| Arc::strong_count(&depth) == 1);
    assert_eq!(depth.load(Relaxed), 1);
}

/// Runs a closure when dropped: at the end of its thread, before or after the thread's other storage is destroyed.
struct Late(Option<Box<dyn FnOnce()>>);

impl Drop for Late {
    fn drop(&mut self) {
        (self.0.take().unwrap())();
        hazard::flush();
    }
}

/// An object whose destructor retires more objects to the same domain, by a local that it makes for them.
struct Family {
    domain: &'static Domain,
    children: usize,
    generations: usize,
    alive: Arc<AtomicUsize>,
}

impl Family {
    fn boxed(domain: &'static Domain, children: usize, generations: usize, alive: &Arc<AtomicUsize>) -> *mut Family {
        alive.fetch_add(1, Relaxed);
        Box::into_raw(Box::new(Family { domain, children, generations, alive: Arc::clone(alive) }))
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Relaxed);
        for _ in 0..if self.generations > 0 { self.children } else { 0 } {
            let child = Family::boxed(self.domain, self.children, self.generations - 1, &self.alive);
            // SAFETY: the object comes from a box, is unreachable, and is retired once.
            OWN_LOCAL.with(|local| unsafe {
                match local.get() {
                    Some(local) => local.retire(child),
                    None => self.domain.local().retire(child),
                }
            });
        }
    }
}

thread_local! {
    static LATE_WORK: Cell<Option<Late>> = const { Cell::new(None) };
    /// The local to which destructors retire; without one, each object makes a new one.
    static OWN_LOCAL: Cell<Option<&'static hazard::Local<'static>>> = const { Cell::new(None) };
}

#[test]
fn garbage_is_bounded_when_destructors_retire() {
    let domain: &'static Domain = Box::leak(Box::new(Domain::with(small_batches(Fence::FAST))));
    let local: &'static hazard::Local<'_> = Box::leak(Box::new(domain.local()));
    OWN_LOCAL.with(|own| own.set(Some(local)));
    let bound = 3 * 8;
    for (children, generations) in [(1, 20), (2, 3), (4, 2)] {
        let alive = alive();
        for _ in 0..2000 {
            // SAFETY: the object comes from a box, is unreachable, and is retired once.
            unsafe { local.retire(Family::boxed(domain, children, generations, &alive)) };
            // Nested destructors may be in progress meanwhile, but not once the call has returned.
            let garbage = domain.stats().garbage;
            assert!(garbage <= bound, "{garbage} objects wait, with {children} children in {generations} generations");
        }
        until_freed(|| {
            local.flush();
            alive.load(Relaxed) == 0
        });
    }
}

/// Like [`Family`], with one child, on epochs.
struct Litter {
    local: &'static epoch::Local,
    generations: usize,
}

impl Drop for Litter {
    fn drop(&mut self) {
        if self.generations > 0 {
            let child = Litter { local: self.local, generations: self.generations - 1 };
            // SAFETY: the object comes from a box, is unreachable, and is retired once.
            unsafe { self.local.pin().retire(Box::into_raw(Box::new(child))) };
        }
    }
}

#[test]
fn with_readers_that_leave_garbage_is_bounded_when_destructors_retire() {
    const GENERATIONS: usize = 20;
    let collector = Collector::with(small_batches(Fence::FAST));
    let local: &'static epoch::Local = Box::leak(Box::new(collector.local()));
    let mut most = 0;
    for _ in 0..2000 {
        let first = Litter { local, generations: GENERATIONS };
        // SAFETY: the object comes from a box, is unreachable, and is retired once.
        unsafe { local.pin().retire(Box::into_raw(Box::new(first))) };
        most = most.max(collector.stats().garbage);
    }
    // The caller's own guard holds back the objects that destructors retire during the call: two chains' worth.
    assert!(most <= 3 * 8 + 2 * GENERATIONS, "{most}");
}

#[test]
fn destructors_that_make_locals_of_their_own_take_no_deep_stack_and_leave_bounded_garbage() {
    let domain: &'static Domain = Box::leak(Box::new(Domain::with(small_batches(Fence::FAST))));
    let alive = alive();
    let chain = Family::boxed(domain, 1, 20_000, &alive);
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    let retire = move |chain: usize| unsafe { domain.local().retire(chain as *mut Family) };
    let chain = chain as usize;
    thread::Builder::new().stack_size(128 << 10).spawn(move || retire(chain)).unwrap().join().unwrap();
    let local = domain.local();
    until_freed(|| {
        local.flush();
        assert!(domain.stats().garbage <= 3 * 8 * 3);
        alive.load(Relaxed) == 0
    });
}

#[test]
fn garbage_of_ended_locals_is_within_one_local_s_bound() {
    let (domain, alive) = (Domain::with(small_batches(Fence::FAST)), alive());
    for _ in 0..1000 {
        // SAFETY: the object comes from a box, is unreachable, and is retired once.
        unsafe { domain.local().retire(Counted::boxed(&alive)) };
        assert!(domain.stats().garbage <= 3 * 8 && domain.stats().garbage == alive.load(Relaxed));
    }
}

/// An object whose destructor runs a closure.
struct Then<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Then<F> {
    fn boxed(then: F) -> *mut Then<F> {
        Box::into_raw(Box::new(Then(Some(then))))
    }
}

impl<F: FnOnce()> Drop for Then<F> {
    fn drop(&mut self) {
        if let Some(then) = self.0.take() {
            then();
        }
    }
}

#[test]
fn garbage_of_a_destructor_s_local_is_freed_with_a_later_batch() {
    let settings = Settings { batch: 2, fence: Fence::FAST };
    let domain: &'static Domain = Box::leak(Box::new(Domain::with(settings)));
    let local: &'static hazard::Local<'static> = Box::leak(Box::new(domain.local()));
    // SAFETY: each object of this test comes from a box, is unreachable, and is retired once.
    let retire_batch = move || (0..2).for_each(|_| unsafe { local.retire(Box::into_raw(Box::new(0))) });
    let leave_and_retire = move || {
        // SAFETY: the object comes from a box, is unreachable, and is retired once.
        unsafe { domain.local().retire(Box::into_raw(Box::new(0))) };
        retire_batch();
    };
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    unsafe { local.retire(Then::boxed(leave_and_retire)) };
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    unsafe { local.retire(Box::into_raw(Box::new(0))) };
    (0..3).for_each(|_| retire_batch());
    assert_eq!(domain.stats().garbage, 0);
}

#[test]
fn destructors_of_garbage_that_locals_left_take_no_deep_stack() {
    const LOCALS: usize = 50;
    let settings = Settings { batch: 2, fence: Fence::FAST };
    let domain: &'static Domain = Box::leak(Box::new(Domain::with(settings)));
    let local: &'static hazard::Local<'static> = Box::leak(Box::new(domain.local()));
    let depth = alive();
    let locals: Vec<_> = (0..LOCALS).map(|_| domain.local()).collect();
    for left in &locals {
        let depth = Arc::clone(&depth);
        let nests = move || {
            DEPTH.set(DEPTH.get() + 1);
            depth.fetch_max(DEPTH.get(), Relaxed);
            // SAFETY: the objects come from boxes, are unreachable, and each is retired once.
            (0..2).for_each(|_| unsafe { local.retire(Box::into_raw(Box::new(0))) });
            DEPTH.set(DEPTH.get() - 1);
        };
        // SAFETY: the object comes from a box, is unreachable, and is retired once.
        unsafe { left.retire(Then::boxed(nests)) };
    }
    drop(locals);
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    (0..2).for_each(|_| unsafe { local.retire(Box::into_raw(Box::new(0))) });
    local.flush();
    assert_eq!((Arc::strong_count(&depth), depth.load(Relaxed)), (1, 1));
}

/// Retires destructors that panic, and flushes until no object is left.
fn panicking(retire: impl Fn(*mut Then<fn()>), flush: impl Fn()) {
    const OBJECTS: usize = 20;
    let unwinds: fn() = || std::panic::resume_unwind(Box::new("a destructor that panics"));
    let contained = |work: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err();
    let mut panics = (0..OBJECTS).filter(|_| contained(&|| retire(Then::boxed(unwinds)))).count();
    while panics < OBJECTS {
        panics += usize::from(contained(&flush));
    }
}

#[test]
fn garbage_is_counted_down_when_destructors_panic() {
    for fence in FENCES {
        let domain = Domain::with(small_batches(fence));
        let local = domain.local();
        // SAFETY: the objects come from boxes, are unreachable, and each is retired once.
        panicking(|object| unsafe { local.retire(object) }, || local.flush());
        assert_eq!(domain.stats().garbage, 0);
        let collector = Collector::with(small_batches(fence));
        let local = collector.local();
        // SAFETY: the object comes from a box, is unreachable, and is retired once.
        panicking(|object| unsafe { local.pin().retire(object) }, || local.flush());
        assert_eq!(collector.stats().garbage, 0);
    }
}

#[test]
fn a_child_of_fork_frees_its_garbage_whichever_thread_was_pinned() {
    let (pinned, wait) = mpsc::channel();
    let (go_on, may) = mpsc::channel::<()>();
    let reader = thread::spawn(move || {
        let _guards = (epoch::pin(), epoch::pin());
        pinned.send(()).unwrap();
        may.recv().unwrap();
    });
    wait.recv().unwrap();
    drop(epoch::pin());
    let alive = alive();
    let kept = epoch::pin();
    // SAFETY: the child retires only its own objects, and exits without touching its parent's threads' state.
    let status = unsafe {
        let child = libc::fork();
        if child == 0 {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                epoch::pin().retire(Counted::boxed(&alive));
                epoch::flush();
                assert_eq!(alive.load(Relaxed), 1, "freed although this thread's guard is alive");
                drop(kept);
                epoch::flush();
                assert_eq!(alive.load(Relaxed), 0);
            }));
            libc::_exit(i32::from(outcome.is_err()));
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        status
    };
    go_on.send(()).unwrap();
    reader.join().unwrap();
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status}");
}

#[test]
fn a_sandbox_that_is_entered_later_neither_panics_nor_aborts() {
    let test = "a_sandbox_that_is_entered_later_neither_panics_nor_aborts";
    if !again::is_again("sandbox") {
        return again::again(test, "sandbox", "", false);
    }
    for forbidden in [&[libc::SYS_membarrier][..], &[libc::SYS_membarrier, libc::SYS_mprotect]] {
        let alive = alive();
        let sandboxed = Arc::clone(&alive);
        let end = move || {
            let retire = |count| {
                // SAFETY: the objects come from boxes, are unreachable, and each is retired once.
                (0..count).for_each(|_| unsafe {
                    epoch::pin().retire(Counted::boxed(&sandboxed));
                    hazard::retire(Counted::boxed(&sandboxed));
                });
            };
            retire(1);
            forbidden.iter().for_each(|call| again::forbid(*call).unwrap());
            retire(10_000);
            epoch::flush();
            hazard::flush();
            retire(10);
            // At this point the thread's storage is being destroyed.
        };
        thread::spawn(end).join().unwrap();
        until_freed(|| alive.load(Relaxed) == 0);
    }
}

/// A value whose destructor uses the structures itself.
struct Using<S: Scheme>(u64, Arc<(Queue<u64, S>, Stack<u64, S>)>);

impl<S: Scheme> Drop for Using<S> {
    fn drop(&mut self) {
        self.1.0.push(self.0);
        self.1.1.push(self.0);
        assert!(
            self.1.0.pop().is_some() && self.1.1.pop().is_some(),
            "a structure was empty although puts precede takes"
        );
    }
}

fn destructors_may_use_the_structures<S: Scheme>(retire: fn(*mut Using<S>)) {
    let others = Arc::new((Queue::with_scheme(), Stack::with_scheme()));
    others.0.push(0);
    others.1.push(0);
    let (queue, stack) = (Queue::<_, S>::with_scheme(), Stack::<_, S>::with_scheme());
    // This number suffices for nodes and values to be freed inside operations.
    for number in 1..20_000 {
        retire(Box::into_raw(Box::new(Using(number, Arc::clone(&others)))));
        queue.push(number);
        stack.push(number);
        assert_eq!((queue.pop(), stack.pop()), (Some(number), Some(number)));
    }
}

#[test]
fn destructors_that_run_inside_of_operations_may_use_the_structures() {
    // SAFETY: the objects come from boxes, are unreachable, and each is retired once.
    destructors_may_use_the_structures::<Epochs>(|object| unsafe { epoch::pin().retire(object) });
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    destructors_may_use_the_structures::<Hazards>(|object| unsafe { hazard::retire(object) });
}

#[test]
fn garbage_of_an_ended_thread_is_freed_by_others() {
    let alive = alive();
    let ended = Arc::clone(&alive);
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    thread::spawn(move || unsafe { epoch::pin().retire(Counted::boxed(&ended)) }).join().unwrap();
    let ended = Arc::clone(&alive);
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    thread::spawn(move || unsafe { hazard::retire(Counted::boxed(&ended)) }).join().unwrap();
    until_freed(|| alive.load(Relaxed) == 0);
}

/// Uses reclamation while its thread's storage is being destroyed.
struct LateUser(Arc<AtomicUsize>);

impl Drop for LateUser {
    fn drop(&mut self) {
        let guard = epoch::pin();
        // SAFETY: the object comes from a box, is unreachable, and is retired once.
        unsafe { guard.retire(Counted::boxed(&self.0)) };
        let queue = Queue::<_, Hazards>::with_scheme();
        queue.push(1);
        assert_eq!(queue.pop(), Some(1));
        drop(guard);
        // SAFETY: the object comes from a box, is unreachable, and is retired once.
        unsafe { hazard::retire(Counted::boxed(&self.0)) };
    }
}

/// Refreshes a guard and retires once more when dropped.
struct Kept(epoch::Guard<'static>, Arc<AtomicUsize>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.refresh();
        // SAFETY: the object comes from a box, is unreachable, and is retired once.
        unsafe { self.0.retire(Counted::boxed(&self.1)) };
    }
}

thread_local! {
    static LATE: Cell<Option<LateUser>> = const { Cell::new(None) };
    static KEPT: Cell<Option<Kept>> = const { Cell::new(None) };
}

#[test]
fn a_thread_that_ends_may_still_reclaim() {
    let alive = alive();
    for first_late in [true, false] {
        let alive = Arc::clone(&alive);
        thread::spawn(move || {
            let touch = || {
                drop(epoch::pin());
                hazard::flush();
            };
            let register = || LATE.with(|late| late.set(Some(LateUser(alive))));
            // Storage is destroyed in either order.
            if first_late {
                register();
                touch();
            } else {
                touch();
                register();
            }
        })
        .join()
        .unwrap();
    }
    until_freed(|| alive.load(Relaxed) == 0);
}

#[test]
fn a_guard_in_thread_storage_outlives_its_thread_s_membership() {
    let alive = alive();
    let (pinned, wait) = mpsc::channel();
    let (go_on, may) = mpsc::channel::<()>();
    let late = Arc::clone(&alive);
    let thread = thread::spawn(move || {
        KEPT.with(|kept| kept.set(Some(Kept(epoch::pin(), late))));
        pinned.send(()).unwrap();
        may.recv().unwrap();
    });
    wait.recv().unwrap();
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    unsafe { epoch::pin().retire(Counted::boxed(&alive)) };
    epoch::pin().flush();
    assert_eq!(alive.load(Relaxed), 1);
    go_on.send(()).unwrap();
    thread.join().unwrap();
    until_freed(|| alive.load(Relaxed) == 0);
}

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
