//! W3C trace context: programs and requests of a run join the trace in the run's environment.
//!
//! The variable `TRACEPARENT` contains a trace id and the id of the span that started the run. Each attempt gets the
//! same trace with a span id of its own, so a tracer can distinguish attempts. If the variable is missing or is not a
//! trace context, nothing is added to programs and requests.
//!
//! Source: [Trace Context, level 1](https://www.w3.org/TR/trace-context-1/).

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The name of the environment variable.
pub(super) const VARIABLE: &str = "TRACEPARENT";
/// The name of the HTTP header.
#[cfg(feature = "http")]
pub(super) const HEADER: &str = "traceparent";

/// The trace of this process.
static TRACE: LazyLock<Option<Trace>> = LazyLock::new(|| Trace::parse(&env::var(VARIABLE).ok()?));
/// The keys that make span ids differ between processes. An id is the hash of a number with these keys.
static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A trace without a span: its id and its flags.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Trace {
    id: String,
    flags: String,
}

impl Trace {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let (version, id, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_hex = |text: &str, digits: usize| {
            text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_id = |text: &str, digits: usize| is_hex(text, digits) && text.bytes().any(|byte| byte != b'0');
        // Later versions of the format begin with the same parts and may add more.
        let has_version = is_hex(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
        let is_trace = has_version && is_id(id, 32) && is_id(span, 16) && is_hex(flags, 2);
        is_trace.then(|| Self { id: id.to_owned(), flags: flags.to_owned() })
    }

    /// The text of a trace context with this span.
    fn span(&self, span: u64) -> String {
        format!("00-{}-{:016x}-{}", self.id, span.max(1), self.flags)
    }
}

/// The context of an attempt that begins now, if the run belongs to a trace.
pub(super) fn of_attempt() -> Option<String> {
    let trace = TRACE.as_ref()?;
    // Relaxed: the numbers only have to differ.
    Some(trace.span(KEYS.hash_one(NUMBER.fetch_add(1, Ordering::Relaxed))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_read_as_the_standard_has_it() {
        let trace = Trace::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
        assert_eq!(trace.span(0x1f), "00-0af7651916cd43dd8448eb211c80319c-000000000000001f-01");
        assert_eq!(trace.span(0), trace.span(1), "no span is all zero");
        assert!(Trace::parse("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more").is_some());
        for wrong in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0\n1",
        ] {
            assert_eq!(Trace::parse(wrong), None, "{wrong:?}");
        }
    }
}
