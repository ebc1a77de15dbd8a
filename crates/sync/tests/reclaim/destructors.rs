//! Destructors that retire, panic, or use the structures that run them.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

use millstream_sync::reclaim::epoch::{self, Collector};
use millstream_sync::reclaim::hazard::{self, Domain};
use millstream_sync::reclaim::{Epochs, Fence, Hazards, Queue, Scheme, Settings, Stack};

use crate::{FENCES, alive, small_batches, until_freed};

thread_local! {
    /// The number of destructors that run inside each other now.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// An object whose destructor retires the next object of a long chain by `retire`.
struct Chained {
    left: usize,
    /// The largest depth so far.
    depth: Arc<AtomicUsize>,
    retire: fn(*mut Chained),
}

impl Chained {
    fn retire(self) {
        (self.retire)(Box::into_raw(Box::new(self)));
    }
}

impl Drop for Chained {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() + 1);
        self.depth.fetch_max(DEPTH.get(), Relaxed);
        if self.left > 0 {
            Chained { left: self.left - 1, depth: Arc::clone(&self.depth), retire: self.retire }.retire();
        }
        DEPTH.set(DEPTH.get() - 1);
    }
}

fn retire_on_epochs(object: *mut Chained) {
    // SAFETY: `Chained::retire` passes the pointer of a new box once, and no other pointer to it exists.
    unsafe { epoch::pin().retire(object) };
}

fn retire_on_hazards(object: *mut Chained) {
    // SAFETY: `Chained::retire` passes the pointer of a new box once, and no other pointer to it exists.
    unsafe { hazard::retire(object) };
}

#[test]
fn destructors_may_retire_without_deep_recursion() {
    let depth = Arc::new(AtomicUsize::new(0));
    // There are several chains, so that other objects wait while a destructor retires.
    for _ in 0..4 {
        Chained { left: 5000, depth: Arc::clone(&depth), retire: retire_on_epochs }.retire();
    }
    until_freed(|| Arc::strong_count(&depth) == 1);
    assert_eq!(depth.load(Relaxed), 1);
}

