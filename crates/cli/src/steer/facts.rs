//! The facts about a run that are not part of its flow, for `millstream top`, and the record of changes from outside.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use millstream_flow::{KeySnapshot, LiveTrace};
use serde::{Deserialize, Serialize};

use crate::causes::{Causes, Groups};

/// The maximum number of recorded changes. When there are more, the oldest are dropped and only counted.
const MAX_KEPT: usize = 200;

/// The facts as they are sent to a client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// The total number of units that the source will yield, if that number is known.
    #[serde(default)]
    pub total: Option<u64>,
    /// The keys with the most waiting units.
    #[serde(default)]
    pub keys: Vec<KeySnapshot>,
    /// The causes of dead letters.
    #[serde(default)]
    pub causes: Groups,
    /// The changes from outside.
    #[serde(default)]
    pub steered: Steered,
}

/// A change that was made from outside during the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Change {
    /// The time of the change in UTC, in the format of RFC 3339.
    pub at: String,
    /// Seconds since the run began.
    pub at_s: f64,
    /// The id of the user.
    pub user: u32,
    /// The id of the process, according to the system.
    pub process: i32,
    /// The new and the old value of each setting. For a request that does not change settings, a description of the
    /// request.
    pub did: Vec<String>,
}

/// All changes of a run, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Steered {
    /// The newest changes.
    pub changes: VecDeque<Change>,
    /// The number of older changes that were dropped.
    pub older: u64,
}

/// The user and the process at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) user: u32,
    pub(crate) process: i32,
}

impl Peer {
    /// The run itself, which acts for a client that has the token of the run's page.
    pub(crate) fn page() -> Self {
        let process = i32::try_from(std::process::id()).unwrap_or(0);
        Peer { user: rustix::process::geteuid().as_raw(), process }
    }
}

/// The record of changes, written by the servers and read by the report and the page.
#[derive(Debug, Clone)]
pub(crate) struct Audit {
    began: Instant,
    steered: Arc<Mutex<Steered>>,
}

impl Audit {
    /// The empty record of a run that begins now.
    pub(crate) fn begin() -> Self {
        Self { began: Instant::now(), steered: Arc::default() }
    }

    /// Notes a change.
    pub(crate) fn note(&self, peer: Peer, did: Vec<String>) {
        let change = Change {
            at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            at_s: self.began.elapsed().as_secs_f64(),
            user: peer.user,
            process: peer.process,
            did,
        };
        let mut steered = self.steered.lock().unwrap_or_else(PoisonError::into_inner);
        steered.changes.push_back(change);
        if steered.changes.len() > MAX_KEPT {
            steered.changes.pop_front();
            steered.older += 1;
        }
    }

    /// The changes so far.
    pub(crate) fn steered(&self) -> Steered {
        self.steered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The facts and actions that a control socket offers in addition to those of the flow.
pub(crate) struct Behind {
    /// The number of units that the source will yield, if that number is known.
    pub(crate) total: Option<u64>,
    pub(crate) causes: Arc<Causes>,
    pub(crate) audit: Audit,
    /// Runs the units of all dead letters again. Returns a description of the action, or the reason for a refusal.
    pub(crate) retry: Box<dyn Fn() -> Result<String, String> + Send>,
    /// The live trace of the newest units. It begins when a client first requests it.
    pub(crate) live: Option<LiveTrace>,
    /// Closes admission. The units in flight are finished.
    pub(crate) drain: Box<dyn Fn() + Send>,
}

impl Behind {
    /// A run that offers only the facts and actions of its flow.
    #[cfg(any(fuzzing, test))]
    pub(crate) fn nothing() -> Self {
        let retry = Box::new(|| Err("there are no dead letters to run again".to_owned()));
        Self { total: None, causes: Arc::default(), audit: Audit::begin(), retry, live: None, drain: Box::new(|| ()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_changes_are_kept_and_the_others_counted() {
        let audit = Audit::begin();
        for n in 0..MAX_KEPT + 3 {
            audit.note(Peer { user: 7, process: 9 }, vec![format!("inflight={n}")]);
        }
        let steered = audit.steered();
        assert_eq!((steered.changes.len(), steered.older), (MAX_KEPT, 3));
        assert_eq!(steered.changes[0].did, ["inflight=3"]);
        assert_eq!((steered.changes[0].user, steered.changes[0].process), (7, 9));
        let json = serde_json::to_string(&Facts { steered: steered.clone(), ..Facts::default() }).unwrap();
        assert_eq!(serde_json::from_str::<Facts>(&json).unwrap().steered, steered);
    }
}
