//! Four no-op stages as a flow.

use millstream_flow::{Batch, Flow};

use super::{nothing, shares};
use crate::error::Error;

const BATCH: usize = 64;
/// The total capacity of the peers' four channels, each of which holds 1024 numbers.
const IN_FLIGHT: u64 = 4096;

/// Sends `n` numbers through the flow and returns how many retired.
///
/// # Errors
/// Fails when the engine refuses the flow.
pub fn flow(n: u64) -> Result<u64, Error> {
    Ok(four_stages()?.run(0..n).retired)
}

/// Like [`flow`], but also records the flow's trace and discards it.
///
/// # Errors
/// Fails when the engine refuses the flow or the trace.
pub fn recorded(n: u64) -> Result<u64, Error> {
    let flow = four_stages()?;
    let recording = flow.record(std::io::sink(), "noop".into()).map_err(|error| untraced(&error))?;
    let report = flow.run(0..n);
    recording.finish(&report).map_err(|error| untraced(&error))?;
    Ok(report.retired)
}

/// Like [`flow`], from several sending threads.
///
/// # Errors
/// Fails when the engine refuses the flow.
pub fn sent(n: u64, senders: u64) -> Result<u64, Error> {
    let service = four_stages()?.start();
    std::thread::scope(|scope| {
        for range in shares(n, senders) {
            let submitter = service.submitter();
            scope.spawn(move || {
                for number in range {
                    submitter.send(number).expect("the flow is open until all have sent");
                }
            });
        }
    });
    Ok(service.drain().retired)
}

fn untraced(error: &std::io::Error) -> Error {
    Error::new(format!("the trace is not written: {error}"))
}

fn four_stages() -> Result<Flow<u64, u64>, Error> {
    let mut b = Flow::builder::<u64>("noop");
    b.inflight(IN_FLIGHT);
    let inlets = ["one", "two", "three", "four"].map(|name| b.inlet::<u64>(name));
    let done = b.retire();
    for (index, &inlet) in inlets.iter().enumerate() {
        let stage = b
            .update(inlet, |number: &mut u64, _| {
                *number = nothing(*number);
                Ok(())
            })
            .batch(Batch::of(BATCH));
        match inlets.get(index + 1) {
            Some(&next) => stage.to(next),
            None => stage.to(done),
        };
    }
    b.build(inlets[0]).map_err(Error::refused)
}
