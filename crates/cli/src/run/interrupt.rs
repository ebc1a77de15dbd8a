//! SIGINT and SIGTERM while a flow runs.
//!
//! Each becomes an event of the main loop, which decides what the first and the second mean. Once the loop is over
//! (the report may wait for a pager that does not read), the signals mean again what they mean to every program.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use super::watch::Event;

/// Sends interrupts as events until it is dropped.
#[derive(Debug)]
pub(super) struct Interrupts {
    over: Arc<AtomicBool>,
}

impl Interrupts {
    /// Begins to send each SIGINT and SIGTERM to `events`.
    ///
    /// # Errors
    /// The system refuses a handler or a thread.
    pub(super) fn forward(events: Sender<Event>) -> io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // Handlers run in the order they were registered in: this one ends the process if the loop is over.
            flag::register_conditional_default(signal, Arc::clone(&over))?;
        }
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for _ in signals.forever() {
                if events.send(Event::Interrupt).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { over })
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
    }
}
