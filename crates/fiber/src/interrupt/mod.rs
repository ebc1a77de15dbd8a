//! The backtrace of a fiber that runs and does not wait, taken from outside.
//!
//! A signal interrupts the worker's thread. The handler copies the registers and the fiber's stack, and the caller unwinds the
//! copy: the handler takes no lock, allocates nothing, and needs no debug or unwind information. The worker goes on meanwhile.
//!
//! The signal is `SIGURG`, which is ignored by default, so that one that comes late does no harm. Its action is changed only
//! for the time of the question, and only if the program does not handle the signal itself.

mod registers;
mod unwind;

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::{Duration, Instant};
use std::{io, mem, ptr};

use parking_lot::Mutex;

use crate::backtrace::{Backtrace, NoBacktrace};
use crate::scheduler::local::Local;
use crate::scheduler::post::Post;
use registers::Registers;

const SIGNAL: libc::c_int = libc::SIGURG;

/// The maximum number of bytes that are copied of a stack, the innermost ones.
const MAX_BYTES: usize = 64 << 10;

/// The maximum wait for the answer of a thread, which may not run, or may block the signal.
const LIMIT: Duration = Duration::from_millis(20);

/// The pause between two checks for the answer.
const CHECK_INTERVAL: Duration = Duration::from_micros(20);

/// No question, or the address of the post whose worker is asked, or one of the following.
static STATE: AtomicUsize = AtomicUsize::new(NONE);
const NONE: usize = 0;
/// The worker writes its answer.
const WRITING: usize = 1;
/// The answer is there.
const WRITTEN: usize = 2;

/// Held by the thread that asks.
static TURN: Mutex<()> = Mutex::new(());

/// The time for which a thread waits for its turn to ask: that of some questions without an answer.
const LIMIT_OF_TURN: Duration = Duration::from_millis(200);

/// The answer to the question. The thread that moves `STATE` away from a post owns it: the handler until it has stored
/// `WRITTEN`, and the asking thread at any other time.
static ANSWER: Shared = Shared(UnsafeCell::new(Answer { fiber: 0, interrupted: None, room: ptr::null_mut() }));

struct Shared(UnsafeCell<Answer>);

// SAFETY: `STATE` says which thread uses the answer.
unsafe impl Sync for Shared {}

struct Answer {
    /// The fiber that runs, or 0.
    fiber: u64,
    /// The registers, and the number of bytes copied from the stack pointer on; `None` if the thread was not on the fiber's
    /// stack.
    interrupted: Option<(Registers, usize)>,
    /// Room for `MAX_BYTES`.
    room: *mut u8,
}

/// Takes the backtrace of the fiber that the worker runs, if it is `fiber`.
pub(crate) fn backtrace(post: &Post, fiber: u64) -> Result<Backtrace, NoBacktrace> {
    if !registers::ARE_KNOWN {
        return Err(NoBacktrace::Unsupported);
    }
    // In the child of a fork that came during a question, the turn never ends.
    let Some(_turn) = TURN.try_lock_for(LIMIT_OF_TURN) else { return Err(NoBacktrace::NoAnswer) };
    let mut room = vec![0_u8; MAX_BYTES];
    // SAFETY: no question is open, so the answer is this thread's.
    unsafe { *ANSWER.0.get() = Answer { fiber: 0, interrupted: None, room: room.as_mut_ptr() } };
    let handled = Handled::begin()?;
    // Release pairs with the handler's acquire, which then finds the room.
    STATE.store(ptr::from_ref(post).addr(), Release);
    let sent = send(post.thread());
    let is_answered = sent.is_ok() && wait();
    // A handler that has begun to write ends soon, as it waits for nothing.
    if !is_answered && STATE.compare_exchange(ptr::from_ref(post).addr(), NONE, Relaxed, Relaxed).is_ok() {
        return Err(sent.err().unwrap_or(NoBacktrace::NoAnswer));
    }
    // Acquire pairs with the handler's release.
    while STATE.load(Acquire) != WRITTEN {
        std::thread::sleep(CHECK_INTERVAL);
    }
    STATE.store(NONE, Relaxed);
    drop(handled);
    // SAFETY: the answer is written, and no question is open any more.
    let answer = unsafe { &mut *ANSWER.0.get() };
    match answer.interrupted.take() {
        Some((registers, bytes)) if answer.fiber == fiber => {
            Ok(Backtrace::of(unwind::unwind(registers, &room[..bytes])))
        }
        _ => Err(NoBacktrace::Left),
    }
}

/// Waits for the answer, and returns whether it has come.
fn wait() -> bool {
    let began = Instant::now();
    while began.elapsed() < LIMIT {
        // Relaxed: the caller loads it again with acquire.
        if STATE.load(Relaxed) == WRITTEN {
            return true;
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
    false
}

fn send(thread: libc::pid_t) -> Result<(), NoBacktrace> {
    // SAFETY: sends a signal to a thread of this process, if there still is one.
    match unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, SIGNAL) } {
        0 => Ok(()),
        _ => Err(refused()),
    }
}

fn refused() -> NoBacktrace {
    NoBacktrace::Refused { os_error: io::Error::last_os_error().raw_os_error().unwrap_or(0) }
}

/// The time in which this module handles the signal.
struct Handled {
    before: libc::sigaction,
}

