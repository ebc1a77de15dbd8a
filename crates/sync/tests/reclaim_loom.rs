//! Models of reclamation: every interleaving of two threads (the larger models with bounded preemptions), and every
//! value that a weakly ordered machine may read. Batches have one object, so that each retirement runs through all
//! steps.
//!
//! Freed objects are poisoned, and their memory stays allocated: a reader that is too late finds the poison, and loom
//! finds a free that is not ordered after the reader's last access. All other freed memory is poisoned, too, and kept
//! aside for a while, because loom does not watch the structures' nodes.
//!
//! The largest models allow one preemption fewer in the test command than in `cargo xtask soak models`. One preemption
//! is enough for a node that is used again (ABA): the other thread runs between the load and the exchange.
#![cfg(all(feature = "std", loom))]

#[path = "support/aside.rs"]
mod aside;
#[path = "support/fences.rs"]
mod fences;

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::atomic::AtomicPtr;
use loom::sync::atomic::Ordering::{AcqRel, Relaxed};
use loom::thread;
use millstream_sync::reclaim::epoch::{Collector, Guard};
use millstream_sync::reclaim::hazard::Domain;
use millstream_sync::reclaim::{Epochs, Hazards, Queue, Scheme, Settings, Snapshot, Stack};
use millstream_verify_random::depth;

/// Explores without a bound, or with at most `preemptions` preemptions.
fn explore(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(model);
}

/// An object that shows whether it was freed.
struct Object(UnsafeCell<u32>);

const POISON: u32 = 0;

// SAFETY: loom checks all accesses, which is the purpose of the test.
unsafe impl Sync for Object {}

impl Object {
    fn new(number: u32) -> Object {
        Object(UnsafeCell::new(number))
    }

    fn leaked(number: u32) -> *mut Object {
        Box::into_raw(Box::new(Object::new(number)))
    }

    fn read(&self) -> u32 {
        // SAFETY: loom checks this read against the write in `poison`.
        let number = self.0.with(|number| unsafe { *number });
        assert_ne!(number, POISON, "an object was freed while it was read");
        number
    }
}

unsafe fn poison(object: *mut ()) {
    // SAFETY: the object was leaked, so its memory stays valid.
    let object = unsafe { &*object.cast::<Object>() };
    // SAFETY: loom checks this write against all reads.
    object.0.with_mut(|number| unsafe { *number = POISON });
}

unsafe fn retire(guard: &Guard<'_>, object: *mut Object) {
    // SAFETY: the caller has unlinked the object, retires it once, and `poison` may run on any thread.
    unsafe { guard.retire_with(object.cast(), poison) }
}

fn shared_object() -> Arc<AtomicPtr<Object>> {
    Arc::new(AtomicPtr::new(Object::leaked(1)))
}

fn an_object_stays_while_a_reader_has_it(batch: usize) {
    explore(None, move || {
        let (collector, shared) = (Collector::with(Settings { batch, ..Settings::DEFAULT }), shared_object());
        // The shared state is made before the threads start, because making it later would order them.
        drop(collector.local().pin());
        let reader = {
            let (local, shared) = (collector.local(), Arc::clone(&shared));
            thread::spawn(move || {
                let guard = local.pin();
                // SAFETY: objects of `shared` are retired to this collector.
                unsafe { guard.load(&shared) }.unwrap().read();
            })
        };
        let local = collector.local();
        let old = shared.swap(Object::leaked(2), AcqRel);
        // SAFETY: the object has been unlinked and is retired once.
        unsafe { retire(&local.pin(), old) };
        local.flush();
        reader.join().unwrap();
    });
}

#[test]
fn epochs_an_object_stays_while_a_reader_has_it() {
    an_object_stays_while_a_reader_has_it(1);
}

/// The flush closes the batch, and its thread executes the fence without a guard.
#[test]
fn epochs_protect_objects_of_a_batch_closed_early() {
    an_object_stays_while_a_reader_has_it(2);
}

