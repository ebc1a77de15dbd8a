//! Units that are gathered: groups by count, weight, key, time and family; limits, failures, and the end of a flow.

#[path = "gather/failures.rs"]
mod failures;
#[path = "gather/families.rs"]
mod families;
#[path = "gather/groups.rs"]
mod groups;
#[path = "gather/limits.rs"]
mod limits;
#[path = "gather/onward.rs"]
mod onward;
#[path = "gather/storm.rs"]
mod storm;

use std::sync::{Arc, Mutex};

use millstream_flow::{DeadLetter, FlowBuilder, Gather, Report};

fn conserved(report: &Report) {
    let came = report.admitted + report.split;
    assert_eq!(came, report.retired + report.dead_lettered + report.gathered + report.left);
}

fn collect<R: Send + 'static>(flow: &mut FlowBuilder<R>) -> Arc<Mutex<Vec<R>>> {
    let retired = Arc::new(Mutex::new(Vec::new()));
    let taken = retired.clone();
    flow.on_retire(move |result| taken.lock().unwrap().push(result));
    retired
}

fn letters<R: Send + 'static>(flow: &mut FlowBuilder<R>) -> Arc<Mutex<Vec<DeadLetter>>> {
    let letters = Arc::new(Mutex::new(Vec::new()));
    let taken = letters.clone();
    flow.on_dead_letter(move |letter| taken.lock().unwrap().push(letter));
    letters
}

fn sorted<T: Ord + Clone>(values: &Mutex<Vec<T>>) -> Vec<T> {
    let mut values = values.lock().unwrap().clone();
    values.sort_unstable();
    values
}

/// Groups whose value is the sum of their members.
fn sum() -> Gather<u64, u64> {
    Gather::fold(
        || 0,
        |sum, n: &mut u64, _| {
            *sum += *n;
            Ok(())
        },
    )
}
