//! An area of our own, where the C library registers none: musl, glibc before 2.35, or glibc that was told not to.

use std::cell::{Cell, UnsafeCell};

use super::{arch, source};

/// The kernel's structure in its original size, which every kernel accepts.
#[repr(C, align(32))]
struct Rseq([u32; 8]);

/// The word with the concurrency id.
const CONCURRENCY: usize = super::area::word::CONCURRENCY / size_of::<u32>();

/// The kernel's words for a thread that is not registered, and no concurrency id that any data has a slot for.
const UNREGISTERED: Rseq = Rseq([0, u32::MAX, 0, 0, 0, 0, u32::MAX, 0]);

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Fresh,
    Registered,
    /// The kernel does not know the call or forbids it, another library was first, or the thread is ending.
    Refused,
}

struct Own {
    area: UnsafeCell<Rseq>,
    state: Cell<State>,
}

/// Unregisters when the thread ends: the kernel must not write into memory that is somebody else's by then.
struct End;

thread_local! {
    static OWN: Own = const { Own { area: UnsafeCell::new(UNREGISTERED), state: Cell::new(State::Fresh) } };
    static END: End = const { End };
}

/// Where this thread's area is, in bytes from the thread pointer; registers it when asked first.
pub(super) fn offset() -> Option<isize> {
    OWN.with(|own| {
        if own.state.get() == State::Fresh {
            own.state.set(register(own));
        }
        (own.state.get() == State::Registered).then(|| own.area.get() as isize - arch::thread_pointer() as isize)
    })
}

fn register(own: &Own) -> State {
    // A thread that is ending could not unregister.
    if !source::may_register() || END.try_with(|_| ()).is_err() {
        return State::Refused;
    }
    match call(own.area.get(), 0) {
        // Busy: a signal handler was faster.
        0 | libc::EBUSY => State::Registered,
        _ => State::Refused,
    }
}

impl Drop for End {
    fn drop(&mut self) {
        const UNREGISTER: libc::c_int = 1;
        OWN.with(|own| {
            if own.state.replace(State::Refused) == State::Registered {
                call(own.area.get(), UNREGISTER);
                // The kernel leaves a zero there. What this thread's other destructors still add must find no slot by it.
                // SAFETY: the kernel does not write to the area any more, and it is this thread's.
                unsafe { (*own.area.get()).0[CONCURRENCY] = u32::MAX };
            }
        });
    }
}

/// rseq(2): zero, or the error's number.
fn call(area: *mut Rseq, flags: libc::c_int) -> i32 {
    // SAFETY: the area lives as long as its thread, which unregisters it before.
    let result = unsafe { libc::syscall(libc::SYS_rseq, area, size_of::<Rseq>(), flags, arch::SIGNATURE) };
    if result == 0 { 0 } else { std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL) }
}
