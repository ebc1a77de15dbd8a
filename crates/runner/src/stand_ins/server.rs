//! The stand-in for servers: sends the response that the case defines for a URL, over a connection without a network.
//!
//! Only the connection is replaced, so redirects, statuses and limits are those of a real run. Several responses for
//! the same URL are used one after the other; the last one is then repeated.

#[cfg(feature = "http")]
mod connection;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use crate::file::cases::Answer;

/// The responses of a case.
#[derive(Debug, Clone)]
pub struct Server(Arc<Mutex<Answers>>);

#[derive(Debug)]
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only requests read them"))]
struct Answers {
    answers: Vec<Answer>,
    /// The number of requests that have had a response, by URL and method.
    requests: BTreeMap<(String, String), usize>,
    /// The indices of the responses that have been used so far, in the order of the requests.
    given: Vec<usize>,
    /// A sentence for each request without a response; equal sentences occur once.
    unanswered: BTreeSet<String>,
}

impl Server {
    /// A server that sends these responses.
    pub fn new(answers: Vec<Answer>) -> Self {
        Self(Arc::new(Mutex::new(Answers {
            answers,
            requests: BTreeMap::new(),
            given: Vec::new(),
            unanswered: BTreeSet::new(),
        })))
    }

    /// A sentence for each request without a response.
    pub fn unanswered(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).unanswered.iter().cloned().collect()
    }

    /// The indices of the responses that were used, in the order of the requests.
    pub fn given(&self) -> Vec<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).given.clone()
    }
}
