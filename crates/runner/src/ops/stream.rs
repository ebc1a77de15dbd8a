//! `stream`: a program in the language of streams computes a new payload from the values in the payload.
//!
//! The program reads the payload while it computes. So only two things are in memory: the result, and the values that
//! the program buffers, whose number has a proven bound. The program has no access to files. The
//! [clocks](millstream_stream::clock) of the program, which give that bound, are checked together with the flow file.

use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;

use millstream_flow::{Cx, Failure};
use millstream_stream::text::{Checked, Problem, Value};
use millstream_stream::{Part, RunError, Running};

use super::pace::Pace;
use super::{Op, growing};
use crate::payload;
use crate::record::Record;

/// The memory that is first granted for a result. Each later grant is twice the previous one.
const FIRST: u64 = 64 << 10;

/// See the [module](self).
pub(super) struct Stream {
    program: Checked,
    max_bytes: u64,
}

/// Checks a program without running it.
///
/// # Errors
/// The text is not a program, or the program's buffers have no bound.
pub fn check(expression: &str) -> Result<(), Problem> {
    Checked::new(expression).map(drop)
}

/// The error that ended the reading of the payload, if one did.
type Unread = Rc<RefCell<Option<io::Error>>>;

/// A reader of the payload that saves its error in an [`Unread`].
struct Watched<R> {
    reader: R,
    unread: Unread,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer).map_err(|error| {
            let told = io::Error::new(error.kind(), error.to_string());
            *self.unread.borrow_mut() = Some(error);
            told
        })
    }
}

impl Stream {
    /// Compiles a program that was checked with the flow file.
    pub(super) fn new(expression: &str, max_bytes: u64) -> Self {
        let program = Checked::new(expression).expect("the flow file's check accepts the program");
        Self { program, max_bytes }
    }

    fn over(&self, payload: &payload::Stream, unread: &Unread) -> Running<Value> {
        let (payload, unread) = (payload.clone(), Rc::clone(unread));
        self.program.run(move || Ok(Box::new(Watched { reader: payload.reader()?, unread: Rc::clone(&unread) })))
    }

    /// Runs the program to its end. Returns the program's values, one per line. `held` is the number of bytes that the
    /// unit occupies in addition to the result.
    fn result(
        &self,
        mut running: Running<Value>,
        held: u64,
        failure: impl Fn(RunError) -> Failure,
        cx: &mut Cx<'_>,
    ) -> Result<Vec<u8>, Failure> {
        let (mut result, mut granted) = (Vec::new(), 0);
        let (mut pace, mut left) = (Pace::new(), 0);
        loop {
            if left == 0 {
                cx.check()?;
                left = pace.next();
            }
            if result.len() as u64 >= granted {
                granted = (granted * 2).max(FIRST);
                cx.reserve(held.saturating_add(granted))?;
                growing::grow_to(&mut result, usize::try_from(granted).unwrap_or(usize::MAX))
                    .map_err(|error| Failure::msg(error.to_string()))?;
            }
            match running.next_within(&mut left).map_err(&failure)? {
                Part::Value(value) => {
                    value.print(&mut result);
                    result.push(b'\n');
                    // Printing counts as a step.
                    left = left.saturating_sub(1);
                }
                Part::Pause => {}
                Part::End => return Ok(result),
            }
            if result.len() as u64 > self.max_bytes {
                let message = format!("the result has more than `max_bytes`, {}", self.max_bytes);
                return Err(Failure::permanent(message));
            }
        }
    }
}

