//! The server's resources, by path.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use millstream_flow::{Control, Phase};

use super::accept;
use super::events::Streams;
use super::feed::Feed;
use super::page;
use super::request::{Method, Request};
use super::response::Response;
use super::server::Resources;
use super::steering::Steering;
use super::whatif::WhatIfs;
use crate::metrics::Metrics;

/// The resources of a run's server.
#[derive(Debug)]
pub(super) struct Routes {
    pub(super) control: Control,
    pub(super) metrics: Option<Metrics>,
    pub(super) page: Option<Page>,
}

/// The page, its states, and its control over the run.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) feed: Arc<Feed>,
    pub(super) streams: Streams,
    pub(super) steering: Option<Steering>,
    pub(super) what_ifs: Option<WhatIfs>,
}

impl Resources for Routes {
    fn answer(&self, stream: &TcpStream, request: &Request) -> io::Result<()> {
        match (&self.page, request.method, request.path.as_str()) {
            (Some(page), Method::Get, "/events") => page.streams.send(stream, &page.feed, page.steering.is_some()),
            _ => self.response(request).write(stream, request.method == Method::Head),
        }
    }
}

impl Routes {
    fn response(&self, request: &Request) -> Response {
        let path = request.path.as_str();
        match (&self.page, request.method) {
            (Some(page), Method::Post) if is_steering(path) => match &page.steering {
                Some(steering) => steering.answer(request),
                None => Response::refusal(
                    403,
                    "this page cannot change the run; start the run with --page-token-file FILE to allow it",
                ),
            },
            (Some(page), Method::Post) if path == "/whatif" => match &page.what_ifs {
                Some(what_ifs) => what_ifs.answer(request),
                None => Response::refusal(503, "the system gives no thread for answers"),
            },
            (_, Method::Post) => Response::refusal(405, "expected GET or HEAD").header("Allow", "GET, HEAD"),
            (Some(_), _) if is_steering(path) || path == "/whatif" => {
                Response::refusal(405, "expected POST").header("Allow", "POST")
            }
            (Some(_), _) if path == "/events" => Response::refusal(405, "expected GET").header("Allow", "GET"),
            _ => self.resource(path, request),
        }
    }

    fn resource(&self, path: &str, request: &Request) -> Response {
        if let Some(part) = self.page.as_ref().and_then(|_| page::part(path)) {
            return part;
        }
        match path {
            "/" if self.page.is_some() => Response::page(page::HTML),
            "/healthz" => Response::text(200, "ok"),
            "/ready" => self.ready(),
            _ => {
                if let Some(metrics) = self.metrics.as_ref().filter(|_| path == "/metrics") {
                    let format = accept::format(request.header("accept"));
                    return Response::of(format.media_type(), metrics.text(format).into_bytes())
                        .header("Vary", "Accept");
                }
                let page = if self.page.is_some() { "/, " } else { "" };
                let metrics = if self.metrics.is_some() { "/metrics, " } else { "" };
                Response::refusal(404, format!("there are {page}{metrics}/healthz and /ready"))
            }
        }
    }

    /// The response that tells whether the flow admits units.
    fn ready(&self) -> Response {
        match self.control.snapshot().phase {
            Phase::Running => Response::text(200, "ready"),
            Phase::Ready => Response::refusal(503, "the run has not started"),
            Phase::Draining => Response::refusal(503, "the run admits no more units and finishes those in flight"),
            Phase::Abandoned => Response::refusal(503, "the run is abandoned"),
            Phase::Done => Response::refusal(503, "the run is over"),
        }
    }
}

/// Whether requests to this path change the run.
fn is_steering(path: &str) -> bool {
    matches!(path, "/settings" | "/retry")
}
