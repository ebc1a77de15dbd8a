//! Assembles the threads' rows into a history.

use millstream_history::{Builder, Datum, History, Operation, Status, Value, Values};

use crate::log::Filed;
use crate::rows::{ALONE, PENDING, Row};

/// The number of nanoseconds in a tick of the stamps, times 2^32.
#[derive(Debug)]
pub(crate) struct Rate(u128);

impl Rate {
    /// The rate for `ticks` ticks in `ns` nanoseconds. Its precision affects only the times that are displayed.
    pub(crate) fn new(ns: u64, ticks: u64) -> Self {
        Rate(((u128::from(ns) << 32) / u128::from(ticks.max(1))).max(1))
    }

    /// Converts ticks to nanoseconds. Rounding down keeps stamps in order.
    fn ns(&self, ticks: u64) -> u64 {
        u64::try_from((u128::from(ticks) * self.0) >> 32).unwrap_or(u64::MAX - 1)
    }

    /// Returns a number `s` of nanoseconds such that `ns(a) + s < ns(b)` only if `a + ticks < b`. This is `ticks` in nanoseconds,
    /// rounded up, plus 1, because rounding down may have made `ns(a)` too small by almost 1.
    pub(crate) fn skew(&self, ticks: u64) -> u64 {
        self.ns(ticks).saturating_add(2)
    }
}

/// Returns a builder for a history with operations of these names, in this order.
pub(crate) fn builder(names: &[String]) -> Builder {
    let mut builder = Builder::new();
    for name in names {
        builder.op(name);
    }
    builder
}

/// Returns the logs as one history, which ends at the moment when the first log was full.
pub(crate) fn assemble(mut logs: Vec<Filed>, names: &[String], rate: &Rate, skew: u64) -> History {
    logs.sort_by_key(|log| log.process);
    for log in &mut logs {
        straighten(log);
    }
    let start = logs.iter().filter_map(|log| Some(log.rows.first()?.first()?.call)).min().unwrap_or(0);
    let time = |stamp: u64| rate.ns(stamp.saturating_sub(start));
    let cut = logs.iter().filter_map(|log| log.stopped).min().map_or(PENDING, time);

    let mut builder = builder(names);
    builder.skew(skew);
    let mut fresh = logs.len() as u32;
    for log in &logs {
        let mut process = log.process;
        for row in log.rows.iter().flat_map(|rows| rows.iter()).take_while(|row| time(row.call) < cut) {
            let ret = (row.ret != PENDING).then(|| time(row.ret)).filter(|ret| ret.saturating_add(skew) < cut);
            let operation = Operation {
                process,
                op: row.op,
                key: (row.object != ALONE).then(|| Value::from(row.object)),
                input: translate(row.input, &log.values, builder.values()),
                output: ret.map_or(Value::NULL, |_| translate(row.output, &log.values, builder.values())),
                call: time(row.call),
                ret,
                status: match ret {
                    _ if row.failed => Status::Fail,
                    Some(_) => Status::Ok,
                    None => Status::Info,
                },
            };
            builder.push(operation).expect("straightened rows return after their calls");
            if ret.is_none() {
                // In a history, a process cannot call another operation while one is pending, so the thread continues as a
                // process with a new number.
                process = fresh;
                fresh += 1;
            }
        }
    }
    builder.finish().expect("straightened rows of a thread follow one another")
}

/// Puts a thread's stamps in order. They may be out of order by as much as the skew if the thread has migrated to another
/// processor.
///
/// From the last row to the first, each stamp that is later than its successor is lowered to the successor's value. This is
/// sound. Lowering a call only makes its operation appear longer. A lowered return gets the value of a stamp that was read later,
/// so it is still a stamp that was read after the operation had ended, on some processor. Nothing else is required of a return.
fn straighten(log: &mut Filed) {
    let mut next = PENDING;
    for Row { call, ret, .. } in log.rows.iter_mut().flat_map(|rows| rows.iter_mut()).rev() {
        if *ret != PENDING {
            *ret = (*ret).min(next);
        }
        *call = (*call).min(*ret).min(next);
        next = *call;
    }
}

