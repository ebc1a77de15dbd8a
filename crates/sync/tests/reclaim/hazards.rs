//! Hazard pointers: what a hazard holds back, and the bound on garbage.

use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering::AcqRel, Ordering::Relaxed};

use millstream_sync::reclaim::hazard::Domain;
use millstream_sync::reclaim::{Fence, Settings};

use crate::{Counted, FENCES, alive, small_batches};

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
fn a_batch_without_end_is_closed_by_a_flush() {
    let (domain, alive) = (Domain::with(Settings { batch: usize::MAX, fence: Fence::FAST }), alive());
    let local = domain.local();
    // SAFETY: the object comes from a box, is unreachable, and is retired once.
    unsafe { local.retire(Counted::boxed(&alive)) };
    local.flush();
    assert_eq!(alive.load(Relaxed), 0);
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

#[test]
fn garbage_of_ended_locals_is_within_one_local_s_bound() {
    let (domain, alive) = (Domain::with(small_batches(Fence::FAST)), alive());
    for _ in 0..1000 {
        // SAFETY: the object comes from a box, is unreachable, and is retired once.
        unsafe { domain.local().retire(Counted::boxed(&alive)) };
        assert!(domain.stats().garbage <= 3 * 8 && domain.stats().garbage == alive.load(Relaxed));
    }
}
