//! The registration of areas with the kernel: by the C library, or here, for threads that the C library does not
//! register (musl, glibc before 2.35, or glibc that was told not to).

use std::cell::{Cell, UnsafeCell};

use super::arch;

/// The environment variable that overrides the choice, for tests and for measurements: `libc`, `own` or `off`.
const VARIABLE: &str = "MILLSTREAM_RSEQ";

fn is_asked(for_what: &str) -> bool {
    std::env::var_os(VARIABLE).is_some_and(|asked| asked == for_what)
}

/// The offset of the area that the C library registered for each thread.
pub(super) fn libc_offset() -> Option<isize> {
    if is_asked("own") || is_asked("off") {
        return None;
    }
    let (offset, size) = arch::libc_symbols()?;
    // SAFETY: both are constants of glibc, which sets them before any other code runs.
    unsafe { (*size != 0).then(|| *offset) }
}

/// The kernel's structure in its original size, which every kernel accepts.
#[repr(C, align(32))]
struct Rseq([u32; 8]);

/// Index of the word with the concurrency id.
const CONCURRENCY: usize = super::area::word::CONCURRENCY / size_of::<u32>();

/// The kernel's values for a thread that is not registered, and a concurrency id for which no data has a slot.
const UNREGISTERED: Rseq = Rseq([0, u32::MAX, 0, 0, 0, 0, u32::MAX, 0]);

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Fresh,
    Registered,
    /// The kernel does not know the call or forbids it, another library registered the thread first, or the thread is
    /// ending.
    Refused,
}

struct Own {
    area: UnsafeCell<Rseq>,
    state: Cell<State>,
}

/// Unregisters the area when the thread ends, before its memory is reused: the kernel must not write to it then.
struct End;

thread_local! {
    static OWN: Own = const { Own { area: UnsafeCell::new(UNREGISTERED), state: Cell::new(State::Fresh) } };
    static END: End = const { End };
}

/// The offset of this thread's area from the thread pointer in bytes; the first call registers the area.
pub(super) fn own_offset() -> Option<isize> {
    OWN.with(|own| {
        if own.state.get() == State::Fresh {
            own.state.set(register(own));
        }
        (own.state.get() == State::Registered).then(|| own.area.get() as isize - arch::thread_pointer() as isize)
    })
}

fn register(own: &Own) -> State {
    // A thread that is already ending could no longer unregister.
    if is_asked("libc") || is_asked("off") || END.try_with(|_| ()).is_err() {
        return State::Refused;
    }
    match call(own.area.get(), 0) {
        // Busy: a signal handler on this thread has registered the area in the meantime.
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
                // The kernel leaves a zero in this word, but additions by this thread's later destructors must find no
                // slot.
                // SAFETY: the area is this thread's own, and the call above keeps the kernel from writing to it.
                unsafe { (*own.area.get()).0[CONCURRENCY] = u32::MAX };
            }
        });
    }
}

/// Calls rseq(2) and returns zero or the error number.
fn call(area: *mut Rseq, flags: libc::c_int) -> i32 {
    // SAFETY: the area lives as long as its thread, which unregisters it before it ends.
    let result = unsafe { libc::syscall(libc::SYS_rseq, area, size_of::<Rseq>(), flags, arch::SIGNATURE) };
    if result == 0 { 0 } else { std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL) }
}
