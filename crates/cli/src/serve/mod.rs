//! Watching a run over HTTP: metrics.
//!
//! The server is small: it answers one request per connection, from a fixed list of paths, and needs no framework. Names that
//! lead here from elsewhere are refused ([`host`]), requests are read within limits ([`request`]), and a peer that does not read its
//! answer is left behind ([`response`]).

mod accept;
pub(crate) mod args;
mod host;
mod request;
mod response;
mod routes;
mod server;

use std::io;
use std::net::SocketAddr;

use self::args::ServeArgs;
use self::routes::Routes;
pub(crate) use self::server::Server;
use crate::metrics::Metrics;
use crate::screen::Screen;

/// The address asked for cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("--metrics {address}: {error}; choose another port, or 0 for any free one")]
pub(crate) struct NotServed {
    /// The address asked for.
    address: SocketAddr,
    /// The error of the system.
    error: io::Error,
}

/// Starts the server that the arguments ask for, and says where it is.
///
/// # Errors
/// The address cannot be served.
pub(crate) fn start(args: &ServeArgs, metrics: &Metrics, screen: &mut Screen) -> Result<Option<Server>, NotServed> {
    let Some(address) = args.metrics else { return Ok(None) };
    let routes = Routes { metrics: metrics.clone() };
    let server = Server::start(address, routes).map_err(|error| NotServed { address, error })?;
    let bound = server.address();
    screen.say(&format!("metrics at http://{bound}/metrics"));
    if !bound.ip().to_canonical().is_loopback() {
        screen.warn(&format!("warning: other machines can read the metrics at {bound}"));
    }
    Ok(Some(server))
}
