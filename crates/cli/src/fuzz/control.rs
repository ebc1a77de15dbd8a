//! Both ends of the control socket: the requests that a run reads, and the answers that `status` and `set` read.

use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;

use millstream_runner::file::FlowFile;
use millstream_runner::file::parse::parse;
use millstream_runner::wire;

use super::assert_printable;
use crate::steer::protocol::{ANSWER_BYTES, Answer, read_line};
use crate::steer::{client, server, setting};

/// A flow with one setting of each kind.
const FLOW: &str = r#"
    name = "fuzz"
    inflight = 64
    memory = "64MiB"
    workers = 2
    [resources]
    disk = 2
    "host:*" = 4
    api = { rate = "5/s", burst = 10 }
    [source]
    lines = "-"
    [[stage]]
    name = "small"
    op = "filter"
    when = { text = "{line}", contains = "x" }
    workers = "1..2"
    [[stage]]
    name = "get"
    op = "http-get"
    url = "{line}"
    needs = { disk = 1, "host:{host}" = 1, api = 1 }
"#;

/// Serves the bytes as requests, then reads the same bytes as an answer; returns whether they were valid requests or
/// a valid answer.
///
/// # Panics
/// An answer that the client cannot read, a refused change that has changed something, settings that cannot be set as
/// they are listed, or an answer that would control the terminal on which a client shows it.
pub fn control(bytes: &[u8]) -> bool {
    let served = serve(bytes);
    let shown = client::shown_of(bytes);
    shown.iter().for_each(|shown| assert_printable(shown));
    served || shown.is_some()
}

/// Serves the requests; returns whether one of them was carried out.
fn serve(requests: &[u8]) -> bool {
    static FILE: OnceLock<FlowFile> = OnceLock::new();
    let file = FILE.get_or_init(|| parse(Path::new("fuzz.toml"), FLOW, &[]).expect("it is a flow"));
    // The flow is not started, so threads that a request asks for are counted but not spawned.
    let flow = wire::wire(file, |_| {}, None, Arc::default()).expect("it can be wired").flow;
    let before = setting::settable(&flow.control().snapshot());
    let text = server::answers_to(requests, flow.control());
    let mut rest = text.as_slice();
    let mut answers = Vec::new();
    while let Some(answer) = read_line::<Answer>(&mut rest, ANSWER_BYTES).expect("the client understands every answer")
    {
        assert!(answer.ok != answer.error.is_some(), "{answer:?} is either");
        assert!(answer.ok || answer.changed.is_empty(), "{answer:?} has changed nothing");
        answers.push(answer);
    }
    let asked = requests.iter().filter(|byte| **byte == b'\n').count();
    assert!(answers.len() <= asked + 1, "one answer a request, and one for what is none");
    let after = setting::settable(&flow.control().snapshot());
    if answers.iter().all(|answer| answer.changed.is_empty()) {
        assert_eq!(before, after, "no answer tells of a change");
    }
    setting::apply_all(&after, &flow.control()).expect("what is listed can be set");
    assert_eq!(setting::settable(&flow.control().snapshot()), after, "what is set as it is stays as it is");
    answers.iter().any(|answer| answer.ok)
}
