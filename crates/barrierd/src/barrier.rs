//! The kernel's own barrier on all processors, made by a thread on behalf of all waiting clients.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use millstream_fence::barrierd::View;

use crate::event::Event;
use crate::statement::new_moment;

/// The thread that makes barriers.
#[derive(Debug)]
pub(crate) struct Barrier {
    ask: SyncSender<()>,
    busy: Arc<AtomicBool>,
    done: Arc<Event>,
}

impl Barrier {
    /// Starts the thread; the error says why this kernel refuses such a barrier.
    pub(crate) fn start(view: &Arc<View>) -> io::Result<Barrier> {
        membarrier()?;
        let (ask, asked) = sync_channel(1);
        let (ready, is_ready) = sync_channel(1);
        let (busy, done) = (Arc::new(AtomicBool::new(false)), Arc::new(Event::new()?));
        let (view, is_busy, is_done) = (Arc::clone(view), Arc::clone(&busy), Arc::clone(&done));
        let serve = move || {
            // The system calls at the start of a thread are not among those that the daemon may make later.
            let _ = ready.send(());
            while asked.recv().is_ok() {
                pass_all(&view, membarrier);
                // Relaxed: at worst the next request is made at the next check.
                is_busy.store(false, Ordering::Relaxed);
                is_done.ring();
            }
        };
        thread::Builder::new().name("barrier".to_owned()).stack_size(64 << 10).spawn(serve)?;
        is_ready.recv().map_err(io::Error::other)?;
        Ok(Barrier { ask, busy, done })
    }

    /// Asks for a barrier that begins after this call, unless one is under way.
    pub(crate) fn ask(&self) {
        if !self.busy.swap(true, Ordering::Relaxed) {
            // The channel has room: only the caller that finds the thread idle asks.
            let _ = self.ask.try_send(());
        }
    }

    /// Clears the event once the descriptor is readable.
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

/// Has all processors pass a barrier, and states that they passed it after a moment drawn beforehand.
fn pass_all(view: &View, barrier: impl FnOnce() -> io::Result<()>) {
    let moment = new_moment(view);
    // A refusal counts as a barrier that never ends; the other fallback continues.
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
