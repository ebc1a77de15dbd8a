//! A live trace: the newest units of a flow that runs, for questions about it.

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
    /// A way to the flow's live trace: call it before the flow starts. `note` goes into each trace as it is.
    ///
    /// Nothing is kept before [`begin`](LiveTrace::begin); until then a worker pays for a look at a flag in each turn.
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

/// The newest units of a flow that runs, in memory: a [`window`](Self::window) of them is a trace like that of a file.
///
/// The records of at most 8 MiB are kept, which is about 800,000 runs of units in stages; older ones go. Cheap to clone.
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
    /// Begins to keep units, those that are admitted from now on; measures the machine for about two milliseconds.
    /// Returns `false` if it has begun before.
    pub fn begin(&self) -> bool {
        if self.tape.keeps_since().is_some() {
            return false;
        }
        self.facts.machine.get_or_init(costs::measure);
        // In this order: a worker that sees the tape on prepares what a record needs (see `Tape::switch_on`).
        self.shared.site().set_witnessed();
        self.tape.switch_on();
        self.keep();
        true
    }

    /// Forgets the units so far if it has begun, since they ran under other settings.
    pub fn restart(&self) {
        if self.tape.keeps_since().is_some() {
            self.keep();
        }
    }

    /// Keeps the units that are admitted from now on, and no others.
    fn keep(&self) {
        self.tape.take_all();
        // Under the flow's mutex: workers that take units with higher numbers do so after this.
        let next_id = self.shared.lock().next_id();
        self.tape.keep_from(next_id, self.shared.now());
    }

    /// The number of the first unit since [`begin`](Self::begin) or [`restart`](Self::restart).
    pub fn first_unit(&self) -> Option<u64> {
        self.tape.keeps_since()
    }

    /// The size of the largest window.
    pub fn most_bytes(&self) -> usize {
        RING_BYTES
    }

    /// A trace of the units that were admitted since [`begin`](Self::begin) and have left, as far as they are kept; the
    /// newest ones, in at most about `most_bytes`, and the units that wait now, in at most half as many.
    /// [`Trace::read`](crate::Trace::read) reads it.
    ///
    /// Costs a copy of the records that workers have not handed over yet, at most 8 KiB of each (48 KiB while a file is
    /// written), and workers that end a run wait for that. Costs a look at each unit in flight, in short steps under the
    /// flow's lock, and another one for each time that the units that wait have to be halved.
    ///
    /// # Panics
    /// Never: memory takes all bytes.
    pub fn window(&self, most_bytes: usize) -> Vec<u8> {
        // Each run that ended before this moment has left its record, so of a run that began before, all that came
        // before it in its unit's life are there.
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

    /// The units that wait to run in a stage, as a chunk of records: one in the number that comes with it.
    fn waiting(&self, most_bytes: usize) -> Option<(Arc<[u8]>, u64)> {
        let mut one_in = 1;
        loop {
            // No worker: a number that none has.
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
                // There is room for none.
                return None;
            }
            one_in *= 2;
        }
    }

    /// The numbers of the run now. Those of the window are counted by its reader.
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
