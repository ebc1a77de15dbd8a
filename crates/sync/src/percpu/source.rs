//! The choice of the area: the C library's, unless it has none or the environment overrides the choice.

use super::arch;

/// The environment variable that overrides the choice, for tests and for measurements: `libc`, `own` or `off`.
const VARIABLE: &str = "MILLSTREAM_RSEQ";

/// The offset of the area that the C library registered for each thread.
pub(super) fn libc_offset() -> Option<isize> {
    if wished("own") || wished("off") {
        return None;
    }
    let (offset, size) = arch::libc_symbols()?;
    // SAFETY: these are glibc's constants, which are set before any other code runs.
    unsafe { (*size != 0).then(|| *offset) }
}

/// Whether a thread may register an area itself.
pub(super) fn may_register() -> bool {
    !wished("libc") && !wished("off")
}

fn wished(what: &str) -> bool {
    std::env::var_os(VARIABLE).is_some_and(|wish| wish == what)
}
