//! The limit on the daemon's open descriptors.

use std::io;

/// Descriptors for anything but connections.
const OTHERS: u64 = 64;

/// Raises the limit for `connections` connections, as far as the hard limit permits; returns the number of connections
/// for which the limit suffices then.
///
/// A connection needs its socket and, until the client takes its greeting, two descriptors in flight, to whose number
/// the kernel applies the same limit.
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