impl Op for Stream {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let payload = record.payload.share();
        let unread = Unread::default();
        let running = self.over(&payload, &unread);
        let held = record.held().saturating_add(running.proof().bytes());
        let failure = |error: RunError| match unread.borrow_mut().take() {
            Some(unread) => payload.failure(&unread),
            None => Failure::permanent(error.to_string()),
        };
        let mut result = self.result(running, held, failure, cx)?;
        growing::trim(&mut result);
        record.payload = result.into();
        record.headroom = 0;
        Ok(())
    }

    fn idempotent(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::{Duration, Instant};

    use super::{Stream, check};
    use crate::ops::one_stage::{run, run_under, run_within};
    use crate::payload;
    use crate::record::Record;

    const MAX: u64 = 1 << 30;

    #[test]
    fn values_of_the_payload_become_lines_of_the_result() {
        let sums = Stream::new("scan(lines(), 0, acc + number(it))", MAX);
        assert_eq!(run(sums, Record::holding("1\n2\n3")).unwrap().payload, b"1\n3\n6\n");
        let none = Stream::new("filter(lines(), false)", MAX);
        assert_eq!(run(none, Record::holding("")).unwrap().payload, b"");
    }

    #[test]
    fn a_payload_can_be_read_at_two_paces() {
        let halves = Stream::new("x = lines(); zip(every(x, 2), reread(x))", MAX);
        assert_eq!(run(halves, Record::holding("a\nb\nc\nd\n")).unwrap().payload, b"a\ta\nc\tb\n");
    }

    #[test]
    fn a_payload_that_is_not_in_memory_is_read_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "2\n3\n").unwrap();
        let mut record = Record::line(b"x".to_vec());
        let opened = payload::Stream::of_file(File::open(&path).unwrap(), 4, &path, 0);
        record.payload = opened.clone().into();
        let sum = || Stream::new("reduce(lines(), 0, acc + number(it))", MAX);
        assert_eq!(run(sum(), record.clone()).unwrap().payload, b"5\n");
        std::fs::write(&path, "").unwrap();
        assert!(run(sum(), record).unwrap_err().contains("read"));
    }

    #[test]
    fn a_value_that_cannot_be_computed_says_of_which_stream() {
        let sum = Stream::new("map(lines(), it + 1)", MAX);
        let error = run(sum, Record::holding("a\n")).unwrap_err();
        assert!(error.contains("map"), "{error}");
    }

    #[test]
    fn a_result_beyond_its_limit_and_a_program_without_an_end_stop() {
        let many = Stream::new("repeat(lines(), 1000000)", 1000);
        assert!(run(many, Record::holding("x")).unwrap_err().contains("`max_bytes`, 1000"));
        for endless in
            ["filter(numbers(1, 9000000000000000000), false)", "every(numbers(1, 9000000000000000000), 4294967296)"]
        {
            let endless = Stream::new(endless, MAX);
            let error = run_within(endless, Record::holding("x"), Duration::from_millis(50)).unwrap_err();
            assert!(error.contains("time limit"), "{error}");
        }
    }

    #[test]
    fn a_program_with_long_steps_stops_near_its_time_limit() {
        // After a million short steps, each step takes some milliseconds. 4,096 such steps take longer than the time
        // limit.
        let long = Stream::new("reduce(window(numbers(1, 9000000000000000000), 1048576, 1), 0, acc)", MAX);
        let began = Instant::now();
        let error = run_within(long, Record::holding("x"), Duration::from_millis(50)).unwrap_err();
        assert!(error.contains("time limit"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    }

    #[test]
    fn a_result_larger_than_the_budget_is_made_alone() {
        let record = run_under(Stream::new("repeat(lines(), 100000)", MAX), Record::holding("x"), 4096).unwrap();
        assert_eq!(record.payload.bytes().len(), 200_000);
    }

    #[test]
    fn a_program_reads_no_file_and_writes_none() {
        assert!(check("lines(\"/etc/passwd\")").unwrap_err().message.contains("no file"));
        assert!(check("x = lines(); zip(every(x, 2), spill(x, \"/tmp\"))").unwrap_err().message.contains("disk"));
        let refused = check("x = lines(); zip(every(x, 2), x)").unwrap_err();
        let help = refused.help.unwrap();
        assert!(help.contains("zip(every(x, 2), reread(x))") && !help.contains("spill"), "{help}");
    }

    #[test]
    fn hostile_programs_are_refused_in_little_time() {
        let deep = "(".repeat(60_000);
        let nested = format!("{}lines(){}", "skip(".repeat(5000), ", 1)".repeat(5000));
        let huge = "skip(lines(), 99999999999999999999999999)";
        let clocks = "x = lines(); zip(every(x, 4294967291), every(x, 4294967279))";
        for hostile in
            [deep.as_str(), &nested, huge, clocks, "\u{0}", "lines(", "", "merge()", "window(lines(), 16777217)"]
        {
            assert!(check(hostile).is_err(), "{hostile:.40}");
        }
        let long: String = (0..3000).map(|n| format!("a{}=skip(a{n},1);", n + 1)).collect();
        check(&format!("a0=lines();{long}a3000")).unwrap();
    }
}
