//! How many descriptors the daemon may have open.

use std::io;

/// For anything but connections.
const OTHERS: u64 = 64;

/// Raises the limit to what so many connections need, if it may be; for how many the limit is then.
///
/// A connection needs its socket, and two descriptors that are on their way until the client takes its greeting: the kernel limits these by the
/// same number.
pub(crate) fn room_for(connections: usize) -> io::Result<usize> {
    let needed = 2 * connections as u64 + OTHERS;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: room for the limits.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur < needed {
        limit.rlim_cur = needed.min(limit.rlim_max);
        // SAFETY: the limits live through the call.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok((limit.rlim_cur.saturating_sub(OTHERS) / 2).min(connections as u64) as usize)
}