#[test]
fn epochs_a_reader_that_comes_again_is_seen_again() {
    explore(Some(depth(2, 3)), || {
        let (collector, shared) = (Collector::new(), shared_object());
        let reader = {
            let (local, shared) = (collector.local(), Arc::clone(&shared));
            thread::spawn(move || {
                let mut guard = local.pin();
                // SAFETY: objects of `shared` are retired below.
                unsafe { guard.load(&shared) }.unwrap().read();
                guard.refresh();
                // SAFETY: objects of `shared` are retired below.
                unsafe { guard.load(&shared) }.unwrap().read();
                drop(guard);
                let (outer, inner) = (local.pin(), local.pin());
                drop(outer);
                // SAFETY: objects of `shared` are retired below.
                unsafe { inner.load(&shared) }.unwrap().read();
            })
        };
        let local = collector.local();
        for number in 2..4 {
            let guard = local.pin();
            let old = shared.swap(Object::leaked(number), AcqRel);
            // SAFETY: the object has been unlinked and is retired once.
            unsafe { retire(&guard, old) };
        }
        local.flush();
        reader.join().unwrap();
    });
}

#[test]
fn epochs_garbage_of_an_ended_thread_is_freed_in_time() {
    explore(Some(3), || {
        let (collector, shared) = (Collector::new(), shared_object());
        let writer = {
            let (local, shared) = (collector.local(), Arc::clone(&shared));
            thread::spawn(move || {
                let old = shared.swap(Object::leaked(2), AcqRel);
                // SAFETY: the object has been unlinked and is retired once.
                unsafe { retire(&local.pin(), old) };
            })
        };
        let local = collector.local();
        {
            let guard = local.pin();
            // SAFETY: objects of `shared` are retired above.
            let object = unsafe { guard.load(&shared) }.unwrap();
            object.read();
            guard.flush();
            object.read();
        }
        writer.join().unwrap();
        local.flush();
        assert_eq!(collector.stats().garbage, 0);
    });
}

#[test]
fn hazards_an_object_stays_while_it_is_protected() {
    explore(None, || {
        let (domain, shared) = (Arc::new(Domain::new()), shared_object());
        let reader = {
            let (domain, shared) = (Arc::clone(&domain), Arc::clone(&shared));
            thread::spawn(move || {
                let mut hazard = domain.hazard();
                // SAFETY: objects of `shared` are retired below.
                unsafe { hazard.protect(&shared) }.unwrap().read();
            })
        };
        let local = domain.local();
        let old = shared.swap(Object::leaked(2), AcqRel);
        // SAFETY: the object has been unlinked and is retired once.
        unsafe { local.retire_with(old.cast(), poison) };
        reader.join().unwrap();
    });
}

#[test]
fn hazards_a_slot_protects_one_object_after_the_other() {
    explore(Some(3), || {
        let (domain, shared) = (Arc::new(Domain::new()), shared_object());
        let reader = {
            let (domain, shared) = (Arc::clone(&domain), Arc::clone(&shared));
            thread::spawn(move || {
                let mut hazard = domain.hazard();
                for _ in 0..2 {
                    // SAFETY: objects of `shared` are retired below.
                    unsafe { hazard.protect(&shared) }.unwrap().read();
                }
            })
        };
        let local = domain.local();
        for number in 2..4 {
            let old = shared.swap(Object::leaked(number), AcqRel);
            // SAFETY: the object has been unlinked and is retired once.
            unsafe { local.retire_with(old.cast(), poison) };
        }
        reader.join().unwrap();
        local.flush();
        assert_eq!(domain.stats().garbage, 0);
    });
}

