//! The daemon's own statements about processors, in addition to those of the program.

use std::sync::atomic::{Ordering, fence};

use millstream_fence::barrierd::View;
use millstream_fence::barrierd::layout::SOURCE_NONE;

use crate::clock::monotonic_ns;
use crate::processors::{self, Online};

/// A processor without an event for this time may be offline. This is checked first, because it is free, whereas reading the list
/// of online processors costs a system call.
const QUIET_NS: u64 = 10_000_000;

/// A moment, in virtual time and in real time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) time: u64,
    pub(crate) virtual_time: u64,
}

/// Returns a moment that comes after every reading, by any client, of a smaller virtual time.
///
/// If the daemon finds after this call that a processor passes, it may state this for the returned moment. A client that has read
/// a smaller virtual time did so before the counter had this value, so everything it wrote before its full fence is visible to
/// all code after this function's fence. If the program advances the counter, it is enough to read the counter; otherwise this
/// function advances it.
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

/// States on the page that a processor passed a full barrier after this moment. If a later moment was stated for the processor
/// already, nothing changes. Only one thread may call this function.
pub(crate) fn state(view: &View, cpu: usize, moment: Moment) {
    let entry = view.page_cpu(cpu);
    if moment.virtual_time > entry.virtual_time.load(Ordering::Relaxed) {
        // Release: a client that reads this time sees everything that the processor did before the barrier.
        entry.time.store(moment.time, Ordering::Release);
        entry.virtual_time.store(moment.virtual_time, Ordering::Release);
    }
}

/// For each wanted processor that is idle, is offline or runs the daemon, states that it has passed, because the daemon need not
/// wait for it.
///
/// *Idle.* When a processor leaves idleness, the program first clears the mark `idle`, then passes its full barriers; all other
/// code runs after them. The daemon reads the mark after its own full fence. If the mark is still set, all code that will run on
/// the processor comes after barriers that come after the moment. The mark was set after barriers, so all earlier accesses of the
/// processor are visible. The program is certain to run when the processor leaves idleness, because the kernel keeps it attached
/// as long as this daemon exists.
///
/// *Offline.* No code runs on the processor. When it comes back, code starts there with a switch, which is a full barrier.
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
        // If the list cannot be read, the page stays unchanged, and the clients continue to wait for these processors.
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
        // The test's view has two processors more than the machine, so this thread cannot run on those two.
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
