//! Hazard pointers as they work without the standard library, in the caller's own domains. The test also runs with the
//! standard library.
#![cfg(not(loom))]

use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
use std::thread;

use millstream_sync::reclaim::hazard::Domain;
use millstream_sync::reclaim::{Fence, Settings};

/// Number of times the program's own heavy fence was executed.
static PASSED: AtomicUsize = AtomicUsize::new(0);

/// Sets the program's own heavy fence, if the kernel has one; without `std` the crate has none.
#[cfg(not(feature = "std"))]
fn prepare() -> bool {
    const EXPEDITED: libc::c_int = 8;
    const REGISTER: libc::c_int = 16;
    fn membarrier(command: libc::c_int) -> libc::c_long {
        // SAFETY: the call neither reads nor writes memory.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
    }
    fn interrupt_the_others() {
        assert_eq!(membarrier(EXPEDITED), 0);
        PASSED.fetch_add(1, Relaxed);
    }
    let works = membarrier(REGISTER) == 0;
    if works {
        // SAFETY: the kernel interrupts all threads of the process, and no fence is executed earlier: this is the only
        // test.
        unsafe { millstream_fence::set_heavy_fence(interrupt_the_others) };
    }
    works
}

#[cfg(feature = "std")]
fn prepare() -> bool {
    false
}

const POISON: u64 = 0xDEAD_DEAD_DEAD_DEAD;
const BATCH: usize = 16;
const RETIRES: u64 = 200_000;

static ALIVE: AtomicUsize = AtomicUsize::new(0);

struct Object(AtomicU64);

impl Object {
    fn boxed(number: u64) -> *mut Object {
        ALIVE.fetch_add(1, Relaxed);
        Box::into_raw(Box::new(Object(AtomicU64::new(number))))
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        self.0.store(POISON, Relaxed);
        ALIVE.fetch_sub(1, Relaxed);
    }
}

#[test]
fn protected_objects_stay_and_garbage_is_bounded() {
    let given = prepare();
    let domain = Domain::with(Settings { batch: BATCH, fence: Fence::FAST });
    let (shared, over) = (AtomicPtr::new(Object::boxed(0)), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut hazard = domain.hazard();
                while !over.load(Relaxed) {
                    // SAFETY: objects of `shared` are retired to this domain.
                    let object = unsafe { hazard.protect(&shared) }.unwrap();
                    for _ in 0..3 {
                        assert_ne!(object.0.load(Relaxed), POISON, "an object was freed while it was read");
                    }
                }
            });
        }
        let local = domain.local();
        for number in 0..RETIRES {
            let old = shared.swap(Object::boxed(number), AcqRel);
            // SAFETY: the object comes from a box, has just been unlinked, and is retired once.
            unsafe { local.retire(old) };
            let waiting = ALIVE.load(Relaxed) - 1;
            assert!(waiting <= 3 * BATCH + 2, "{waiting} objects wait");
        }
        over.store(true, Relaxed);
    });
    // SAFETY: the readers have ended, so this is the only reference to the box.
    drop(unsafe { Box::from_raw(shared.into_inner()) });
    drop(domain);
    assert_eq!(ALIVE.load(Relaxed), 0);
    assert!(
        !given || PASSED.load(Relaxed) as u64 >= RETIRES / BATCH as u64 / 2,
        "the program's own fence is not in use"
    );
}
