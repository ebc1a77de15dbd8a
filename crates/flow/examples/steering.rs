//! Inspecting a flow while it runs, and changing its caps without stopping or losing a unit.
//!
//! A `Control` works from any thread. `snapshot()` tells how many units wait and run in every stage, what they wait
//! for, and how much of every resource is in use. `held_by()` describes the current bottleneck. When most units wait
//! for the disk, this program allows more reads; later it lowers the cap on units in flight.
//!
//! `cargo run --example steering`

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use millstream_flow::{Flow, Need};

fn main() -> Result<(), Box<dyn Error>> {
    let mut flow = Flow::builder("steered");
    flow.inflight(200);
    let disk = flow.tokens("disk", 1);
    let (read, digest, done) = (flow.inlet("read"), flow.inlet("digest"), flow.retire());

    flow.stage(read, |number: &mut u64, _| {
        sleep(Duration::from_micros(500));
        Ok(*number)
    })
    .need(Need::tokens(disk, 1))
    .blocking()
    .to(digest);
    flow.stage(digest, |number: &mut u64, _| Ok((0..1000).fold(*number, |sum, n| sum.rotate_left(5) ^ n))).to(done);

    let service = flow.build(read)?.start();
    let control = service.control();
    let feeder = std::thread::spawn({
        let units = service.submitter();
        move || units.send_all(0..100_000)
    });

    for round in 1..=8 {
        sleep(Duration::from_millis(100));
        let now = control.snapshot();
        println!(
            "{:>4} ms  {:>5} retired  {:>3} in flight of {:>3}  held by {}",
            now.wall_ns / 1_000_000,
            now.retired,
            now.in_flight,
            now.inflight_cap,
            now.held_by()
        );
        match round {
            2 => {
                println!("--- 4 reads at once");
                control.set_capacity("disk", 4)?;
            }
            4 => {
                println!("--- 16 reads at once");
                control.set_capacity("disk", 16)?;
            }
            6 => {
                println!("--- at most 20 units in flight");
                control.set_inflight(20)?;
            }
            _ => {}
        }
    }
    // An unknown name, or a value out of range, is an error that lists the valid ones.
    println!("{}", control.set_capacity("disc", 2).expect_err("there is no such resource"));

    control.stop(); // admits no more units; those in flight are finished
    let refused = feeder.join().expect("the feeder does not panic");
    println!("the feeder was told: {}", refused.expect_err("it had more to send"));
    let report = service.drain();
    println!("{} admitted, {} retired, {} left", report.admitted, report.retired, report.left);
    Ok(())
}