#[test]
fn a_chain_of_destructors_at_a_thread_s_end_causes_no_deep_recursion() {
    let depth = Arc::new(AtomicUsize::new(0));
    for late in [false, true] {
        let first = Chained { left: 20_000, depth: Arc::clone(&depth), retire: retire_on_hazards };
        let end = move || {
            if late {
                LATE_WORK.set(Some(Late(Some(Box::new(|| first.retire())))));
                hazard::flush();
            } else {
                first.retire();
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

/// An object whose destructor retires more objects to the same domain, through a local that it makes for them.
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
    /// The local to which destructors retire. If there is none, each object makes a new local.
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
            // Nested destructors may be in progress during the call, but not once it has returned.
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
fn epoch_garbage_is_bounded_when_destructors_retire() {
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
fn destructors_with_own_locals_use_bounded_stack_and_garbage() {
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
fn destructors_of_garbage_that_locals_left_cause_no_deep_recursion() {
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
fn a_destructor_that_panics_when_a_member_leaves_keeps_no_other_from_running() {
    for fence in FENCES {
        let collector = Collector::with(small_batches(fence));
        let (local, counted) = (collector.local(), alive());
        let panics = Arc::new(AtomicBool::new(false));
        // When the second batch is closed, the first one may be freed, a few objects at a time.
        for _ in 0..16 {
            let (counted, panics) = (Arc::clone(&counted), Arc::clone(&panics));
            let unwinds_once = move || {
                let _counted = &counted;
                if panics.swap(false, Relaxed) {
                    std::panic::resume_unwind(Box::new("a destructor that panics"));
                }
            };
            // SAFETY: the object comes from a box, is unreachable, and is retired once.
            unsafe { local.pin().retire(Then::boxed(unwinds_once)) };
        }
        panics.store(true, Relaxed);
        let left = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(local)));
        panics.store(false, Relaxed);
        assert_eq!(collector.stats().members, 0, "a member that panicked has not left");
        // With a fence that takes time, the member has no object to free when it leaves.
        assert!(left.is_err() || fence != Fence::FAST, "no destructor ran when the member left");
        drop(collector);
        assert_eq!(Arc::strong_count(&counted), 1, "an object was not freed");
    }
}

/// An object whose destructor is counted and then panics.
fn unwinding(counted: &Arc<AtomicUsize>) -> *mut Then<impl FnOnce() + use<>> {
    let counted = Arc::clone(counted);
    Then::boxed(move || {
        counted.fetch_add(1, Relaxed);
        std::panic::resume_unwind(Box::new("a destructor that panics"));
    })
}

/// Whether the work panics.
fn panics(work: impl FnOnce()) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err()
}

#[test]
fn a_value_is_dropped_if_a_destructor_panics_while_it_is_popped() {
    // More than two batches of nodes, with some objects among them.
    const VALUES: usize = 1500;
    const OBJECTS: usize = 30;
    fn check<S: Scheme>(retire: impl Fn(&Arc<AtomicUsize>), flush: fn()) {
        let (value, counted) = (alive(), Arc::new(AtomicUsize::new(0)));
        let (stack, queue) = (Stack::<_, S>::with_scheme(), Queue::<_, S>::with_scheme());
        let mut in_pops = 0;
        for _ in 0..VALUES {
            stack.push(Arc::clone(&value));
            queue.push(Arc::clone(&value));
        }
        for number in 0..VALUES {
            if number % (VALUES / OBJECTS) == 0 {
                panics(|| retire(&counted));
            }
            in_pops += usize::from(panics(|| drop(stack.pop()))) + usize::from(panics(|| drop(queue.pop())));
        }
        assert!(in_pops > 0, "no destructor ran in a pop");
        drop((stack, queue));
        // No object is left to panic on another thread.
        while counted.load(Relaxed) < OBJECTS {
            panics(flush);
            thread::yield_now();
        }
        assert_eq!(Arc::strong_count(&value), 1, "a popped value was lost");
    }
    // SAFETY: the objects come from boxes, are unreachable, and each is retired once.
    check::<Epochs>(|counted| unsafe { epoch::pin().retire(unwinding(counted)) }, epoch::flush);
    // SAFETY: the objects come from boxes, are unreachable, and each is retired once.
    check::<Hazards>(|counted| unsafe { hazard::retire(unwinding(counted)) }, hazard::flush);
}

type Work = Box<dyn FnOnce() + Send>;

thread_local! {
    /// Whether this thread is about to end: the next destructor then panics.
    static ENDS: Cell<bool> = const { Cell::new(false) };
}

/// Retires objects on a thread that ends, until the destructor of one of them has panicked while its thread ends.
fn panicking_at_the_end_of_a_thread(retire: fn(*mut Then<Work>)) {
    let has_panicked = Arc::new(AtomicBool::new(false));
    until_freed(|| {
        let has_panicked_there = Arc::clone(&has_panicked);
        let ending = thread::spawn(move || {
            // These are more than two batches, so that some objects may be freed but have not been yet.
            for _ in 0..2100 {
                let has_panicked = Arc::clone(&has_panicked_there);
                let unwinds_once = move || {
                    if ENDS.replace(false) {
                        has_panicked.store(true, Relaxed);
                        std::panic::resume_unwind(Box::new("a destructor that panics"));
                    }
                };
                retire(Then::boxed(Box::new(unwinds_once)));
            }
            ENDS.set(true);
        });
        ending.join().unwrap();
        has_panicked.load(Relaxed)
    });
}

#[test]
fn a_destructor_that_panics_when_its_thread_ends_does_not_end_the_process() {
    // SAFETY: the objects come from boxes, are unreachable, and each is retired once.
    panicking_at_the_end_of_a_thread(|object| unsafe { epoch::pin().retire(object) });
    // SAFETY: the objects come from boxes, are unreachable, and each is retired once.
    panicking_at_the_end_of_a_thread(|object| unsafe { hazard::retire(object) });
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
fn destructors_inside_operations_may_use_the_structures() {
    // SAFETY: the objects come from boxes, are unreachable, and each is retired once.
    destructors_may_use_the_structures::<Epochs>(|object| unsafe { epoch::pin().retire(object) });
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    destructors_may_use_the_structures::<Hazards>(|object| unsafe { hazard::retire(object) });
}
