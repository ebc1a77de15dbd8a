//! Serves the page of a run that is over, from its trace: frozen, apart from the sliders of its what-if. It has nothing to change, and
//! listens on loopback alone.

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
    what_ifs: WhatIfs,
}

/// Serves a page with these data, as JSON, at a port of loopback; 0: any free one. `plain` is its markup for readers without scripts.
/// The sliders answer from `trace`, whose replay with its own settings came to `as_it_was`.
///
/// # Errors
/// The port is not free, or the system gives no thread.
pub(crate) fn serve(port: u16, data: &str, plain: &str, trace: Trace, as_it_was: Answer) -> io::Result<Server> {
    let recorded = Recorded { html: page::with_data(data, plain), what_ifs: WhatIfs::of(trace, as_it_was)? };
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
        match (request.method, path) {
            (Method::Post, "/whatif") => self.what_ifs.answer(request),
            (Method::Post, _) => Response::refusal(405, "expected GET or HEAD").header("Allow", "GET, HEAD"),
            (_, "/whatif") => Response::refusal(405, "expected POST").header("Allow", "POST"),
            (_, "/") => Response::page(self.html.clone()),
            _ => page::part(path).unwrap_or_else(|| Response::refusal(404, "there is /, the page of a trace")),
        }
    }
}
