//! Serves a run over HTTP: its metrics, and a page that shows the run and may change it.
//!
//! The server accepts one request per connection, for a fixed list of paths, and needs no framework. It refuses foreign
//! host names ([`host`]), limits the size and the time of requests ([`request`]), and disconnects a peer that does not
//! read its response ([`response`]).
//!
//! The page consists of three files in `page/`, which are compiled into the command ([`page`]). The page receives the
//! facts about the flow, and then the flow's states, as server-sent events ([`events`]) from one [`feed`]. With a
//! [`token`], the page can change settings and run dead letters again ([`steering`]). Even without a token, it can ask
//! what other settings would do ([`whatif`]). The page of a finished run contains the run's data ([`recorded`]).

mod accept;
pub(crate) mod args;
mod events;
pub(crate) mod feed;
mod history;
mod host;
pub(crate) mod page;
pub(crate) mod recorded;
mod request;
mod response;
mod routes;
mod server;
mod steering;
mod token;
mod whatif;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use millstream_command::screen::shown;
use millstream_flow::Control;

use self::args::ServeArgs;
use self::events::Streams;
use self::feed::Feed;
use self::routes::{Page, Routes};
use self::server::Server;
use self::steering::Steering;
pub(crate) use self::steering::{Say, Told};
use self::token::Token;
use self::whatif::WhatIfs;
use crate::metrics::Metrics;
use crate::retry::live::Readmission;
use crate::screen::Screen;

/// The reason why the requested servers cannot be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotServed {
    /// The server cannot listen on the address.
    #[error("--{option} {address}: {error}; choose another port, or 0 for any free one")]
    Address {
        /// The option that names the address.
        option: &'static str,
        /// The requested address.
        address: SocketAddr,
        /// The error of the system.
        error: io::Error,
    },
    /// The token is invalid.
    #[error("--page-token: {why}")]
    Token {
        /// The reason.
        why: String,
    },
    /// The token file contains no valid token.
    #[error("--page-token-file {}: {why}", shown::path(path))]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

/// The servers of a run. They stop when this is dropped.
#[derive(Debug)]
pub(crate) struct Servers {
    _servers: Vec<Server>,
}

/// Starts the servers that the arguments request, and prints their addresses.
///
/// # Errors
/// Returns an error if an address cannot be served or the token is invalid.
pub(crate) fn start(
    args: &ServeArgs,
    control: &Control,
    metrics: &Metrics,
    feed: &Arc<Feed>,
    readmission: &Readmission,
    told: Told,
    screen: &mut Screen,
) -> Result<Servers, NotServed> {
    let token = match (&args.page_token, &args.page_token_file) {
        (Some(token), _) => Some(Token::new(token).map_err(|why| NotServed::Token { why })?),
        (None, Some(path)) => Some(Token::read(path).map_err(|why| NotServed::TokenFile { path: path.clone(), why })?),
        (None, None) => None,
    };
    let steerable = token.is_some();
    let mut page = args.page.map(|_| {
        // If the thread cannot be started, the page works without what-if questions.
        let what_ifs = WhatIfs::start(told.live.clone()).ok();
        let of = |token| Steering { token, control: control.clone(), readmission: readmission.clone(), told };
        Page { feed: Arc::clone(feed), streams: Streams::default(), steering: token.map(of), what_ifs }
    });
    let mut servers = Vec::new();
    let mut serve =
        |option, address: SocketAddr, metrics: Option<Metrics>, page: Option<Page>| -> Result<SocketAddr, NotServed> {
            let routes = Routes { control: control.clone(), metrics, page };
            let server =
                Server::start(address, routes).map_err(|error| NotServed::Address { option, address, error })?;
            let bound = server.address();
            servers.push(server);
            Ok(bound)
        };
    let mut announce = |what: &str, path: &str, bound: SocketAddr, can: &str| {
        screen.say(&format!("{what} at http://{bound}{path}"));
        if !bound.ip().to_canonical().is_loopback() {
            screen.warn(&format!(
                "warning: other machines can {can} at {bound}, over connections that are not encrypted"
            ));
        }
    };
    if let Some(address) = args.metrics {
        let shared = if args.page == Some(address) { page.take() } else { None };
        let is_shared = shared.is_some();
        let bound = serve("metrics", address, Some(metrics.clone()), shared)?;
        announce("metrics", "/metrics", bound, "read the metrics");
        if is_shared {
            announce("page", "/", bound, "see the page");
        }
    }
    if let (Some(address), Some(page)) = (args.page, page) {
        let bound = serve("page", address, None, Some(page))?;
        announce(
            "page",
            "/",
            bound,
            if steerable { "see the page and, with the token, change the run," } else { "see the page" },
        );
    }
    Ok(Servers { _servers: servers })
}
