//! The daemon's own statements about processors, beside those of the program.

use std::sync::atomic::{Ordering, fence};

use millstream_fence::barrierd::View;
use millstream_fence::barrierd::layout::SOURCE_NONE;

use crate::clock::monotonic_ns;
use crate::processors::{self, Online};

/// A processor without an event for this time may be offline. Checking its events costs nothing; reading the list of
/// online processors costs a system call.
const QUIET_NS: u64 = 10_000_000;

/// A moment, in both times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) time: u64,
    pub(crate) virtual_time: u64,
}

/// A moment that comes after every read, by any client, of a smaller virtual time.
///
/// A fact found after this call may be stated for this moment: a client that read a smaller virtual time did so before
/// the counter had this value, so its writes before its full fence are visible to all code after this function's fence.
/// If the program advances the counter, reading it suffices; otherwise this function advances it.
pub(crate) fn new_moment(view: &View) -> Moment {
    let time = monotonic_ns();
    let virtual_now = &view.times().virtual_now;
    let virtual_time = match view.page().source {
        SOURCE_NONE => virtual_now.fetch_add(1, Ordering::SeqCst) + 1,
        _ => virtual_now.load(Ordering::Acquire),
    };
    fence(Ordering::SeqCst);
    Moment { time, virtual_time }
}

/// States that a processor passed a full barrier after a moment. Only one thread calls it; an older moment changes
/// nothing.
pub(crate) fn state(view: &View, cpu: usize, moment: Moment) {
    let entry = view.page_cpu(cpu);
    if moment.virtual_time > entry.virtual_time.load(Ordering::Relaxed) {
        // Release: accesses that ran there before are visible to a client that reads the time.
        entry.time.store(moment.time, Ordering::Release);
        entry.virtual_time.store(moment.virtual_time, Ordering::Release);
    }
}

/// Looks for wanted processors that need no waiting, and states their passing: the daemon's own, idle ones, offline
/// ones.
///
/// *Idle.* The program clears the mark before the full barriers that precede everything else that runs there. The
/// daemon reads the mark after its full fence. If it is still set, all code that will run there comes after those
/// barriers, which come after the moment. And the mark was set after barriers, so all accesses that had run there are
/// visible. The program certainly runs when the processor leaves idleness, because the kernel keeps it attached as long
/// as this daemon lives.
///
/// *Offline.* No code runs there. When the processor comes back, code starts there with a switch, which is a full
/// barrier.
pub(crate) fn state_of_quiet(view: &View, wanted: &[u64], online: Option<&Online>) {
    let moment = new_moment(view);
    let is_wanted = |cpu: usize| wanted[cpu] != 0;
    if let Some(here) = processors::here().filter(|cpu| *cpu < view.cpus()) {
        state(view, here, moment);
    }
    let mut silent = false;
    for cpu in (0..view.cpus()).filter(|cpu| is_wanted(*cpu)) {
        let entry = view.times_cpu(cpu);
        if entry.idle.load(Ordering::Acquire) != 0 {
            state(view, cpu, moment);
        } else if view.time(cpu) + QUIET_NS < moment.time {
            silent = true;
        }
    }
    if let (true, Some(online)) = (silent, online) {
        // An unreadable list proves nothing, so the clients keep waiting for these processors.
        let Ok(online) = online.look(view.cpus()) else { return };
        for cpu in (0..view.cpus()).filter(|cpu| is_wanted(*cpu) && !online[*cpu]) {
            state(view, cpu, moment);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use millstream_fence::barrierd::Access;
    use millstream_fence::barrierd::layout::{page_bytes, times_bytes};

    use super::*;

    #[test]
    fn a_silent_processor_is_stated_if_the_list_says_that_it_is_offline() {
        // Two processors more than exist, so that this thread runs on neither.
        let cpus = processors::possible().unwrap() + 2;
        let (online, offline) = (cpus - 2, cpus - 1);
        let [page, times] = [page_bytes(cpus), times_bytes(cpus)].map(|bytes| {
            let file = tempfile::tempfile().unwrap();
            file.set_len(bytes as u64).unwrap();
            file
        });
        // SAFETY: both files are as long as the layout requires, and no process shortens them.
        let view = unsafe { View::map((page.as_fd(), Access::Write), (times.as_fd(), Access::Write), cpus) }.unwrap();
        let mut list = tempfile::tempfile().unwrap();
        write!(list, "0-{online}").unwrap();
        state_of_quiet(&view, &vec![1; cpus], Some(&Online::of(list)));
        assert!(view.virtual_time(offline) > 0);
        assert_eq!(view.virtual_time(online), 0, "it may run something");
    }
}
