//! `millstream top` shows all runs, or one of them, on the whole terminal.
//!
//! | file | purpose |
//! | --- | --- |
//! | [`feed`] | polls the runs on a thread of its own, so that a run that does not respond does not block the keys |
//! | [`history`] | stores the states of the open run |
//! | [`view`] | stores the view and the selection, and applies keys to them |
//! | [`draw`] | draws the screen: a pure function of the history and the view |
//! | [`tty`] | sets up the terminal, and restores it |

mod draw;
mod feed;
mod history;
mod tty;
mod view;

use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use millstream_command::screen::look::Look;
use millstream_command::screen::out;
use ratatui::crossterm::event::{Event, KeyEventKind};

use self::draw::{Theme, draw};
use self::feed::{Feed, News};
use self::history::History;
use self::tty::{Told, Tty};
use self::view::{Action, Listed, View};
use crate::run::{NOT_WRITTEN, WRONG};
use crate::steer::{client, place};

/// The time between two checks for keys, signals and news. It limits the screen to ten frames a second.
const FRAME: Duration = Duration::from_millis(100);

/// Runs `millstream top [RUN]`, and returns the exit status.
pub(crate) fn top(run: Option<&Path>) -> ExitCode {
    let Some(look) = Look::of_stdout() else {
        out::complain(
            "error: `millstream top` needs a terminal for its screen; `millstream status` prints the same numbers",
        );
        return ExitCode::from(WRONG);
    };
    let open = match run.map(place::find) {
        Some(Ok(run)) => match client::watch(&run) {
            Ok(_) => Some(run),
            Err(error) => {
                out::complain_page(&format!("error: {error}"));
                return ExitCode::from(WRONG);
            }
        },
        Some(Err(error)) => {
            out::complain(format!("error: {error}"));
            return ExitCode::from(WRONG);
        }
        None => {
            // If there is only one run, it is opened at once.
            let mut runs = place::runs();
            if runs.len() == 1 { runs.pop() } else { None }
        }
    };
    let theme = Theme { color: look.color, unicode: look.unicode };
    let shown = Tty::take().and_then(|mut tty| show(&mut tty, theme, View::new(open)));
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            out::complain(format!("error: the terminal cannot be used: {error}"));
            ExitCode::from(NOT_WRITTEN)
        }
    }
}

/// Shows the screen until a key or a signal ends it.
fn show(tty: &mut Tty, theme: Theme, mut view: View) -> std::io::Result<()> {
    let feed = Feed::start(view.open.clone())?;
    let mut list: Vec<Listed> = Vec::new();
    let mut history = History::default();
    let mut changed = true;
    loop {
        if changed {
            tty.draw(|buffer| draw(buffer, theme, &view, &list, &history))?;
            changed = false;
        }
        let drawn = Instant::now();
        let event = match tty.next(FRAME)? {
            Told::Event(event) => Some(event),
            Told::Nothing => None,
            Told::End => return Ok(()),
            Told::Resumed => {
                changed = true;
                None
            }
        };
        match event {
            Some(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                changed = true;
                match view.key(key, history.newest(), &list) {
                    Action::Nothing => {}
                    Action::Quit => return Ok(()),
                    Action::Suspend => tty.suspend()?,
                    Action::Open(run) => {
                        history = History::default();
                        feed.open(run);
                    }
                    Action::Change(change) => {
                        if let Some(run) = &view.open {
                            feed.change(run.clone(), change);
                        }
                    }
                }
            }
            Some(Event::Resize(..)) => changed = true,
            _ => {}
        }
        loop {
            match feed.news() {
                Ok(news) => changed |= take_in(news, &mut view, &mut list, &mut history),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    return Err(std::io::Error::other("the thread that asks the runs has ended"));
                }
            }
        }
        // The pause keeps the frame rate low even if a key is held down or many events arrive.
        if changed {
            std::thread::sleep(FRAME.saturating_sub(drawn.elapsed()) / 4);
        }
    }
}

/// Applies news to the state of the screen. Returns whether the screen must be drawn again.
fn take_in(news: News, view: &mut View, list: &mut Vec<Listed>, history: &mut History) -> bool {
    match news {
        News::Runs(runs) => {
            *list = runs;
            view.open.is_none()
        }
        News::Of(run, state) => {
            if view.open.as_ref() != Some(&run) {
                return false;
            }
            match state {
                Ok((now, facts)) => history.add(*now, *facts),
                Err(feed::Trouble::Ended) => history.end(),
                Err(feed::Trouble::Silent(why)) => view.message = Some(Err(why)),
            }
            true
        }
        News::Changed(result) => {
            view.message = Some(result);
            true
        }
    }
}
