//! A flow as a service. Requests come from many threads, and each gets a ticket for its answer. Under overload,
//! requests are refused at once, so that no client waits for long.
//!
//! - `start_with(Overload::Reject)`: a full flow returns the request. (`Wait` would make the caller wait, and
//!   `DropOldest` would drop the request that has waited longest.)
//! - `ticket.wait()` returns the answer, or the reason why there is none. A ticket is also a future, and `submit_async`
//!   awaits room.
//! - `drain()` closes admission, finishes the units in flight, and returns the report.
//!
//! `cargo run --example service`

use std::error::Error;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use millstream_flow::{Failure, Flow, Need, Overload, SubmitError};

fn main() -> Result<(), Box<dyn Error>> {
    let mut flow = Flow::builder("answers");
    flow.inflight(6); // the whole backlog: answers to more requests would come too late
    let backend = flow.tokens("backend", 3);
    let (ask, polish, done) = (flow.inlet("ask"), flow.inlet("polish"), flow.retire());

    flow.stage(ask, |question: &mut u32, _| {
        sleep(Duration::from_millis(2)); // a slow backend
        if *question % 10 == 3 { Err(Failure::permanent("the backend does not know")) } else { Ok(*question * 2) }
    })
    .need(Need::tokens(backend, 1))
    .blocking()
    .to(polish);
    flow.stage(polish, |answer: &mut u32, _| Ok(format!("the answer is {answer}"))).to(done);

    let service = flow.build(ask)?.start_with(Overload::Reject);

    scope(|threads| {
        for client in 0..8 {
            let requests = service.submitter();
            threads.spawn(move || {
                let (mut answered, mut refused, mut failed) = (0, 0, 0);
                for question in 0..20 {
                    match requests.submit(client * 100 + question) {
                        Ok(ticket) => match ticket.wait() {
                            Ok(_) => answered += 1,
                            Err(_) => failed += 1,
                        },
                        Err(SubmitError::Full(_question)) => {
                            refused += 1;
                            sleep(Duration::from_millis(1)); // a client would tell its user, or try another server
                        }
                        Err(error) => panic!("the service is still open: {error}"),
                    }
                }
                println!("client {client}: {answered} answered, {failed} failed, {refused} refused");
            });
        }
    });

    // One request prefers a short wait to a refusal. Another request must not run before a given time.
    let soon = Instant::now() + Duration::from_millis(50);
    println!("{}", service.submit_deadline(21, soon)?.wait()?);
    println!("{}", service.submit_at(50, soon)?.wait()?);

    let report = service.drain();
    println!(
        "{} admitted = {} retired + {} dead-lettered + {} left",
        report.admitted, report.retired, report.dead_lettered, report.left
    );
    println!("half of them took {} µs, 99 % at most {} µs", report.latency_ns.p50 / 1000, report.latency_ns.p99 / 1000);
    Ok(())
}
