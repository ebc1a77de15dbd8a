//! The feed: a thread that polls the open run, or all runs, about once a second, and sends the user's changes to runs.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use millstream_flow::Snapshot;

use super::view::{Change, Listed};
use crate::steer::client::{self, SteerError};
use crate::steer::facts::Facts;
use crate::steer::place::{self, Run};

/// The time between two polls of a run.
const EVERY: Duration = Duration::from_secs(1);
/// The maximum number of ended runs in the list.
const MAX_ENDED: usize = 20;

/// News from the thread.
pub(super) enum News {
    /// All runs.
    Runs(Vec<Listed>),
    /// The state of the open run.
    Of(Run, Result<(Box<Snapshot>, Box<Facts>), Trouble>),
    /// The result of a change.
    Changed(Result<String, String>),
}

/// The reason why a run has not answered.
pub(super) enum Trouble {
    /// The run is over.
    Ended,
    /// The run does not respond or refuses to answer.
    Silent(String),
}

enum Order {
    Open(Option<Run>),
    Change(Run, Change),
}

/// The handle of the thread. The thread ends when this is dropped.
pub(super) struct Feed {
    orders: Sender<Order>,
    news: Receiver<News>,
}

impl Feed {
    /// Starts the thread, which polls `open`, or all runs if `open` is `None`.
    ///
    /// # Errors
    /// Returns an error if the system cannot create a thread.
    pub(super) fn start(open: Option<Run>) -> io::Result<Self> {
        let ((orders, to_do), (tell, news)) = (channel(), channel());
        thread::Builder::new().name("feed".to_owned()).spawn(move || feed(open, &to_do, &tell))?;
        Ok(Self { orders, news })
    }

    /// Makes the thread poll this run, or all runs.
    pub(super) fn open(&self, run: Option<Run>) {
        // If the thread has ended, the next read of the news reports that.
        let _ = self.orders.send(Order::Open(run));
    }

    pub(super) fn change(&self, run: Run, change: Change) {
        let _ = self.orders.send(Order::Change(run, change));
    }

    pub(super) fn news(&self) -> Result<News, TryRecvError> {
        self.news.try_recv()
    }
}

fn feed(mut open: Option<Run>, orders: &Receiver<Order>, tell: &Sender<News>) {
    let mut list = Vec::new();
    loop {
        let began = Instant::now();
        let news = match &open {
            Some(run) => News::Of(run.clone(), client::watch(run).map_err(trouble)),
            None => {
                list = listed(list);
                News::Runs(list.clone())
            }
        };
        if tell.send(news).is_err() {
            return;
        }
        match orders.recv_timeout(EVERY.saturating_sub(began.elapsed())) {
            Ok(Order::Open(run)) => open = run,
            Ok(Order::Change(run, change)) => {
                if tell.send(News::Changed(changed(&run, change))).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn trouble(error: SteerError) -> Trouble {
    match error {
        SteerError::Ended { .. } | SteerError::Unreachable { .. } | SteerError::NoRun(_) => Trouble::Ended,
        error => Trouble::Silent(error.to_string()),
    }
}

fn changed(run: &Run, change: Change) -> Result<String, String> {
    let done = match change {
        Change::Set { key, new, .. } => client::change(run, vec![format!("{key}={new}")]),
        Change::Retry(_) => client::retry(run),
        Change::Drain => client::drain(run),
    };
    done.map(|lines| lines.join(", ")).map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())
}

/// Returns the current list of runs. Ended runs stay in the list with their last numbers.
fn listed(before: Vec<Listed>) -> Vec<Listed> {
    let mut list: Vec<Listed> = client::states(&place::runs())
        .into_iter()
        .filter_map(|(run, state)| match state {
            Ok(now) => Some(Listed { run, state: Ok(Box::new(now)), ended: false }),
            Err(error) => match trouble(error) {
                Trouble::Ended => None,
                Trouble::Silent(why) => Some(Listed { run, state: Err(why), ended: false }),
            },
        })
        .collect();
    let gone = before.into_iter().filter(|listed| listed.state.is_ok());
    let gone: Vec<_> = gone.filter(|old| list.iter().all(|new| new.run.path != old.run.path)).collect();
    let skipped = gone.len().saturating_sub(MAX_ENDED);
    list.extend(gone.into_iter().skip(skipped).map(|listed| Listed { ended: true, ..listed }));
    list
}
