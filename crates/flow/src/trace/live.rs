//! A live trace: the newest units of a running flow, for questions about it.

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::bytes::{checksum, put};
use super::costs;
use super::file::{CHUNK, Header, Machine, Measured, SUMMARY, Window, put_frame};
use super::model::{Model, ModelResource};
use super::present::Built;
use super::run::{Context, put_waiting};
use super::tape::{Kept, RING_BYTES, Tape};
use crate::engine::threads::shared::Shared;
use crate::flow::Flow;

impl<In: Send + 'static, R: Send + 'static> Flow<In, R> {
    /// A handle for the flow's live trace. Call this before the flow starts. `note` is stored in each trace unchanged.
    ///
    /// Nothing is recorded before [`begin`](LiveTrace::begin); until then, a worker only checks a flag each time it
    /// takes work.
    ///
    /// ```
    /// use millstream_flow::{Flow, Need, Trace, WhatIf};
    /// use std::time::Duration;
    ///
    /// let mut flow = Flow::builder("naps");
    /// let bed = flow.tokens("bed", 1);
    /// let (nap, done) = (flow.inlet("nap"), flow.retire());
    /// flow.update(nap, |_: &mut u32, _| {
    ///     std::thread::sleep(Duration::from_millis(2));
    ///     Ok(())
    /// })
    /// .need(Need::tokens(bed, 1))
    /// .blocking()
    /// .to(done);
    /// let flow = flow.build(nap)?;
    /// let live = flow.live_trace("an afternoon".into());
    /// live.begin();
    /// let service = flow.start_from(0.., |_| ());
    /// std::thread::sleep(Duration::from_millis(200));
    ///
    /// let trace = Trace::read(&*live.window(live.most_bytes()))?;
    /// let as_it_is = trace.replay(&WhatIf::default())?;
    /// let with_two = trace.replay(&WhatIf::default().capacity("bed", 2))?;
    /// assert!(with_two.steady_wall < as_it_is.steady_wall * 3 / 4);
    /// # service.control().stop();
    /// # service.drain();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn live_trace(&self, note: Value) -> LiveTrace {
        LiveTrace {
            tape: self.tape(),
            shared: self.shared.clone(),
            built: self.built.clone(),
            facts: Arc::new(Facts { note, machine: OnceLock::new() }),
        }
    }
}

/// The newest units of a running flow, recorded in memory. [`window`](Self::window) returns them as a trace, in the
/// format of a file.
///
/// At most 8 MiB of records are kept, which is about 800,000 runs of units in stages; older records are dropped. Clones
/// are cheap.
#[derive(Clone)]
pub struct LiveTrace {
    tape: Arc<Tape>,
    shared: Arc<Shared>,
    built: Arc<Built>,
    facts: Arc<Facts>,
}

struct Facts {
    note: Value,
    machine: OnceLock<Machine>,
}

impl fmt::Debug for LiveTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveTrace").finish_non_exhaustive()
    }
}

impl LiveTrace {
    /// Begins to record the units that are admitted from now on. Measures the machine for about two milliseconds.
    /// Returns `false` if recording had already begun.
    pub fn begin(&self) -> bool {
        if self.tape.keeps_since().is_some() {
            return false;
        }
        self.facts.machine.get_or_init(costs::measure);
        // The order matters: a worker that sees the tape on must also see that the flow is witnessed (see
        // `Tape::switch_on`).
        self.shared.site().set_witnessed();
        self.tape.switch_on();
        self.keep();
        true
    }

    /// If recording has begun, drops the records so far. Call this after settings have changed.
    pub fn restart(&self) {
        if self.tape.keeps_since().is_some() {
            self.keep();
        }
    }

    /// Keeps only the units that are admitted from now on.
    fn keep(&self) {
        self.tape.take_all();
        // The number is read under the flow's mutex. So workers get a unit with this number or a higher one only
        // afterwards, and by then they see the effect of `take_all`.
        let next_id = self.shared.lock().next_id();
        self.tape.keep_from(next_id, self.shared.now());
    }

