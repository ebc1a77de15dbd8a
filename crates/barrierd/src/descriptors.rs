//! The limit on the daemon's open descriptors.

use std::io;

/// The number of descriptors that the daemon needs in addition to those of its connections.
const OTHERS: u64 = 64;

/// Raises the limit on open descriptors so that it suffices for `connections` connections, as far as the hard limit permits.
/// Returns the number of connections that the new limit allows.
///
/// A connection needs one descriptor for its socket. Until the client has received its greeting, two more descriptors are in
/// flight; the kernel applies the same limit to the number of descriptors in flight.
pub(crate) fn room_for(connections: usize) -> io::Result<usize> {
    let needed = 2 * connections as u64 + OTHERS;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a local variable of the type that the call writes.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur < needed {
        limit.rlim_cur = needed.min(limit.rlim_max);
        // SAFETY: `limit` is a local variable, which outlives the call.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok((limit.rlim_cur.saturating_sub(OTHERS) / 2).min(connections as u64) as usize)
}
