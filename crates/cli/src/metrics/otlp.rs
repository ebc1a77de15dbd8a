//! `--otlp`: the metrics, pushed to a collector by OTLP over HTTP.
//!
//! A push is the exposition that a scrape would get, translated to JSON by [`encode`], so that push and scrape agree. A
//! thread makes the pushes, and waits at most [`PATIENCE`] for each response. It does not repeat a failed push, since
//! the next one has newer numbers. The end of a run waits at most [`LAST`] for one more push, so that an absent or slow
//! collector does not delay the run. If that push fails, a message and the report say that the last numbers are lost.
//!
//! The environment variables of the OpenTelemetry specification name the collector, its headers and the service.
//!
//! Source: [OTLP 1.x](https://opentelemetry.io/docs/specs/otlp/), OTLP/HTTP with JSON.

mod encode;

use std::env;
use std::io;
use std::mem;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use millstream_command::screen::out::complain;
use millstream_flow::metrics::Format;
use percent_encoding::percent_decode_str;
use ureq::Agent;
use ureq::http::{HeaderName, HeaderValue};
use url::Url;

use self::encode::Resource;
use super::Metrics;

/// The time between two pushes.
const EVERY: Duration = Duration::from_secs(15);
/// The maximum time for a collector's response to a push.
const PATIENCE: Duration = Duration::from_secs(10);
/// The maximum time that the end of a run waits for the last push.
const LAST: Duration = Duration::from_secs(2);
/// The time that the end of a run waits after [`LAST`] for the thread's message that the last push has failed.
const WORD: Duration = Duration::from_millis(200);
/// The default address of collectors.
const DEFAULT: &str = "http://127.0.0.1:4318";
/// The path for metrics, below the address of a collector.
const PATH: &str = "v1/metrics";

/// The reason why metrics cannot be pushed as the environment says.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OtlpError {
    /// The address is not a URL.
    #[error("--otlp: {from} is {url:?}, which is not the address of a collector: expected one such as {DEFAULT}")]
    Address {
        /// The option or variable.
        from: &'static str,
        /// The text.
        url: String,
    },
    /// A header cannot be sent.
    #[error("--otlp: {from} has a part that is not a header: expected NAME=VALUE, with commas between them")]
    Header {
        /// The variable.
        from: &'static str,
    },
    /// The system refuses a thread.
    #[error("--otlp: {0}")]
    System(#[from] io::Error),
}

/// A collector.
#[derive(Debug)]
struct Collector {
    url: Url,
    headers: Vec<(HeaderName, HeaderValue)>,
    agent: Agent,
}

/// Pushes metrics until the run is over.
#[derive(Debug)]
pub(crate) struct Push {
    end: Sender<()>,
    /// The outcome of the last push.
    last: Receiver<Result<(), String>>,
    /// The collector's address, as it is shown.
    collector: String,
}

impl Push {
    /// Pushes metrics to the collector at `url`; if `url` is empty, to the collector that the environment names.
    ///
    /// # Errors
    /// [`OtlpError`]. A collector that does not respond is not an error.
    pub(crate) fn start(url: &str, run: &str, metrics: &Metrics) -> Result<Self, OtlpError> {
        let collector = Collector::find(url, |name| env::var(name).ok().filter(|value| !value.is_empty()))?;
        let service = env::var("OTEL_SERVICE_NAME").ok().filter(|name| !name.is_empty());
        let resource = Resource {
            service: service.unwrap_or_else(|| "millstream".to_owned()),
            instance: run.to_owned(),
            began_ns: now_ns(),
        };
        let (end, ended) = channel();
        let (tell, last) = channel();
        let (metrics, shown) = (metrics.clone(), collector.shown());
        thread::Builder::new().name("otlp".to_owned()).spawn(move || {
            let mut complained = false;
            let push = |patience| {
                let body = encode::json(&metrics.text(Format::OpenMetrics), &resource, now_ns());
                collector.push(&body, patience)
            };
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                if let Err(why) = push(PATIENCE)
                    && !mem::replace(&mut complained, true)
                {
                    complain(format!("warning: metrics are not taken by {}: {why}", collector.shown()));
                }
            }
            let _ = tell.send(push(LAST));
        })?;
        Ok(Self { end, last, collector: shown })
    }

    /// Pushes for the last time. If the collector does not accept the metrics in time, returns the reason why they are
    /// lost.
    pub(crate) fn finish(self) -> Option<String> {
        drop(self.end);
        // If an earlier push still waits for its response after this time, the process ends without that response.
        let pushed = self.last.recv_timeout(LAST + WORD);
        let why = pushed.unwrap_or_else(|_| Err(format!("no answer within {} s", LAST.as_secs()))).err()?;
        Some(format!("the last metrics are lost, since {} did not take them: {why}", self.collector))
    }
}