    /// The number of the first recorded unit since [`begin`](Self::begin) or [`restart`](Self::restart).
    pub fn first_unit(&self) -> Option<u64> {
        self.tape.keeps_since()
    }

    /// The size of the largest window.
    pub fn most_bytes(&self) -> usize {
        RING_BYTES
    }

    /// Returns a trace with the newest records since [`begin`](Self::begin), and with the units that wait now. The
    /// records take about `most_bytes` or less, and the waiting units at most half as many bytes.
    /// [`Trace::read`](crate::Trace::read) reads the trace.
    ///
    /// The call copies the records that workers have not flushed yet, at most 8 KiB for each worker (48 KiB while a
    /// file is written). A worker that ends a run during the copy waits for it. The call also examines each unit in
    /// flight, in short steps under the flow's lock. If there are too many waiting units, the call examines them again
    /// and halves their number, until they fit.
    ///
    /// # Panics
    /// Does not panic, because a write to memory cannot fail.
    pub fn window(&self, most_bytes: usize) -> Vec<u8> {
        // Each run that ended before this moment has written its record. So for a run that began before this moment,
        // the records of all earlier runs of the same unit are present.
        let until_ns = self.shared.now();
        let Kept { mut chunks, from_id, from_ns } = self.tape.kept(most_bytes);
        let (waiting, waiting_one_in) = self.waiting(most_bytes / 2).unzip();
        chunks.extend(waiting);
        let waiting_one_in = waiting_one_in.unwrap_or(0);
        let machine = *self.facts.machine.get_or_init(costs::measure);
        let mut header = Header::new(self.built.present(&self.shared), machine, self.facts.note.clone());
        header.window = Some(Window { from_id, until_ns, from_ns, waiting_one_in });
        let mut out = Vec::with_capacity(chunks.iter().map(|chunk| chunk.len()).sum::<usize>() + 4096);
        let written = header.write_to(&mut out).and_then(|()| {
            chunks.iter().try_for_each(|chunk| put_frame(&mut out, CHUNK, chunk, checksum(chunk)))?;
            let summary = serde_json::to_vec(&self.summary(&header.model)).map_err(io::Error::other)?;
            put_frame(&mut out, SUMMARY, &summary, checksum(&summary))
        });
        written.expect("a vector takes all bytes, and a header has only string keys");
        out
    }

    /// A chunk of records of the units that wait to run in a stage, and a number N: the chunk has one in N of these
    /// units.
    fn waiting(&self, most_bytes: usize) -> Option<(Arc<[u8]>, u64)> {
        let mut one_in = 1;
        loop {
            // The chunk begins with a worker number that no worker has, because no worker wrote these records.
            let (mut out, mut context) = (Vec::new(), Context::default());
            put(&mut out, u64::MAX);
            let begins = out.len();
            let mut seen = 0;
            self.shared.see_waiting(|id, stage, record| {
                seen += 1;
                if id % one_in == 0 && out.len() - begins <= most_bytes {
                    put_waiting(&mut out, &mut context, id, stage, record.asks());
                }
            });
            if out.len() - begins <= most_bytes {
                return (out.len() > begins).then(|| (out.into(), one_in));
            }
            if one_in > seen {
                // There is not even room for one unit.
                return None;
            }
            one_in *= 2;
        }
    }

    /// Measures the run at this moment. The values that depend on the window are computed when the trace is read.
    fn summary(&self, model: &Model) -> Measured {
        let now = self.shared.snapshot();
        Measured {
            times: self.tape.mean_times(),
            bottleneck: now.held_by(),
            workers: model.workers as u64,
            inflight: model.inflight,
            capacities: model.resources.iter().map(ModelResource::capacity).collect(),
            ..Measured::default()
        }
    }
}
