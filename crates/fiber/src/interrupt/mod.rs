//! The backtrace of a fiber that keeps its worker busy, captured by another thread.
//!
//! The asking thread sends a signal to the worker's thread; this is a *question*, and only one is open at a time. The signal
//! handler copies the registers and the fiber's stack, which is the *answer*. The worker then continues, while the asking thread
//! unwinds the copy. The handler therefore takes no lock, allocates nothing, and needs no debug or unwind information.
//!
//! The signal is `SIGURG`, which is ignored by default, so a signal that arrives after the question has ended does no harm. The
//! action of the signal is changed only while a question is open, and only if the program does not handle the signal itself.

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

/// The maximum number of bytes copied from a stack, beginning with the innermost frame.
const MAX_BYTES: usize = 64 << 10;

/// The maximum time to wait for an answer. There may be none: the worker's thread may not run, or may block the signal.
const LIMIT: Duration = Duration::from_millis(20);

/// The pause between two checks for the answer.
const CHECK_INTERVAL: Duration = Duration::from_micros(20);

/// The state of the question: `NONE`, the address of the post of the worker that is asked, `WRITING` or `WRITTEN`.
static STATE: AtomicUsize = AtomicUsize::new(NONE);
const NONE: usize = 0;
/// The handler is writing the answer.
const WRITING: usize = 1;
/// The answer is complete.
const WRITTEN: usize = 2;

/// A lock that the asking thread holds while its question is open.
static TURN: Mutex<()> = Mutex::new(());

/// The maximum time that a thread waits to lock `TURN`. It covers several questions that get no answer.
const LIMIT_OF_TURN: Duration = Duration::from_millis(200);

/// The answer to the question. While `STATE` is an address, no thread uses the answer. The handler owns it while `STATE` is
/// `WRITING`, and the thread that has locked `TURN` owns it in the other two states.
static ANSWER: Shared = Shared(UnsafeCell::new(Answer { fiber: 0, interrupted: None, room: ptr::null_mut() }));

struct Shared(UnsafeCell<Answer>);

// SAFETY: `STATE` determines which thread may use the answer.
unsafe impl Sync for Shared {}

struct Answer {
    /// The number of the interrupted fiber, or 0 if no fiber ran.
    fiber: u64,
    /// The registers, and the number of bytes copied from the stack pointer upwards; `None` if the thread was not on the
    /// fiber's stack.
    interrupted: Option<(Registers, usize)>,
    /// A buffer of `MAX_BYTES` bytes for the copy of the stack.
    room: *mut u8,
}

/// Returns the backtrace of the fiber that the worker runs, if that is `fiber`.
pub(crate) fn backtrace(post: &Post, fiber: u64) -> Result<Backtrace, NoBacktrace> {
    if !registers::ARE_KNOWN {
        return Err(NoBacktrace::Unsupported);
    }
    // The wait is limited because `TURN` may stay locked forever, for example in a process that was forked while another thread
    // held it.
    let Some(_turn) = TURN.try_lock_for(LIMIT_OF_TURN) else { return Err(NoBacktrace::NoAnswer) };
    let mut room = vec![0_u8; MAX_BYTES];
    // SAFETY: no question is open, so the answer belongs to this thread.
    unsafe { *ANSWER.0.get() = Answer { fiber: 0, interrupted: None, room: room.as_mut_ptr() } };
    let handled = Handled::begin()?;
    // Release pairs with the handler's acquire: the handler sees the buffer.
    STATE.store(ptr::from_ref(post).addr(), Release);
    let sent = send(post.thread());
    let is_answered = sent.is_ok() && wait();
    // Without an answer, this thread withdraws the question. If that fails, the handler has begun to write. The handler never
    // blocks, so the answer will be complete soon.
    if !is_answered && STATE.compare_exchange(ptr::from_ref(post).addr(), NONE, Relaxed, Relaxed).is_ok() {
        return Err(sent.err().unwrap_or(NoBacktrace::NoAnswer));
    }
    // Acquire pairs with the handler's release.
    while STATE.load(Acquire) != WRITTEN {
        std::thread::sleep(CHECK_INTERVAL);
    }
    STATE.store(NONE, Relaxed);
    drop(handled);
    // SAFETY: the answer is complete, so it belongs to this thread.
    let answer = unsafe { &mut *ANSWER.0.get() };
    match answer.interrupted.take() {
        Some((registers, bytes)) if answer.fiber == fiber => {
            Ok(Backtrace::of(unwind::unwind(registers, &room[..bytes])))
        }
        _ => Err(NoBacktrace::Left),
    }
}

