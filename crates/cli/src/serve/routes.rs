//! The resources that the server has, by path.

use millstream_flow::Phase;

use super::accept;
use super::request::{Method, Request};
use super::response::Response;
use crate::metrics::Metrics;

/// The answers of a server.
#[derive(Debug)]
pub(super) struct Routes {
    pub(super) metrics: Metrics,
}

impl Routes {
    /// The answer to a request.
    pub(super) fn answer(&self, request: &Request) -> Response {
        if request.method == Method::Post {
            return Response::refusal(405, "expected GET or HEAD").header("Allow", "GET, HEAD");
        }
        match request.path.as_str() {
            "/metrics" => {
                let format = accept::format(request.header("accept"));
                Response::of(format.media_type(), self.metrics.text(format).into_bytes()).header("Vary", "Accept")
            }
            "/healthz" => Response::text(200, "ok"),
            "/ready" => self.ready(),
            _ => Response::refusal(404, "there are /metrics, /healthz and /ready"),
        }
    }

    /// Whether the flow admits units.
    fn ready(&self) -> Response {
        match self.metrics.control().snapshot().phase {
            Phase::Running => Response::text(200, "ready"),
            Phase::Ready => Response::refusal(503, "the run has not started"),
            Phase::Draining => Response::refusal(503, "the run admits no more units and finishes those in flight"),
            Phase::Abandoned => Response::refusal(503, "the run is abandoned"),
            Phase::Done => Response::refusal(503, "the run is over"),
        }
    }
}
