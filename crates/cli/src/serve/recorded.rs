//! Serves the page of a finished run. If there is a trace, the page has sliders for what-if questions. Otherwise it is
//! frozen. No request changes anything, and the server listens only on the loopback interface.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use millstream_flow::Trace;

use super::page;
use super::request::{Method, Request};
use super::response::Response;
use super::server::{Resources, Server};
use super::whatif::WhatIfs;
use crate::whatif::Answer;

/// See the [module](self).
#[derive(Debug)]
struct Recorded {
    html: String,
    what_ifs: Option<WhatIfs>,
}

/// Serves a page with `data`, which is JSON, on a port of the loopback interface. Port 0 means any free port. A browser
/// without scripts shows the markup `plain`. `sliders` contains the trace for what-if questions, and the result of a
/// replay with the run's own settings.
///
/// # Errors
/// The port is not free, or the system refuses a thread.
pub(crate) fn serve(port: u16, data: &str, plain: &str, sliders: Option<(Trace, Answer)>) -> io::Result<Server> {
    let what_ifs = sliders.map(|(trace, as_it_was)| WhatIfs::of(trace, as_it_was)).transpose()?;
    let recorded = Recorded { html: page::with_data(data, plain), what_ifs };
    Server::start(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), recorded)
}

impl Resources for Recorded {
    fn answer(&self, stream: &TcpStream, request: &Request) -> io::Result<()> {
        self.response(request).write(stream, request.method == Method::Head)
    }
}

impl Recorded {
    fn response(&self, request: &Request) -> Response {
        let path = request.path.as_str();
        match (request.method, path, &self.what_ifs) {
            (Method::Post, "/whatif", Some(what_ifs)) => what_ifs.answer(request),
            (Method::Post, ..) => Response::refusal(405, "expected GET or HEAD").header("Allow", "GET, HEAD"),
            (_, "/whatif", Some(_)) => Response::refusal(405, "expected POST").header("Allow", "POST"),
            (_, "/", _) => Response::page(self.html.clone()),
            _ => page::part(path).unwrap_or_else(|| Response::refusal(404, "there is /, the page of a run")),
        }
    }
}