/// Waits for the answer. Returns `false` if it is not complete in time.
fn wait() -> bool {
    let began = Instant::now();
    while began.elapsed() < LIMIT {
        // Relaxed: the caller loads the state again, with acquire.
        if STATE.load(Relaxed) == WRITTEN {
            return true;
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
    false
}

fn send(thread: libc::pid_t) -> Result<(), NoBacktrace> {
    // SAFETY: the call takes no pointer. It sends a signal to a thread of this process, and fails if that thread has exited.
    match unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, SIGNAL) } {
        0 => Ok(()),
        _ => Err(refused()),
    }
}

fn refused() -> NoBacktrace {
    NoBacktrace::Refused { os_error: io::Error::last_os_error().raw_os_error().unwrap_or(0) }
}

/// A guard: as long as it exists, the signal's action is this module's handler.
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
            // `SA_RESTART`: the kernel restarts an interrupted system call, if it is of a kind that can be restarted.
            own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigfillset(&raw mut own.sa_mask);
            own
        };
        // The action is checked before it is replaced: if the program has a handler, it must not miss a signal.
        if is_of_program(&exchange(None)?) {
            return Err(NoBacktrace::SignalTaken);
        }
        let mut before = exchange(Some(&own))?;
        if is_of_program(&before) {
            // The program has installed a handler since the check. Restore that handler.
            exchange(Some(&before))?;
            return Err(NoBacktrace::SignalTaken);
        }
        if before.sa_sigaction == handler() {
            // This module's own handler was installed already. The process may be a fork made while a question was open, or the
            // program may have saved this handler as the previous action and restored it.
            before.sa_sigaction = libc::SIG_DFL;
        }
        Ok(Handled { before })
    }
}

impl Drop for Handled {
    /// Restores the previous action, unless the program has installed its own handler meanwhile.
    fn drop(&mut self) {
        let is_own = |action: libc::sigaction| action.sa_sigaction == handler();
        if exchange(None).is_ok_and(is_own)
            && let Ok(replaced) = exchange(Some(&self.before))
            && is_of_program(&replaced)
        {
            // The program has installed a handler since the check. Restore that handler.
            let _ = exchange(Some(&replaced));
        }
    }
}

/// Returns whether this action is a handler of the program.
fn is_of_program(action: &libc::sigaction) -> bool {
    ![libc::SIG_DFL, libc::SIG_IGN, handler()].contains(&action.sa_sigaction)
}

/// Sets the signal's action, or leaves it unchanged if `action` is `None`. Returns the previous action.
fn exchange(action: Option<&libc::sigaction>) -> Result<libc::sigaction, NoBacktrace> {
    // SAFETY: zeros are a valid value of the structure, which the call fills. The new action is valid: it comes from `begin` or
    // from an earlier call.
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
    // Fails if no question is open, or if another worker is asked. Acquire pairs with the release of the asking thread.
    if STATE.compare_exchange(post.addr(), WRITING, Acquire, Relaxed).is_err() {
        return;
    }
    // SAFETY: the answer belongs to this handler until it stores `WRITTEN`.
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
            // SAFETY: the bytes from the stack pointer to the top are in the fiber's stack, which only this thread uses. The
            // buffer has `MAX_BYTES` bytes.
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
                // Wait for two more questions: by then the question that was open here has ended.
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