/// A dropped local leaves its garbage in its entry; another thread that flushes takes it over.
#[test]
fn hazards_garbage_of_a_dropped_local_is_freed_in_time() {
    explore(Some(3), || {
        let (domain, shared) = (Arc::new(Domain::with(Settings { batch: 4, ..Settings::DEFAULT })), shared_object());
        let leaver = {
            let (domain, shared) = (Arc::clone(&domain), Arc::clone(&shared));
            thread::spawn(move || {
                let local = domain.local();
                let old = shared.swap(Object::leaked(2), AcqRel);
                // SAFETY: the object was leaked, so its memory stays valid.
                unsafe { &*old }.read();
                // SAFETY: the object has been unlinked and is retired once.
                unsafe { local.retire_with(old.cast(), poison) };
            })
        };
        let (mut hazard, local) = (domain.hazard(), domain.local());
        // SAFETY: objects of `shared` are retired to this domain.
        let protected = unsafe { hazard.protect(&shared) }.unwrap();
        local.flush();
        protected.read();
        drop(protected);
        leaver.join().unwrap();
        local.flush();
        assert_eq!(domain.stats().garbage, 0);
    });
}

/// A local is dropped while another thread checks for garbage of dropped locals. That thread's next batch, at the
/// latest, frees the garbage.
#[test]
fn hazards_later_batch_frees_garbage_of_a_dropped_local() {
    explore(Some(3), || {
        let domain = Arc::new(Domain::with(Settings { batch: 2, ..Settings::DEFAULT }));
        let local = domain.local();
        let leaver = {
            let domain = Arc::clone(&domain);
            // SAFETY: no other thread can reach the object, which is retired once.
            thread::spawn(move || unsafe { domain.local().retire_with(Object::leaked(1).cast(), poison) })
        };
        // SAFETY: no other thread can reach the objects, each of which is retired once.
        let retire_batch = || (0..2).for_each(|_| unsafe { local.retire_with(Object::leaked(2).cast(), poison) });
        retire_batch();
        leaver.join().unwrap();
        retire_batch();
        assert_eq!(domain.stats().garbage, 0);
    });
}

fn stack_hands_each_value_to_one<S: Scheme>() {
    explore(Some(depth(1, 2)), || {
        // The values are objects, so that loom finds a value that is read without its writer's release.
        let stack = Arc::new(Stack::<Object, S>::with_scheme());
        stack.push(Object::new(1));
        let other = {
            let stack = Arc::clone(&stack);
            thread::spawn(move || {
                stack.push(Object::new(2));
                stack.pop().map(|object| object.read())
            })
        };
        let mine = stack.pop().map(|object| object.read());
        let theirs = other.join().unwrap();
        assert!(theirs.is_some(), "a pop found no value although one was there all the time");
        let last = stack.pop().map(|object| object.read());
        let mut seen: Vec<u32> = [mine, theirs, last].into_iter().flatten().collect();
        seen.sort_unstable();
        assert_eq!(seen, [1, 2]);
    });
}

#[test]
fn stack_on_epochs_hands_each_value_to_one() {
    stack_hands_each_value_to_one::<Epochs>();
}

#[test]
fn stack_on_hazards_hands_each_value_to_one() {
    stack_hands_each_value_to_one::<Hazards>();
}

fn queue_hands_each_value_to_one_in_order<S: Scheme>() {
    explore(Some(2), || {
        let queue = Arc::new(Queue::<Object, S>::with_scheme());
        queue.push(Object::new(1));
        let other = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                queue.push(Object::new(2));
                queue.pop().map(|object| object.read())
            })
        };
        let mine = queue.pop().map(|object| object.read());
        let theirs = other.join().unwrap();
        assert!(mine.is_some() && theirs.is_some(), "a pop found no value although one was there all the time");
        if mine == Some(2) {
            assert_eq!(theirs, Some(1), "2 was taken before 1");
        }
        assert_ne!(mine, theirs);
        assert!(queue.pop().is_none());
    });
}

#[test]
fn queue_on_epochs_hands_each_value_to_one_in_order() {
    queue_hands_each_value_to_one_in_order::<Epochs>();
}

