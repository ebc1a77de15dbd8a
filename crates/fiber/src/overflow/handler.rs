//! The handler for `SIGSEGV`.

use std::ffi::c_void;
use std::mem;
use std::ptr;
use std::sync::OnceLock;

use super::text::Text;
use crate::scheduler::core::Core;
use crate::scheduler::local::Local;

/// The action for `SIGSEGV` that was installed before this crate's handler.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

type Detailed = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut c_void);
type Plain = extern "C" fn(libc::c_int);

/// Installs the handler, once in the life of the process. If the kernel refuses, an overflow still ends the process,
/// but without a report.
pub(crate) fn install() {
    BEFORE.get_or_init(|| {
        // SAFETY: zeros are valid values of both structures, which the calls read and fill. The handler has the
        // signature that `SA_SIGINFO` asks for, and is async-signal-safe. `BEFORE` is empty until this closure has returned, so
        // until then a fault on another thread gets the default action.
        unsafe {
            let mut before: libc::sigaction = mem::zeroed();
            let mut own: libc::sigaction = mem::zeroed();
            own.sa_sigaction = on_fault as *const () as usize;
            own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut own.sa_mask);
            libc::sigaction(libc::SIGSEGV, &raw const own, &raw mut before);
            before
        }
    });
}

extern "C" fn on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid structure.
    let code = unsafe { (*info).si_code };
    // A positive code means a fault. A signal sent by a process has no address.
    if code > 0 {
        // SAFETY: a fault has an address.
        let address = unsafe { (*info).si_addr() } as usize;
        if let Some((fiber, setting)) = Local::current_for_signal() {
            // SAFETY: the fiber runs on this thread, so it is alive until the handler returns.
            report_overflow(unsafe { &*fiber }, setting, address);
        }
    }
    pass_on(signal, code, info, context);
}

/// Reports an overflow and aborts the process if the address is in the fiber's guard.
fn report_overflow(fiber: &Core, setting: &str, address: usize) {
    let Some([limit, floor, top]) = fiber.state.stack() else { return };
    if !(limit..floor).contains(&address) {
        return;
    }
    let bytes = (top - floor) as u64;
    let text = match &fiber.name {
        Some(name) => Text::new().add("\nfiber `").add(clipped(name)).add("` (#").add_number(fiber.id).add(")"),
        None => Text::new().add("\nfiber #").add_number(fiber.id),
    };
    let text = match fiber.unit() {
        Some(unit) => text.add(", which served unit ").add_number(unit).add(","),
        None => text,
    };
    let text = text.add(" overflowed its stack of ").add_number(bytes).add(" bytes; ");
    advise(text, clipped(setting), bytes * 2)
        .add(", or use less of it: recurse less, keep large values on the heap\n")
        .write();
    // SAFETY: ends the process; async-signal-safe.
    unsafe { libc::abort() };
}

/// Appends the advice, with the size to set in place of `{bytes}` and `{KiB}`.
fn advise(mut text: Text, advice: &str, bytes: u64) -> Text {
    for (n, part) in advice.split('{').enumerate() {
        text = match (n, part.strip_prefix("bytes}"), part.strip_prefix("KiB}")) {
            (0, ..) => text.add(part),
            (_, Some(rest), _) => text.add_number(bytes).add(rest),
            (_, _, Some(rest)) => text.add_number(bytes / 1024).add(rest),
            _ => text.add("{").add(part),
        };
    }
    text
}

/// Cuts a long name, so that the report has room for everything else.
fn clipped(name: &str) -> &str {
    const MAX_NAME: usize = 128;
    if name.len() <= MAX_NAME {
        return name;
    }
    let mut end = MAX_NAME;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// Passes the signal on to the previous handler.
fn pass_on(signal: libc::c_int, code: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let before = BEFORE.get();
    match before.map_or(libc::SIG_DFL, |before| before.sa_sigaction) {
        // Ignoring a fault is the same as the default action: the kernel ends the process.
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: zeros, with the default action, are a valid structure. The instruction that faulted runs again
            // when the handler returns, and the default action ends the process. A signal sent by a process would not occur
            // again, so the handler raises it; it stays blocked until the handler returns.
            unsafe {
                let default: libc::sigaction = mem::zeroed();
                libc::sigaction(signal, &raw const default, ptr::null_mut());
                if code <= 0 {
                    libc::raise(signal);
                }
            }
        }
        handler if before.is_some_and(|before| before.sa_flags & libc::SA_SIGINFO != 0) => {
            // SAFETY: the action was installed with `SA_SIGINFO`, so its handler has this signature.
            let handler = unsafe { mem::transmute::<usize, Detailed>(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: the action was installed without `SA_SIGINFO`, so its handler has this signature.
            let handler = unsafe { mem::transmute::<usize, Plain>(handler) };
            handler(signal);
        }
    }
}
