//! Changes of a run that a page requests.

use std::fmt;
use std::sync::Arc;

use millstream_flow::{Control, LiveTrace};
use serde::Deserialize;

use super::request::Request;
use super::response::Response;
use super::token::{Attempt, Token};
use crate::retry::live::Readmission;
use crate::steer::facts::{Audit, Peer};
use crate::steer::protocol::Answer;
use crate::steer::setting::{self, SettingError};

/// A function that reports a change on the run's terminal.
pub(crate) type Say = Arc<dyn Fn(String) + Send + Sync>;

/// The places to which changes from a page are reported: the terminal, the record of changes, and the live trace.
pub(crate) struct Told {
    pub(crate) say: Say,
    pub(crate) audit: Audit,
    pub(crate) live: LiveTrace,
}

/// The body of a request that has no parameters: an empty JSON object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// The part of a page that changes the run.
pub(super) struct Steering {
    pub(super) token: Token,
    pub(super) control: Control,
    pub(super) readmission: Readmission,
    pub(super) told: Told,
}

impl fmt::Debug for Steering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steering").field("token", &self.token).finish_non_exhaustive()
    }
}

/// The body of a request that changes settings, in the syntax of [`setting`]. Either all of them take effect, or none
/// does.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    settings: Vec<String>,
}

impl Steering {
    /// Executes a request that has the token and does not come from a page of another server. Refuses any other
    /// request.
    pub(super) fn answer(&self, request: &Request) -> Response {
        if !is_same_origin(request) {
            return Response::refusal(
                403,
                "only this server's own page may change the run, but this request comes from another page",
            );
        }
        let media_type = request.header("content-type").unwrap_or_default();
        if media_type.split(';').next().is_none_or(|kind| !kind.trim().eq_ignore_ascii_case("application/json")) {
            return Response::refusal(415, "expected a body of type application/json");
        }
        let bearer = request.header("authorization").and_then(|value| value.split_once(' '));
        let Some(token) = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token)
        else {
            let refusal = Response::refusal(401, "expected the token of --page-token-file as a bearer token");
            return refusal.header("WWW-Authenticate", "Bearer");
        };
        match self.token.compare(token.trim()) {
            Attempt::Right => {}
            Attempt::Wrong => {
                return Response::refusal(401, "this is not the token").header("WWW-Authenticate", "Bearer");
            }
            Attempt::Refused => {
                let refusal = Response::refusal(429, "too many wrong tokens; try again in a few seconds");
                return refusal.header("Retry-After", "5");
            }
        }
        let done = match request.path.as_str() {
            "/retry" => serde_json::from_slice::<Nothing>(&request.body).map(|Nothing {}| self.run_again()),
            _ => serde_json::from_slice::<Change>(&request.body).map(|change| self.change(&change.settings)),
        };
        done.unwrap_or_else(|error| json(400, &Answer::error(format!("not understood: {error}"))))
    }

    /// Runs the units of all dead letters again.
    fn run_again(&self) -> Response {
        match self.readmission.begin() {
            Ok(began) => json(200, &self.done(vec![began])),
            Err(why) => json(409, &Answer::error(why)),
        }
    }

    /// Records changes, and reports them on the terminal.
    fn done(&self, changed: Vec<String>) -> Answer {
        if !changed.is_empty() {
            let did = changed.iter().map(|line| format!("from the page: {line}"));
            self.told.audit.note(Peer::page(), did.collect());
        }
        for line in &changed {
            (self.told.say)(format!("changed from the page: {line}"));
        }
        Answer { ok: true, changed, ..Answer::default() }
    }

    fn change(&self, settings: &[String]) -> Response {
        match setting::apply_all(settings, &self.control) {
            Ok(changed) => {
                if !changed.is_empty() {
                    self.told.live.restart();
                }
                json(200, &self.done(changed))
            }
            Err(error) => {
                let settable = match error {
                    SettingError::Unknown { .. } => setting::settable(&self.control.snapshot()),
                    SettingError::Value { .. } | SettingError::Refused { .. } => Vec::new(),
                };
                json(400, &Answer { settable, ..Answer::error(error.to_string()) })
            }
        }
    }
}

fn json(status: u16, answer: &Answer) -> Response {
    let body = serde_json::to_vec(answer).expect("answers have only string keys and plain values");
    Response::of("application/json", body).with_status(status)
}

/// Whether a request comes from a page of this server, or from a program. Browsers state the origin of a page's
/// request; programs usually state none.
pub(super) fn is_same_origin(request: &Request) -> bool {
    let origin = match (request.has("origin"), request.header("origin")) {
        (false, _) => true,
        (true, Some(origin)) => {
            origin.strip_prefix("http://").is_some_and(|host| host.eq_ignore_ascii_case(&request.host))
        }
        (true, None) => false,
    };
    let site = match (request.has("sec-fetch-site"), request.header("sec-fetch-site")) {
        (false, _) => true,
        (true, site) => matches!(site, Some("same-origin" | "none")),
    };
    origin && site
}
