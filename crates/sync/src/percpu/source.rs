//! Which area is asked for: the C library's, unless it has none or somebody wishes otherwise.

use super::arch;

/// Overrides the choice, for tests and for measuring: `libc`, `own` or `off`.
const VARIABLE: &str = "MILLSTREAM_RSEQ";

/// The offset of the area that the C library registered for each thread.
pub(super) fn libc_offset() -> Option<isize> {
    if wished("own") || wished("off") {
        return None;
    }
    let (offset, size) = arch::libc_symbols()?;
    // SAFETY: glibc's constants, set before anything else runs.
    unsafe { (*size != 0).then(|| *offset) }
}

/// Whether a thread may register an area itself.
pub(super) fn may_register() -> bool {
    !wished("libc") && !wished("off")
}

fn wished(what: &str) -> bool {
    std::env::var_os(VARIABLE).is_some_and(|wish| wish == what)
}
