//! Handles the signals that ask a run to end.
//!
//! The first signal stops admission; the second abandons the units in flight. A separate thread does both, and waits
//! for nothing but signals. The main loop gets an event for each signal. Within a second after the second signal, it
//! stops waiting for stages that have not ended. If the main loop itself is blocked, for example by a stopped terminal,
//! the process ends after five seconds ([`end_soon`]).
//!
//! Once the main loop has ended, signals have their default effect again, because writing the report may block on a
//! pager that does not read.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use millstream_command::program::live;
use millstream_command::signals::{self, end_soon};
use millstream_flow::Control;
use millstream_runner::leftovers;
use signal_hook::flag;
use signal_hook::iterator::Signals;

use super::ending::INTERRUPTED;
use super::watch::Event;
use crate::dead_letters::DeadLetters;
use crate::steer::SocketFile;

/// Handles the signals until this is dropped.
#[derive(Debug)]
pub(super) struct Interrupts {
    over: Arc<AtomicBool>,
    socket: Arc<Mutex<Option<SocketFile>>>,
}

impl Interrupts {
    /// Begins to handle signals. Sends an event for each signal to `events`.
    ///
    /// # Errors
    /// The system refuses a signal handler or a thread.
    pub(super) fn heed(events: Sender<Event>, control: Control, letters: Arc<DeadLetters>) -> io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        // A signal that was ignored at the start of the process stays ignored. The other signals must be listed before
        // handlers are set, because a signal with a handler is not ignored any more.
        let ending: Vec<_> = signals::ending().collect();
        // The receiver exists before the handlers, so that no signal is lost.
        let mut signals = Signals::new(&ending)?;
        for &signal in &ending {
            flag::register_conditional_default(signal, Arc::clone(&over))?;
        }
        let socket = Arc::new(Mutex::new(None));
        let (to_remove, is_over) = (Arc::clone(&socket), Arc::clone(&over));
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let mut signals = signals.forever();
            if signals.next().is_none() {
                return;
            }
            // The event is sent first: after `stop`, the flow may end before an event could be sent.
            let _ = events.send(Event::Stopped(Box::new(control.snapshot())));
            control.stop();
            if signals.next().is_none() {
                return;
            }
            let _ = events.send(Event::Abandoned(Box::new(control.snapshot())));
            control.abandon();
            letters.give_up();
            end_soon(INTERRUPTED, &is_over, move || clean_up(&to_remove));
        })?;
        Ok(Self { over, socket })
    }

    /// Adds a socket that is removed if the process has to end early.
    pub(super) fn remove(&self, socket: SocketFile) {
        *self.socket.lock().unwrap_or_else(PoisonError::into_inner) = Some(socket);
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
    }
}

/// Kills the programs that still run, and removes the socket and the temporary files, as the end of the run would have
/// done.
fn clean_up(socket: &Mutex<Option<SocketFile>>) {
    live::end();
    if let Some(socket) = socket.lock().unwrap_or_else(PoisonError::into_inner).take() {
        socket.remove();
    }
    leftovers::remove_own();
}