impl Handled {
    fn begin() -> Result<Self, NoBacktrace> {
        // SAFETY: zeros are a valid value of the structure. The handler has the signature that `SA_SIGINFO` asks for, and is
        // async-signal-safe.
        let own = unsafe {
            let mut own: libc::sigaction = mem::zeroed();
            own.sa_sigaction = handler();
            // A system call that the signal interrupts goes on, where the kernel allows for that.
            own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigfillset(&raw mut own.sa_mask);
            own
        };
        // The look comes first, so that a handler of the program misses no signal.
        if is_of_program(&exchange(None)?) {
            return Err(NoBacktrace::SignalTaken);
        }
        let mut before = exchange(Some(&own))?;
        if is_of_program(&before) {
            // The program has set it since the look.
            exchange(Some(&before))?;
            return Err(NoBacktrace::SignalTaken);
        }
        if before.sa_sigaction == handler() {
            // The child of a fork has it from its parent, and a program that sets a former action again may have it from here.
            before.sa_sigaction = libc::SIG_DFL;
        }
        Ok(Handled { before })
    }
}

impl Drop for Handled {
    /// Restores the former action, unless the program has set one of its own meanwhile.
    fn drop(&mut self) {
        let is_own = |action: libc::sigaction| action.sa_sigaction == handler();
        if exchange(None).is_ok_and(is_own)
            && let Ok(replaced) = exchange(Some(&self.before))
            && is_of_program(&replaced)
        {
            // The program has set it since the look.
            let _ = exchange(Some(&replaced));
        }
    }
}

/// Whether the program handles the signal by this action.
fn is_of_program(action: &libc::sigaction) -> bool {
    ![libc::SIG_DFL, libc::SIG_IGN, handler()].contains(&action.sa_sigaction)
}

/// Sets the action of the signal, if there is one to set, and returns the former.
fn exchange(action: Option<&libc::sigaction>) -> Result<libc::sigaction, NoBacktrace> {
    // SAFETY: zeros are a valid value of the structure, which the call fills. An action to set is from `begin` or from the kernel.
    unsafe {
        let mut former: libc::sigaction = mem::zeroed();
        match libc::sigaction(SIGNAL, action.map_or(ptr::null(), ptr::from_ref), &raw mut former) {
            0 => Ok(former),
            _ => Err(refused()),
        }
    }
}

fn handler() -> libc::sighandler_t {
    on_question as *const () as libc::sighandler_t
}

extern "C" fn on_question(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    let Some((post, fiber)) = Local::post_for_signal() else { return };
    // A question to another worker does not concern this one. Acquire pairs with the release of the asking thread.
    if STATE.compare_exchange(post.addr(), WRITING, Acquire, Relaxed).is_err() {
        return;
    }
    // SAFETY: the answer is this handler's until it stores `WRITTEN`.
    let answer = unsafe { &mut *ANSWER.0.get() };
    // SAFETY: the fiber runs on this thread, so it is alive until the handler returns.
    if let Some(fiber) = unsafe { fiber.as_ref() } {
        answer.fiber = fiber.id;
        // SAFETY: the kernel passes the interrupted context of this thread.
        let registers = unsafe { Registers::of(context.cast()) };
        let at = registers.stack_pointer();
        if let Some([_, floor, top]) = fiber.state.stack()
            && (floor..top).contains(&at)
        {
            let bytes = (top - at).min(MAX_BYTES);
            // SAFETY: the bytes above the stack pointer are the stack's own, which this thread alone uses; the room has
            // `MAX_BYTES`.
            unsafe { ptr::copy_nonoverlapping(ptr::with_exposed_provenance::<u8>(at), answer.room, bytes) };
            answer.interrupted = Some((registers, bytes));
        }
    }
    // Release pairs with the acquire of the asking thread.
    STATE.store(WRITTEN, Release);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU32};
    use std::{hint, thread};

    extern "C" fn on_signal_of_program(_: libc::c_int) {}

    fn set(handler: libc::sighandler_t) {
        let mut action = exchange(None).unwrap();
        action.sa_sigaction = handler;
        action.sa_flags = 0;
        exchange(Some(&action)).unwrap();
    }

    fn current() -> libc::sighandler_t {
        exchange(None).unwrap().sa_sigaction
    }

    #[test]
    fn a_handler_that_the_program_sets_during_a_question_stays() {
        let _turn = TURN.lock();
        let own = on_signal_of_program as *const () as libc::sighandler_t;
        let (asked, is_done) = (AtomicU32::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Relaxed) {
                    drop(Handled::begin());
                    asked.fetch_add(1, Relaxed);
                }
            });
            let mut lost = 0;
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(300) {
                set(own);
                // The question that was open has ended by the second one after it.
                let before = asked.load(Relaxed);
                while asked.load(Relaxed).wrapping_sub(before) < 2 {
                    hint::spin_loop();
                }
                lost += u32::from(current() != own);
                set(libc::SIG_DFL);
            }
            is_done.store(true, Relaxed);
            assert_eq!(lost, 0, "handlers were replaced");
        });
        set(libc::SIG_DFL);
    }

    #[test]
    fn a_handler_that_a_fork_or_the_program_has_kept_is_no_handler_of_the_program() {
        let _turn = TURN.lock();
        set(handler());
        assert!(Handled::begin().is_ok());
        assert_eq!(current(), libc::SIG_DFL);
    }

    #[test]
    fn a_turn_that_never_ends_keeps_no_watch() {
        let _turn = TURN.lock();
        let asked = thread::scope(|scope| scope.spawn(|| backtrace(&Post::new(0), 1)).join().unwrap());
        assert_eq!(asked.err(), Some(NoBacktrace::NoAnswer));
    }
}
