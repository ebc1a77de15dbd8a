//! Joins two paths of one stream, first at the same pace and then at different paces.
//!
//! - A program whose paths keep pace is accepted, and each queue gets the room it needs.
//! - A program whose paths drift apart is refused before it reads anything. The refusal says how many values will have to wait.
//! - With a buffer, the second program runs. It fails at the value that the refusal predicted, and the error names the buffer.
//!
//! `cargo run --example pace`

use millstream_stream::{CheckError, Error, Program};

fn main() -> Result<(), Error> {
    let program = Program::new();
    let temperature = program.iter("temperature", (0..24_u64).map(|hour| 15 + hour % 7)).share();
    let smooth = temperature.windows(5, 1).map(|hours| hours.iter().sum::<u64>() / 5);
    let deviation = smooth.zip_with(&temperature.skip(2), |smooth, now| now.abs_diff(*smooth));
    for bound in deviation.check()?.edges() {
        println!(
            "at most {} value(s), {} bytes, at input {} of node {}",
            bound.values, bound.bytes, bound.port, bound.to
        );
    }
    let mut running = deviation.run()?;
    while let Some(degrees) = running.next()? {
        print!("{degrees} ");
    }
    println!();

    let program = Program::new();
    let x = program.iter("x", 0_u64..).share();
    let drifting = x.every(2).zip(&x);
    if let Err(CheckError::Refused(refusal)) = drifting.check() {
        println!("refused: {refusal}");
        println!("a buffer of 1000 overflows at value {:?} of x", refusal.overflows_at(1000));
    }
    match x.every(2).zip(&x.buffer(1000)).run()?.for_each(|_| {}) {
        Err(full) => println!("with a buffer: {full}"),
        Ok(report) => println!("with a buffer: {} values", report.values),
    }
    Ok(())
}
