//! The terminal. The command uses the whole screen, and restores the terminal whenever it ends or stops.
//!
//! | event | what restores the terminal |
//! | --- | --- |
//! | `q`, ^C (a key in raw mode) | the drop of [`Tty`] |
//! | SIGINT, SIGTERM, SIGHUP, SIGQUIT | a flag that [`Tty::next`] checks ten times a second |
//! | ^Z (a key), SIGTSTP | [`Tty::suspend`], which sets it up again after SIGCONT |
//! | a panic, on any thread | a panic hook, before the panic is reported |
//! | an error of the terminal | the drop of [`Tty`] |
//!
//! The command cannot restore the terminal after SIGKILL or SIGSTOP. The user can do that with `reset`.

use std::io::{self, Stdout, Write};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use libc::SIGTSTP;
use millstream_command::signals;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::crossterm::{execute, queue};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::stdio;
use rustix::termios::isatty;
use rustix::time::Timespec;
use signal_hook::{flag, low_level};

/// Whether the command is using the terminal. [`give_back`] clears this, and only its first caller restores the
/// terminal.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Waits at most `most` for keys. Returns whether the terminal still exists.
///
/// A command outside the terminal's session gets no signal when the terminal disappears. The library for keys would
/// then read end-of-file forever, so it is called only while the terminal exists.
fn is_there(most: Duration) -> bool {
    let most = Timespec::try_from(most).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 0 });
    let keys = isatty(stdio::stdin()).then(|| PollFd::from_borrowed_fd(stdio::stdin(), PollFlags::IN));
    let screen = PollFd::from_borrowed_fd(stdio::stdout(), PollFlags::empty());
    let mut ends: Vec<PollFd<'_>> = keys.into_iter().chain([screen]).collect();
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    // If a signal ends the wait, the caller checks for the signal.
    poll(&mut ends, Some(&most)).is_err() || !ends.iter().any(|end| end.revents().intersects(gone))
}

/// The terminal while the command uses it.
pub(super) struct Tty {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// Whether a signal has asked the command to end.
    ends: Arc<AtomicBool>,
    /// Whether a signal has asked the command to suspend.
    stops: Arc<AtomicBool>,
}

/// The result of a wait.
pub(super) enum Told {
    Event(Event),
    Nothing,
    /// The command was suspended and has resumed.
    Resumed,
    /// The command must end.
    End,
}

impl Tty {
    /// Switches the terminal to raw mode and to a screen of its own.
    ///
    /// # Errors
    /// Returns errors of the terminal or of installing a signal handler.
    pub(super) fn take() -> io::Result<Self> {
        let (ends, stops) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        for signal in signals::ending() {
            flag::register(signal, Arc::clone(&ends))?;
        }
        if !signals::is_ignored(SIGTSTP) {
            flag::register(SIGTSTP, Arc::clone(&stops))?;
        }
        let told = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            give_back();
            told(panic);
        }));
        // The value is created before `enter` is called, so that its drop restores the terminal if `enter` fails.
        let tty = Self { terminal: Terminal::new(backend())?, ends, stops };
        enter()?;
        Ok(tty)
    }

    /// Draws a frame, and writes only the cells that changed.
    ///
    /// # Errors
    /// Returns errors of the terminal.
    pub(super) fn draw(&mut self, picture: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        self.terminal.draw(|frame| picture(frame.buffer_mut())).map(drop)
    }

    /// Waits for a key, a new size or a signal, for at most `most`.
    ///
    /// # Errors
    /// Returns errors of the terminal.
    pub(super) fn next(&mut self, most: Duration) -> io::Result<Told> {
        if self.stops.swap(false, Ordering::SeqCst) {
            self.suspend()?;
            return Ok(Told::Resumed);
        }
        // SeqCst, like the store in the handler: the cost does not matter for ten loads a second.
        if self.ends.load(Ordering::SeqCst) {
            return Ok(Told::End);
        }
        // If standard input is not a terminal, a key does not end this wait, and `event::poll` finds the key later.
        if !is_there(most) {
            return Ok(Told::End);
        }
        match event::poll(Duration::ZERO) {
            Ok(true) => event::read().map(Told::Event),
            Ok(false) => Ok(Told::Nothing),
            // A signal ended the wait. The next call checks for the signal.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Told::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Restores the terminal and stops the process, as ^Z does. Sets up the terminal again when the process resumes.
    ///
    /// # Errors
    /// Returns errors of the terminal.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        give_back();
        low_level::emulate_default_handler(SIGTSTP)?;
        enter()?;
        // Meanwhile, other programs have written to the screen, so it must be drawn from scratch. A new `Terminal` does
        // that without a query. `clear` would query the cursor position, which not every terminal reports.
        self.terminal = Terminal::new(backend())?;
        Ok(())
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        give_back();
    }
}

#[expect(clippy::disallowed_methods, reason = "the screen's text is shown before it is drawn")]
fn backend() -> CrosstermBackend<Stdout> {
    CrosstermBackend::new(io::stdout())
}

#[expect(clippy::disallowed_methods, reason = "nothing but the terminal's own sequences is written")]
fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    // SeqCst: see `give_back`.
    TAKEN.store(true, Ordering::SeqCst);
    execute!(io::stdout(), EnterAlternateScreen, Hide)
}

/// Restores the terminal if the command is using it. Errors are ignored, because the terminal may have disappeared.
#[expect(clippy::disallowed_methods, reason = "nothing but the terminal's own sequences is written")]
fn give_back() {
    // SeqCst: a panic on another thread may restore the terminal at the same time. Only one of the two threads may do
    // it.
    if TAKEN.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout();
        let _ = queue!(out, Show, LeaveAlternateScreen).and_then(|()| out.flush());
        let _ = disable_raw_mode();
    }
}