/// Copies a value from a log's table to the history's table.
fn translate(value: Value, from: &Values, to: &mut Values) -> Value {
    match from.get(value) {
        Datum::Null | Datum::Bool(_) => value,
        Datum::Int(int) => to.int(int),
        Datum::Text(text) => to.text(text),
        Datum::List(list) => {
            let list: Vec<Value> = list.iter().map(|&value| translate(value, from, to)).collect();
            to.list(&list)
        }
    }
}

#[cfg(test)]
mod tests {
    use millstream_history::Op;

    use super::*;
    use crate::rows::Rows;

    fn row(call: u64, ret: u64) -> Row {
        Row { call, ret, input: Value::NULL, output: Value::int(1), object: ALONE, op: Op::READ, failed: false }
    }

    fn log(process: u32, rows: &[(u64, u64)]) -> Filed {
        let mut filed = Rows::with_room(rows.len());
        rows.iter().for_each(|&(call, ret)| filed.push(row(call, ret)));
        Filed { process, rows: vec![filed], stopped: None, values: Values::new() }
    }

    fn times(history: &History) -> Vec<(u32, u64, Option<u64>)> {
        (0..history.len()).map(|row| (history.process(row), history.call(row), history.returned_at(row))).collect()
    }

    #[test]
    fn one_clock_ahead_of_another_by_the_skew_orders_nothing_wrongly() {
        // The second thread's clock is ahead by 50. By the first thread's clock, the second operation was called at 100, before
        // the first operation returned at 149.
        let history = assemble(vec![log(0, &[(90, 149)]), log(1, &[(150, 200)])], &[], &Rate::new(1, 1), 50);
        assert!(history.ret(0) >= history.call(1));
    }

    #[test]
    fn rounding_orders_nothing_that_the_skew_does_not() {
        for (ns, ticks) in [(1, 3), (10, 26), (1000, 2599), (41, 1), (7, 2)] {
            let rate = Rate::new(ns, ticks);
            for skew in 0..40 {
                for ret in 0..40 {
                    let ordered = |call: u64| rate.ns(ret) + rate.skew(skew) < rate.ns(call);
                    assert!(!(0..=ret + skew).any(ordered), "{ns}/{ticks} skew {skew} return {ret}");
                    assert!(ordered(ret + skew + 4 * ticks), "{ns}/{ticks} skew {skew} return {ret}");
                }
            }
        }
    }

    #[test]
    fn stamps_disturbed_by_a_change_of_processor_are_widened() {
        let history = assemble(vec![log(0, &[(10, 30), (25, 40), (50, 45)])], &[], &Rate::new(1, 1), 20);
        assert_eq!(times(&history), [(0, 0, Some(15)), (0, 15, Some(30)), (0, 35, Some(35))]);
    }

    #[test]
    fn the_history_ends_when_a_log_is_full() {
        let mut full = log(0, &[(0, 10), (20, 30)]);
        full.stopped = Some(50);
        let other = log(1, &[(5, 15), (40, 46), (47, 48), (60, 70)]);
        let history = assemble(vec![full, other], &[], &Rate::new(1, 1), 5);
        // The operation called at 40 returned less than the skew before the end. It may have returned after the end, so it counts
        // as pending, and the thread continues as another process.
        assert_eq!(
            times(&history),
            [(0, 0, Some(10)), (1, 5, Some(15)), (0, 20, Some(30)), (1, 40, None), (2, 47, None)]
        );
        assert_eq!(history.status(3), Status::Info);
    }

    #[test]
    fn values_of_all_logs_meet_in_one_table() {
        let mut logs = vec![log(0, &[(0, 1)]), log(1, &[(0, 1)])];
        logs[1].values.text("only here");
        for filed in &mut logs {
            let text = filed.values.text("both");
            filed.rows[0][0].output = filed.values.list(&[text, Value::int(3)]);
        }
        assert_ne!(logs[0].rows[0][0].output, logs[1].rows[0][0].output);
        let history = assemble(logs, &["rotate".to_owned()], &Rate::new(1, 1), 0);
        assert_eq!(history.output(0), history.output(1));
        assert_eq!(history.values().show(history.output(0)).to_string(), r#"["both",3]"#);
    }
}
