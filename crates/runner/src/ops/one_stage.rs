//! Test support: a flow of one stage, so that tests run ops with a real context of the engine.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use millstream_flow::{Cx, Flow, Retry};

use super::Op;
use crate::record::Record;

/// Runs an op on one record; returns the record, or the message of its failure.
pub fn run(op: impl IntoOp, record: Record) -> Result<Record, String> {
    one(op, record, Limits::default())
}

/// As [`run`], with this byte budget.
pub fn run_under(op: impl IntoOp, record: Record, memory: u64) -> Result<Record, String> {
    one(op, record, Limits { memory: Some(memory), ..Limits::default() })
}

/// As [`run`], with this time limit.
pub fn run_within(op: impl IntoOp, record: Record, limit: Duration) -> Result<Record, String> {
    one(op, record, Limits { time: Some(limit), ..Limits::default() })
}

/// As [`run`], on a fiber, with this time limit.
pub fn run_on_fiber(op: impl IntoOp, record: Record, time: Option<Duration>) -> Result<Record, String> {
    one(op, record, Limits { time, is_on_fibers: true, ..Limits::default() })
}

/// Runs an op on many records with two workers; returns the message of the first failure.
pub fn run_all(op: impl IntoOp, records: impl Iterator<Item = Record> + Send) -> Result<Vec<Record>, String> {
    drive(op, records, Limits::default())
}

/// The limits of the flow, and whether the stage runs on fibers.
#[derive(Default)]
struct Limits {
    memory: Option<u64>,
    time: Option<Duration>,
    is_on_fibers: bool,
}

fn one(op: impl IntoOp, record: Record, limits: Limits) -> Result<Record, String> {
    drive(op, std::iter::once(record), limits).map(|mut records| records.pop().expect("what does not fail is retired"))
}

fn drive(
    op: impl IntoOp,
    records: impl Iterator<Item = Record> + Send,
    Limits { memory, time, is_on_fibers }: Limits,
) -> Result<Vec<Record>, String> {
    let op = op.into_op();
    let mut builder = Flow::builder("one stage");
    builder.workers(2);
    if let Some(memory) = memory {
        builder.memory(memory);
    }
    let retired = Arc::new(Mutex::new(Vec::new()));
    let keeper = Arc::clone(&retired);
    builder.on_retire(move |record: Record| keeper.lock().unwrap().push(record));
    let (stage, done) = (builder.inlet("op"), builder.retire());
    let idempotent = op.idempotent();
    let mut handle = builder
        .update(stage, move |record: &mut Record, cx: &mut Cx<'_>| op.run(record, cx))
        .bytes(Record::bytes)
        .retry(Retry::times(1).backoff(Duration::from_millis(1)..Duration::from_millis(1)));
    if idempotent {
        handle = handle.idempotent();
    }
    if let Some(limit) = time {
        handle = handle.timeout(limit);
    }
    if is_on_fibers {
        handle = handle.fibers(8).stack(256 << 10);
    }
    handle.to(done);
    let report = builder.build(stage).unwrap().run(records);
    if let Some(letter) = report.dead_letters.first() {
        return Err(letter.message.clone());
    }
    let retired = std::mem::take(&mut *retired.lock().unwrap());
    Ok(retired)
}

/// An op, or an op in an `Arc`.
pub trait IntoOp {
    /// The op in an `Arc`, which the flow's workers share.
    fn into_op(self) -> Arc<dyn Op>;
}

impl<O: Op + 'static> IntoOp for O {
    fn into_op(self) -> Arc<dyn Op> {
        Arc::new(self)
    }
}

impl<O: Op + 'static> IntoOp for Arc<O> {
    fn into_op(self) -> Arc<dyn Op> {
        self
    }
}
