//! The terminal: taken for the whole screen, and left as it was however the command ends.
//!
//! | the end | leaves the terminal by |
//! | --- | --- |
//! | `q`, ^C (a key in raw mode) | dropping [`Tty`] |
//! | SIGINT, SIGTERM, SIGHUP, SIGQUIT | a flag that [`Tty::next`] looks at ten times a second |
//! | ^Z (a key), SIGTSTP | [`Tty::suspend`], which takes it again after SIGCONT |
//! | a panic, on any thread | a hook, before the panic is told |
//! | an error of the terminal | dropping [`Tty`] |
//!
//! Against SIGKILL and SIGSTOP there is no remedy; `reset` is one for the user.

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

/// Whether the screen is taken now: the first caller gives it back, and no other.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Waits until the terminal has keys, at most this long; whether it is still there.
///
/// No signal tells a command that does not belong to the terminal's session that it is gone, and the library that reads
/// keys would read its end over and over. So that library is asked only about a terminal that is there.
fn is_there(most: Duration) -> bool {
    let most = Timespec::try_from(most).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 0 });
    let keys = isatty(stdio::stdin()).then(|| PollFd::from_borrowed_fd(stdio::stdin(), PollFlags::IN));
    let screen = PollFd::from_borrowed_fd(stdio::stdout(), PollFlags::empty());
    let mut ends: Vec<PollFd<'_>> = keys.into_iter().chain([screen]).collect();
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    // A signal ends the wait, and the caller looks what it asks for.
    poll(&mut ends, Some(&most)).is_err() || !ends.iter().any(|end| end.revents().intersects(gone))
}

/// The terminal while it is taken.
pub(super) struct Tty {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// A signal asks the command to end.
    ends: Arc<AtomicBool>,
    /// A signal asks the command to stop for a while.
    stops: Arc<AtomicBool>,
}

/// The result of a wait.
pub(super) enum Told {
    Event(Event),
    Nothing,
    /// The command was stopped, and goes on.
    Resumed,
    /// The command is to end.
    End,
}

impl Tty {
    /// Takes the whole screen.
    ///
    /// # Errors
    /// Those of the terminal, or of a signal's handler.
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
        // Made first: from here on, whatever fails gives back what was taken.
        let tty = Self { terminal: Terminal::new(backend())?, ends, stops };
        enter()?;
        Ok(tty)
    }

    /// Draws a frame; only what has changed is written.
    ///
    /// # Errors
    /// Those of the terminal.
    pub(super) fn draw(&mut self, picture: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        self.terminal.draw(|frame| picture(frame.buffer_mut())).map(drop)
    }

    /// Waits for a key, a new size or a signal, at most this long.
    ///
    /// # Errors
    /// Those of the terminal.
    pub(super) fn next(&mut self, most: Duration) -> io::Result<Told> {
        if self.stops.swap(false, Ordering::SeqCst) {
            self.suspend()?;
            return Ok(Told::Resumed);
        }
        // SeqCst, as the handler stores it: one look in a tenth of a second costs nothing.
        if self.ends.load(Ordering::SeqCst) {
            return Ok(Told::End);
        }
        // Keys that came from elsewhere than standard input are seen by the next look.
        if !is_there(most) {
            return Ok(Told::End);
        }
        match event::poll(Duration::ZERO) {
            Ok(true) => event::read().map(Told::Event),
            Ok(false) => Ok(Told::Nothing),
            // A signal: the next look tells which.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Told::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Gives the terminal back, stops the process as ^Z does, and takes the terminal again when it goes on.
    ///
    /// # Errors
    /// Those of the terminal.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        give_back();
        low_level::emulate_default_handler(SIGTSTP)?;
        enter()?;
        // Another program has written there meanwhile. A new terminal begins with nothing, and asks the real one nothing:
        // `clear` asks for the cursor's place, which not every terminal tells.
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

/// Makes the terminal what it was, if it is taken. Errors are ignored: the terminal may be gone.
#[expect(clippy::disallowed_methods, reason = "nothing but the terminal's own sequences is written")]
fn give_back() {
    // SeqCst: a panic on another thread and the end of this one may come together.
    if TAKEN.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout();
        let _ = queue!(out, Show, LeaveAlternateScreen).and_then(|()| out.flush());
        let _ = disable_raw_mode();
    }
}
