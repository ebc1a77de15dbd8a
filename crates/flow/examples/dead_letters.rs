//! Failures: retries, dead letters, and running a dead letter again.
//!
//! - `?` turns any error of a stage's code into a `Failure`. The stage's `retry` says how often the unit is tried
//!   again.
//! - `Failure::permanent` is not retried: another attempt would not help.
//! - A panic is a failure of its unit, not of the process.
//! - A stage with a time limit calls `cx.check()` from time to time. A result after the limit counts as a time-out.
//! - After the last failed attempt, `after_failure` decides: `DeadLetter` (the default), `Skip`, or `StopFlow`.
//!
//! A dead letter keeps the unit's input, stage, attempts and cause, so that a program can run the unit again, as this
//! one does.
//!
//! `cargo run --example dead_letters`

use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use millstream_flow::{AfterFailure, BuildError, Cx, DeadLetter, Failure, Flow, Report, Retry};

fn main() -> Result<(), BuildError> {
    // One unit panics on purpose. This hook suppresses the usual message of a panic.
    std::panic::set_hook(Box::new(|_| ()));

    let repaired = Arc::new(AtomicBool::new(false));
    let units = ["fine", "flaky", "down", "broken", "panics", "slow", "odd"].map(String::from);
    let (report, letters) = run(&repaired, units)?;
    println!("{} retired (of these {} skipped), {} given up on:", report.retired, report.skipped, report.dead_lettered);
    for letter in &letters {
        println!("  `{}`: {letter}", letter.input::<String>().map_or("?", String::as_str));
    }

    println!("the server is repaired, and the failed units run again:");
    repaired.store(true, Ordering::Relaxed);
    let again = letters.into_iter().filter_map(|letter| Some(*letter.input?.downcast::<String>().ok()?));
    let (report, letters) = run(&repaired, again)?;
    println!("{} retired, {} given up on", report.retired, letters.len());
    Ok(())
}

fn run(
    repaired: &Arc<AtomicBool>,
    units: impl IntoIterator<Item = String, IntoIter: Send>,
) -> Result<(Report, Vec<DeadLetter>), BuildError> {
    let letters = Arc::new(Mutex::new(Vec::new()));
    let kept = letters.clone();
    let mut flow = Flow::builder("letters");
    flow.on_dead_letter(move |letter| kept.lock().expect("no holder of this lock panics").push(letter));
    let (fetch, check, done) = (flow.inlet("fetch"), flow.inlet("check"), flow.retire());

    let server = repaired.clone();
    flow.stage(fetch, move |unit: &mut String, cx| fetch_page(unit, server.load(Ordering::Relaxed), cx))
        .retry(Retry::times(2).backoff(Duration::from_millis(1)..Duration::from_millis(10)))
        .timeout(Duration::from_millis(50))
        .to(check);
    flow.stage(
        check,
        |page: &mut String, _| {
            if page.len() % 2 == 1 { Err(Failure::permanent("an odd page")) } else { Ok(page.len()) }
        },
    )
    .after_failure(AfterFailure::Skip)
    .to(done);

    let report = flow.build(fetch)?.run(units);
    let mut letters = std::mem::take(&mut *letters.lock().expect("no holder of this lock panics"));
    letters.sort_by_key(|letter| letter.unit);
    Ok((report, letters))
}

/// A stand-in for a request, with every kind of failure.
fn fetch_page(unit: &str, repaired: bool, cx: &Cx<'_>) -> Result<String, Failure> {
    match unit {
        "odd" => Ok("odd".into()),
        "flaky" if cx.attempt() == 1 => Err(Failure::msg("the connection was reset")),
        _ if repaired => Ok(unit.repeat(2)),
        "down" => Err(io::Error::from(io::ErrorKind::ConnectionRefused).into()),
        "broken" => Err(Failure::permanent("404 Not Found")),
        "panics" => panic!("unexpected content"),
        "slow" => loop {
            sleep(Duration::from_millis(10));
            cx.check()?;
        },
        _ => Ok(unit.repeat(2)),
    }
}
