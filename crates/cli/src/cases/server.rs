//! The stand-in for servers: answers requests as the case defines for their URLs, over connections without a network.
//!
//! Only the connection is replaced, so redirects, statuses and limits are those of a real run. Several answers for the
//! same URL are used one after the other; the last one is then repeated.

#[cfg(feature = "http")]
mod connection;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use crate::file::cases::Answer;

/// The answers of a case.
#[derive(Debug, Clone)]
pub(crate) struct Server(Arc<Mutex<Answers>>);

#[derive(Debug)]
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only requests read them"))]
struct Answers {
    answers: Vec<Answer>,
    /// Requests by URL and method.
    requests: BTreeMap<(String, String), usize>,
    /// The answers that were given so far.
    given: Vec<usize>,
    /// A sentence for each request that has no answer, each sentence once.
    unanswered: BTreeSet<String>,
}

impl Server {
    pub(super) fn new(answers: Vec<Answer>) -> Self {
        Self(Arc::new(Mutex::new(Answers {
            answers,
            requests: BTreeMap::new(),
            given: Vec::new(),
            unanswered: BTreeSet::new(),
        })))
    }

    /// A sentence for each request that has no answer.
    pub(super) fn unanswered(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).unanswered.iter().cloned().collect()
    }

    /// The answers that were given, in order.
    pub(super) fn given(&self) -> Vec<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).given.clone()
    }
}
