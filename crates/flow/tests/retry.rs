//! When a failed unit is retried.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use millstream_flow::{Failure, Flow, Retry};

#[test]
fn a_retry_comes_no_sooner_than_the_failure_asks() {
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&attempts);
    let asked = Duration::from_millis(300);
    let mut flow = Flow::builder::<()>("asked");
    let (get, done) = (flow.inlet::<u64>("get"), flow.retire());
    flow.stage(get, move |_: &mut u64, _| {
        let mut seen = seen.lock().unwrap();
        seen.push(Instant::now());
        match seen.len() {
            1 => Err(Failure::msg("busy").not_before(asked)),
            _ => Ok(()),
        }
    })
    .retry(Retry::times(1).backoff(Duration::from_millis(1)..Duration::from_millis(1)))
    .to(done);
    let report = flow.build(get).unwrap().run([0]);
    assert_eq!(report.retired, 1);
    let attempts = attempts.lock().unwrap();
    assert!(attempts[1] - attempts[0] >= asked, "{:?}", attempts[1] - attempts[0]);
}

#[test]
fn the_longest_pause_does_not_overflow() {
    let mut flow = Flow::builder::<()>("never");
    let (get, done) = (flow.inlet::<u64>("get"), flow.retire());
    flow.stage(get, |_: &mut u64, _| Err(Failure::msg("busy").not_before(Duration::MAX)))
        .retry(Retry::times(1))
        .to(done);
    let service = flow.build(get).unwrap().start();
    service.send(0).unwrap();
    let control = service.control();
    while control.snapshot().delayed == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    control.abandon();
    assert_eq!(service.drain().left, 1);
}
