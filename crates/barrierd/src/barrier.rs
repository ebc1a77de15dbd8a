//! The kernel's own barrier on all processors. A thread of the daemon issues it on behalf of all waiting clients.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use millstream_fence::barrierd::View;

use crate::event::Event;
use crate::statement::new_moment;

/// A thread that issues barriers. Its descriptor is readable when a barrier has ended.
#[derive(Debug)]
pub(crate) struct Barrier {
    ask: SyncSender<()>,
    busy: Arc<AtomicBool>,
    done: Arc<Event>,
}

impl Barrier {
    /// Starts the thread. The error says why the kernel refuses to issue a barrier.
    pub(crate) fn start(view: &Arc<View>) -> io::Result<Barrier> {
        membarrier()?;
        let (ask, asked) = sync_channel(1);
        let (ready, is_ready) = sync_channel(1);
        let (busy, done) = (Arc::new(AtomicBool::new(false)), Arc::new(Event::new()?));
        let (view, is_busy, is_done) = (Arc::clone(view), Arc::clone(&busy), Arc::clone(&done));
        let serve = move || {
            // Signals that the thread has started. `start` waits for this, because the seccomp filter will forbid the system
            // calls that start a thread.
            let _ = ready.send(());
            while asked.recv().is_ok() {
                pass_all(&view, membarrier);
                // Relaxed: if the daemon's loop sees this store late, `ask` does nothing this time, and the next check of the
                // loop makes the request.
                is_busy.store(false, Ordering::Relaxed);
                is_done.ring();
            }
        };
        thread::Builder::new().name("barrier".to_owned()).stack_size(64 << 10).spawn(serve)?;
        is_ready.recv().map_err(io::Error::other)?;
        Ok(Barrier { ask, busy, done })
    }

    /// Requests a barrier that begins after this call. Does nothing if an earlier barrier has not ended yet.
    pub(crate) fn ask(&self) {
        if !self.busy.swap(true, Ordering::Relaxed) {
            // The channel has room, because a request is made only if the thread is idle.
            let _ = self.ask.try_send(());
        }
    }

    /// Clears the event that reports the end of a barrier. The caller calls this when the descriptor has become readable. The
    /// descriptor becomes readable again when the next barrier has ended.
    pub(crate) fn clear(&self) {
        self.done.clear();
    }
}

impl AsFd for Barrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let descriptor: &OwnedFd = self.done.descriptor();
        descriptor.as_fd()
    }
}

/// Reads the virtual time and the clock, makes all processors pass a barrier, and states on the page that they have passed one
/// after these times.
fn pass_all(view: &View, barrier: impl FnOnce() -> io::Result<()>) {
    let moment = new_moment(view);
    // If the kernel refuses the barrier, the page stays unchanged, and only the other fallback can help.
    if barrier().is_ok() {
        view.page().all_time.store(moment.time, Ordering::Release);
        view.page().all_virtual.store(moment.virtual_time, Ordering::Release);
    }
}

fn membarrier() -> io::Result<()> {
    // SAFETY: membarrier takes integers and accesses no memory of this process.
    let outcome = unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use millstream_fence::barrierd::Access;
    use millstream_fence::barrierd::layout::{page_bytes, times_bytes};

    use super::*;

    #[test]
    fn a_barrier_is_stated_for_a_moment_before_it() {
        let [page, times] = [page_bytes(1), times_bytes(1)].map(|bytes| {
            let file = tempfile::tempfile().unwrap();
            file.set_len(bytes as u64).unwrap();
            file
        });
        // SAFETY: both files are as long as the layout requires, and no process shortens them.
        let view = unsafe { View::map((page.as_fd(), Access::Write), (times.as_fd(), Access::Write), 1) }.unwrap();
        let stated = || (view.time(0), view.virtual_time(0));

        pass_all(&view, || Err(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(stated(), (0, 0), "a refused barrier states nothing");

        let mut within = None;
        pass_all(&view, || {
            assert_eq!(stated(), (0, 0), "nor does one that is under way");
            within = Some(new_moment(&view));
            Ok(())
        });
        let within = within.unwrap();
        assert!(view.virtual_time(0) > 0 && view.virtual_time(0) < within.virtual_time, "{within:?}, {:?}", stated());
        assert!(view.time(0) > 0 && view.time(0) <= within.time, "{within:?}, {:?}", stated());
    }
}
