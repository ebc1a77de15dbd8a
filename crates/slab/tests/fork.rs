//! The operations that a forked child may perform on its parent's caches and their objects.
#![cfg(not(loom))]

use std::panic::{AssertUnwindSafe, catch_unwind};

use millstream_slab::{Error, Slab};

/// Runs `work` in a child, and asserts that it does not panic.
fn in_a_child(work: impl FnOnce()) {
    // SAFETY: the child runs `work`, which takes no lock that another thread of the parent may hold, and then exits.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "{}", std::io::Error::last_os_error());
    if pid == 0 {
        let outcome = catch_unwind(AssertUnwindSafe(work));
        // SAFETY: `_exit` ends the child at once and runs no code of the parent.
        unsafe { libc::_exit(i32::from(outcome.is_err())) }
    }
    let mut status = 0;
    // SAFETY: `pid` is this process's own child, and the status points to a local variable.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert_eq!(status, 0, "the child has panicked");
}

#[test]
fn a_childs_copies_leave_the_parents_objects_alone() {
    let slab = Slab::<u64>::options(20).chain(4).owners().private().unwrap();
    let cache = slab.cache().unwrap();
    cache.set_owner(1);
    let mut parcel = Some(slab.parcel().unwrap());
    parcel.as_mut().unwrap().alloc(&cache, 5).unwrap();
    let published = cache.alloc(6).unwrap().publish();
    let (mut dropped, mut given) = (Some(cache.alloc(7).unwrap()), Some(cache.alloc(8).unwrap()));
    let before = slab.raw().usage();

    in_a_child(|| {
        drop(dropped.take());
        let handle = given.take().unwrap().publish();
        assert!(matches!(slab.read(handle), Err(Error::Held { .. })), "it is not published");
        let parent = std::os::unix::process::parent_id();
        for refused in [
            cache.alloc(9).map(drop),
            cache.free(published),
            cache.claim(published).map(drop),
            cache.raw().flush(),
            parcel.as_mut().unwrap().push(slab.cache().unwrap().alloc(1).unwrap()),
            parcel.as_mut().unwrap().raw().clear(cache.raw()),
        ] {
            assert!(matches!(refused, Err(Error::Forked { pid }) if pid == parent));
        }
        cache.set_owner(2);
        drop(parcel.take());
        // A cache that the child has made works like any other.
        let own = slab.cache().unwrap();
        drop(own.alloc(10).unwrap());
    });

    let after = slab.raw().usage();
    assert_eq!((after.held, after.published, after.cached), (before.held, before.published, before.cached));
    assert!(slab.raw().verify().is_sound());
    assert_eq!((**dropped.as_ref().unwrap(), **given.as_ref().unwrap()), (7, 8));
    assert_eq!(slab.raw().owner(given.take().unwrap().publish()).unwrap(), 1);
    drop(dropped);
    assert!(slab.raw().verify().is_sound());
}
