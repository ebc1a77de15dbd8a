//! Keeps an op from running twice in succession on the same unit.
//!
//! The engine may run a unit a second time in a stage although the op has succeeded: because the op exceeded the
//! stage's time limit, or because its result had to wait for memory. But most ops change the record in place. A second
//! run would compress a payload twice, or fail because the file that was just written exists. So a record stores the
//! number of the op that changed it last, and that op does not run again on the record.

use std::sync::atomic::{AtomicU32, Ordering};

use millstream_flow::{Cx, Failure};

use super::{Gathered, Op, RunEnd, failing};
use crate::record::Record;

/// See the [module](self).
pub(super) struct Once {
    op: Box<dyn Op>,
    /// The op's number. It is never 0, because a record stores 0 if no op has changed it.
    number: u32,
}

impl Once {
    pub(super) fn new(op: Box<dyn Op>) -> Self {
        static NUMBERS: AtomicU32 = AtomicU32::new(1);
        // Relaxed: the number only has to differ; it publishes nothing.
        Self { op, number: NUMBERS.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Op for Once {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        if record.done_by != self.number {
            self.op.run(record, cx)?;
            record.done_by = self.number;
            failing::gets_on();
        }
        Ok(())
    }

    fn blocking(&self, has_needs: bool) -> bool {
        self.op.blocking(has_needs)
    }

    fn idempotent(&self) -> bool {
        self.op.idempotent()
    }

    fn finish(&self, end: &RunEnd<'_>) -> Result<Option<Gathered>, Failure> {
        self.op.finish(end)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use millstream_flow::{Cx, Failure};

    use super::Once;
    use crate::ops::Op;
    use crate::ops::one_stage::{run, run_within};
    use crate::record::Record;

    /// An op that doubles the payload, and takes this long.
    struct Double(Duration);

    impl Op for Double {
        fn run(&self, record: &mut Record, _cx: &mut Cx<'_>) -> Result<(), Failure> {
            std::thread::sleep(self.0);
            let twice = [record.payload.bytes().as_slice(); 2].concat();
            record.payload = twice.into();
            Ok(())
        }
    }

    fn record() -> Record {
        Record::holding(vec![0; 10])
    }

    #[test]
    fn an_op_that_was_late_is_not_run_again_when_retried() {
        let op = Once::new(Box::new(Double(Duration::from_secs(1))));
        assert_eq!(run_within(op, record(), Duration::from_millis(500)).unwrap().payload.bytes().len(), 20);
    }

    #[test]
    fn another_op_runs_on_the_same_record() {
        let once = run(Once::new(Box::new(Double(Duration::ZERO))), record()).unwrap();
        assert_eq!(run(Once::new(Box::new(Double(Duration::ZERO))), once).unwrap().payload.bytes().len(), 40);
    }
}