impl Collector {
    fn find(given: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, OtlpError> {
        let named = |from: &'static str| variable(from).map(|url| (from, url));
        let whole = named("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT").filter(|_| given.is_empty());
        let is_whole = whole.is_some();
        let (from, url) = match (given.is_empty(), whole) {
            (false, _) => ("URL", given.to_owned()),
            (true, Some(whole)) => whole,
            (true, None) => named("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap_or(("its default", DEFAULT.to_owned())),
        };
        let wrong = || OtlpError::Address { from, url: url.clone() };
        let mut address = Url::parse(&url).map_err(|_| wrong())?;
        if !matches!(address.scheme(), "http" | "https") || address.host_str().is_none() {
            return Err(wrong());
        }
        if !is_whole && !address.path().ends_with(PATH) {
            let path = format!("{}/{PATH}", address.path().trim_end_matches('/'));
            address.set_path(&path);
        }
        let mut headers = Vec::new();
        for from in ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"] {
            for pair in variable(from).unwrap_or_default().split(',').filter(|pair| !pair.trim().is_empty()) {
                headers.push(header(pair).ok_or(OtlpError::Header { from })?);
            }
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("millstream/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self { url: address, headers, agent: config.new_agent() })
    }

    fn push(&self, body: &str, patience: Duration) -> Result<(), String> {
        let mut request = self.agent.post(self.url.as_str()).header("Content-Type", "application/json");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let answer = request.config().timeout_global(Some(patience)).build().send(body);
        match answer.map(|answer| answer.status()) {
            Ok(status) if status.is_success() => Ok(()),
            Ok(status) => Err(format!("status {status}")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The address, without a login.
    fn shown(&self) -> String {
        let mut url = self.url.clone();
        let _ = (url.set_username(""), url.set_password(None));
        url.to_string()
    }
}

/// `NAME=VALUE`, the value percent-encoded.
fn header(pair: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = pair.split_once('=')?;
    let value = percent_decode_str(value.trim()).collect::<Vec<u8>>();
    Some((HeaderName::try_from(name.trim()).ok()?, HeaderValue::from_bytes(&value).ok()?))
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(given: &str, variables: &[(&str, &str)]) -> Result<Collector, OtlpError> {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Collector::find(given, find)
    }

    #[test]
    fn the_option_names_the_collector_before_the_environment_does() {
        let all = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://base:1/below/"),
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://whole:2/mine"),
        ];
        for (given, variables, expected) in [
            ("", &[][..], "http://127.0.0.1:4318/v1/metrics"),
            ("", &all[..1], "https://base:1/below/v1/metrics"),
            ("", &all, "http://whole:2/mine"),
            ("http://here:3", &all, "http://here:3/v1/metrics"),
            ("http://here:3/v1/metrics", &all, "http://here:3/v1/metrics"),
        ] {
            assert_eq!(found(given, variables).unwrap().url.as_str(), expected);
        }
        for wrong in ["here:4318", "ftp://here", "http://"] {
            assert!(found(wrong, &[]).unwrap_err().to_string().contains("4318"), "{wrong}");
        }
    }

    #[test]
    fn headers_are_pairs_and_their_values_are_decoded() {
        let with = |headers| found("", &[("OTEL_EXPORTER_OTLP_HEADERS", headers)]);
        let collector = with("api-key=a%20b, x = 1,").unwrap();
        let headers: Vec<_> =
            collector.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(headers, [("api-key", "a b"), ("x", "1")]);
        for wrong in ["key", "a b=1", "k=%0a"] {
            assert!(with(wrong).unwrap_err().to_string().contains("NAME=VALUE"), "{wrong}");
        }
        let login = found("http://user:secret@here:4318", &[]).unwrap();
        assert_eq!(login.shown(), "http://here:4318/v1/metrics");
    }
}
