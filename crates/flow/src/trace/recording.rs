//! A recording: the trace of a flow, written to a file while the flow runs.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use super::bytes::checksum;
use super::costs;
use super::file::{Header, Measured, SUMMARY, put_frame};
use super::sampling;
use super::tape::Tape;
use crate::contain::contain;
use crate::flow::Flow;
use crate::report::Report;

impl<In: Send + 'static, R: Send + 'static> Flow<In, R> {
    /// Records each run of each unit in each stage, for [`Trace::read`](crate::Trace::read). Call this before the flow
    /// starts, and call [`finish`](Recording::finish) with the report. `note` is stored in the trace unchanged.
    ///
    /// A record takes at most about 16 bytes for a run of a unit in a stage, and far fewer if units are alike. A worker
    /// writes its records in chunks of 48 KiB, between running a batch and settling it. The call measures the machine
    /// for about two milliseconds.
    ///
    /// After the first million units, only a sample is recorded, so that the file grows with the logarithm of the run's
    /// length. The sample has whole families, and the reader makes it even (see
    /// [`Trace::weight`](crate::Trace::weight)). All units are recorded if children are split again or gathered by
    /// parent, and while a [live trace](crate::LiveTrace) is kept as well.
    ///
    /// # Errors
    /// Returns errors of writing the first line, and `AlreadyExists` if the flow is being recorded already.
    ///
    /// ```
    /// use millstream_flow::{Flow, Need, Trace, WhatIf};
    ///
    /// let mut flow = Flow::builder("naps");
    /// let bed = flow.tokens("bed", 1);
    /// let (nap, done) = (flow.inlet("nap"), flow.retire());
    /// flow.update(nap, |_: &mut u32, _| {
    ///     std::thread::sleep(std::time::Duration::from_millis(2));
    ///     Ok(())
    /// })
    /// .need(Need::tokens(bed, 1))
    /// .blocking()
    /// .to(done);
    /// let flow = flow.build(nap)?;
    /// let path = std::env::temp_dir().join(format!("naps-{}.trace", std::process::id()));
    /// let recording = flow.record(std::fs::File::create(&path)?, "an afternoon".into())?;
    /// recording.finish(&flow.run(0..50))?;
    ///
    /// let trace = Trace::read(std::io::BufReader::new(std::fs::File::open(&path)?))?;
    /// let as_it_was = trace.replay(&WhatIf::default())?;
    /// let with_four = trace.replay(&WhatIf::default().capacity("bed", 4))?;
    /// assert!(with_four.report.wall_s < as_it_was.report.wall_s);
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn record(&self, out: impl Write + Send + 'static, note: serde_json::Value) -> io::Result<Recording> {
        self.record_whole(out, note, sampling::WHOLE)
    }

    /// Like [`record`](Self::record), but samples only after `whole` units, rounded up to whole blocks.
    pub(crate) fn record_whole(
        &self,
        mut out: impl Write + Send + 'static,
        note: serde_json::Value,
        whole: u64,
    ) -> io::Result<Recording> {
        let tape = self.tape();
        // Settings may have changed since the build.
        let model = self.built.present(&self.shared);
        let whole = Some(whole.checked_next_multiple_of(sampling::BLOCK).unwrap_or(u64::MAX))
            .filter(|_| model.tells_families());
        let mut header = Header::new(model, costs::measure(), note);
        header.whole = whole;
        header.write_to(&mut out)?;
        if !tape.write_to(Box::new(out), whole) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the flow is recorded already"));
        }
        self.shared.site().set_witnessed();
        tape.switch_on();
        Ok(Recording { tape })
    }

    /// The flow's tape. The first call creates the tape, which listens to the workers from then on.
    pub(super) fn tape(&self) -> Arc<Tape> {
        let begin = || {
            let tape = Arc::<Tape>::default();
            self.shared.set_witness(tape.clone());
            tape
        };
        self.tape.get_or_init(begin).clone()
    }
}

/// A running recording of a flow, which [`finish`](Self::finish) ends.
///
/// Workers write their records in chunks. A write error ends the recording, but not the flow; `finish` returns the
/// error.
#[must_use = "a trace is complete when its recording is finished"]
pub struct Recording {
    tape: Arc<Tape>,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").finish_non_exhaustive()
    }
}

impl Recording {
    /// Ends the trace with the run's `report`.
    ///
    /// # Errors
    /// Returns the first write error of the recording. The trace is then unusable.
    pub fn finish(self, report: &Report) -> io::Result<()> {
        let Some(out) = self.tape.finish() else { return Ok(()) };
        let (mut out, times) = (out?, self.tape.mean_times());
        let summary = serde_json::to_vec(&Measured::of(report, times)).map_err(io::Error::other)?;
        contain(|| put_frame(&mut out, SUMMARY, &summary, checksum(&summary)).and_then(|()| out.flush()))
            .unwrap_or_else(|| Err(io::Error::other("the output of the trace panicked")))
    }
}
