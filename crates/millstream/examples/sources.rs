//! Sources of typed streams from other Millstream libraries: the values of a ring, and the units of a flow.
//!
//! - The receiver of a ring's channel is an iterator, so it is a source. The stream takes from the ring as it needs values,
//!   and the sender waits while the ring is full.
//! - A flow sends each unit into a channel when the unit retires. If the channel is full, the flow waits for the
//!   stream, so memory stays bounded. The stream runs on its own thread, because it pulls its values.
//!
//! `cargo run -p millstream --features ring,stream --example sources`

use std::thread;

use millstream::flow::Flow;
use millstream::ring::channel;
use millstream::stream::{Error, Program};

fn main() -> Result<(), Error> {
    let (sender, receiver) = channel::spsc(64);
    let ticks = thread::spawn(move || (0..100_000_u64).all(|tick| sender.send(tick * 3).is_ok()));
    let x = Program::new().iter("ticks", receiver).share();
    let steps = x.skip(1).zip_with(&x, |next, this| next - this);
    let mut different = 0;
    let report = steps.run()?.for_each(|step| different += u64::from(*step != 3))?;
    assert!(ticks.join().is_ok_and(|sent| sent));
    println!("{} steps of a ring's values, {different} of them not 3", report.values);
    assert_eq!((report.values, different), (99_999, 0));

    let (retired, units) = channel::mpsc(64);
    let mut flow = Flow::builder::<u64>("squares");
    // The send fails if the stream has ended first.
    flow.on_retire(move |square| drop(retired.send(square)));
    let (square, done) = (flow.inlet("square"), flow.retire());
    flow.stage(square, |n: &mut u64, _| Ok(*n * *n)).to(done);
    let flow = flow.build(square).expect("a stage without needs");
    let flow = thread::spawn(move || flow.run(0..100_000));
    // Units retire in any order, which does not change their sum.
    let sums = Program::new().iter("units", units).windows(1000, 1000).map(|squares| squares.iter().sum::<u64>());
    let mut total = 0;
    let report = sums.run()?.for_each(|sum| total += sum)?;
    assert!(flow.join().is_ok_and(|report| report.retired == 100_000));
    println!("{} windows of a flow's units, the sum of which is {total}", report.values);
    assert_eq!((report.values, total), (100, (0..100_000).map(|n| n * n).sum()));
    Ok(())
}