#[test]
fn queue_on_hazards_hands_each_value_to_one_in_order() {
    queue_hands_each_value_to_one_in_order::<Hazards>();
}

/// This model runs on epochs only, to bound its size: on hazards, producers help each other in the same way.
#[test]
fn queue_on_epochs_of_two_producers_loses_nothing() {
    explore(Some(2), || {
        let queue = Arc::new(Queue::<Object, Epochs>::with_scheme());
        // The shared state is made before the threads start, because making it later would order them.
        assert!(queue.pop().is_none());
        let other = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.push(Object::new(2)))
        };
        queue.push(Object::new(1));
        let first = queue.pop().expect("this thread's value or the other's is there").read();
        let second = queue.pop().map(|object| object.read());
        other.join().unwrap();
        let last = queue.pop().map(|object| object.read());
        let mut seen: Vec<u32> = [Some(first), second, last].into_iter().flatten().collect();
        seen.sort_unstable();
        assert_eq!(seen, [1, 2]);
    });
}

/// When dropped, poisons an object that loom watches.
struct Watched(&'static Object);

// SAFETY: loom checks all accesses to the object.
unsafe impl Send for Watched {}

impl Watched {
    fn new(number: u32) -> Self {
        // SAFETY: the object was leaked, so it stays valid.
        Watched(unsafe { &*Object::leaked(number) })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // SAFETY: the object was leaked, so its memory stays valid.
        unsafe { poison(std::ptr::from_ref(self.0).cast_mut().cast()) }
    }
}

fn a_value_stays_while_it_is_read(replace: fn(&Snapshot<Watched>)) {
    explore(Some(2), move || {
        let cell = Arc::new(Snapshot::new(Watched::new(1)));
        // The shared state is made before the threads start, because making it later would order them.
        drop(cell.read());
        let reader = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || cell.read().0.read())
        };
        replace(&cell);
        let kept = cell.get();
        assert_eq!(kept.0.read(), 2);
        assert!([1, 2].contains(&reader.join().unwrap()));
    });
}

#[test]
fn snapshot_a_value_stays_while_it_is_read() {
    a_value_stays_while_it_is_read(|cell| cell.set(Watched::new(2)));
}

#[test]
fn snapshot_a_value_stays_while_it_is_read_and_updated() {
    a_value_stays_while_it_is_read(|cell| drop(cell.update(|old| Watched::new(old.0.read() + 1))));
}

#[test]
fn snapshot_no_update_is_lost() {
    explore(Some(2), || {
        let cell = Arc::new(Snapshot::new(0_u32));
        let other = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || cell.update(|number| number + 1))
        };
        cell.update(|number| number + 1);
        other.join().unwrap();
        assert_eq!(*cell.read(), 2);
    });
}

#[test]
fn two_threads_never_have_the_same_slot() {
    explore(None, || {
        let domain = Arc::new(Domain::new());
        drop(domain.hazard());
        let (here, there) = (Object::leaked(1), Object::leaked(2));
        let other = {
            let (domain, source) = (Arc::clone(&domain), AtomicPtr::new(there));
            thread::spawn(move || {
                let mut hazard = domain.hazard();
                // SAFETY: the object is never retired.
                let object = unsafe { hazard.protect(&source) }.unwrap();
                object.read()
            })
        };
        let (mut hazard, source) = (domain.hazard(), AtomicPtr::new(here));
        // SAFETY: the object is never retired.
        let object = unsafe { hazard.protect(&source) }.unwrap();
        assert!(domain.stats().protecting >= 1, "the other thread cleared this one's slot");
        assert_eq!(object.read(), 1);
        assert_eq!(other.join().unwrap(), 2);
        let _last = source.load(Relaxed);
    });
}

#[test]
fn all_of_it_holds_with_symmetric_fences() {
    fences::again_with_symmetric_fences("all_of_it_holds_with_symmetric_fences");
}
