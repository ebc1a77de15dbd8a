//! The options for metrics and the page.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

/// The metrics and the page of a run.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServeArgs {
    /// Serve metrics over HTTP at this address: /metrics, /healthz and /ready. A port without an address is on
    /// 127.0.0.1, and port 0 means any free port. The address is printed.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub metrics: Option<SocketAddr>,
    /// Write metrics to a file every 15 s and at the end, in the format of node_exporter's textfile collector.
    #[arg(long, value_name = "FILE")]
    pub metrics_file: Option<PathBuf>,
    /// Push metrics every 15 s and at the end to the OpenTelemetry collector at this address, over OTLP/HTTP [default: that of
    /// the environment variable OTEL_EXPORTER_OTLP_ENDPOINT, or http://127.0.0.1:4318].
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[cfg(feature = "http")]
    pub otlp: Option<String>,
    /// Show the run on a page that a browser opens; its address is printed. ADDR as for --metrics [default: any free
    /// port of 127.0.0.1]. If both addresses are the same, one server serves both.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, require_equals = true, default_missing_value = "0", value_parser = address)]
    pub page: Option<SocketAddr>,
    /// Let the page change the run with this token. Other users of the machine can see the command line;
    /// --page-token-file hides the token from them.
    #[arg(long, value_name = "TOKEN", requires = "page", conflicts_with = "page_token_file")]
    pub page_token: Option<String>,
    /// Let the page change the run with the token in this file.
    #[arg(long, value_name = "FILE", requires = "page")]
    pub page_token_file: Option<PathBuf>,
}

/// Parses `9464`, `localhost:9464` or an IP address with a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    match (port.parse(), text.parse()) {
        (Ok(port), _) => Ok(SocketAddr::new(loopback, port)),
        (_, Ok(address)) => Ok(address),
        _ => Err("expected a port such as 9464, or an address such as 127.0.0.1:9464 or [::1]:0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_on_loopback() {
        for (text, expected) in [
            ("9464", "127.0.0.1:9464"),
            ("0", "127.0.0.1:0"),
            ("localhost:80", "127.0.0.1:80"),
            ("[::1]:9464", "[::1]:9464"),
            ("0.0.0.0:1", "0.0.0.0:1"),
        ] {
            assert_eq!(address(text).unwrap().to_string(), expected);
        }
        for wrong in ["", "70000", "example.org:80", "127.0.0.1", ":80", "localhost:"] {
            assert!(address(wrong).unwrap_err().contains("9464"), "{wrong}");
        }
    }
}
