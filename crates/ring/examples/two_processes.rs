//! A ring between two processes: this program starts a second copy of itself, which measures, and adds up the readings
//! that the copy sends.
//!
//! The two processes share a file in memory. The first passes the file's name to the second.

use std::fs::File;
use std::process::Command;

use millstream_ring::shared::{Consumer, Plain, Producer};

/// The number of slots, on which both processes must agree.
const SLOTS: usize = 1024;

/// An event: numbers only, with no padding between them.
#[repr(C)]
#[derive(Clone, Copy)]
struct Reading {
    sensor: u32,
    millidegrees: i32,
}

// SAFETY: two numbers without padding (4 bytes each, aligned to 4), so every pattern of bits is a reading.
unsafe impl Plain for Reading {}

/// The sensor of the last event, which marks the end.
const NO_SENSOR: u32 = u32::MAX;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1) {
        Some(path) => measure(&File::open(path)?),
        None => add_up(),
    }
}

fn measure(ring: &File) -> Result<(), Box<dyn std::error::Error>> {
    let mut producer = Producer::attach(ring, SLOTS)?;
    for round in 0..10_000 {
        // One call publishes all four readings, so they take one wake-up.
        producer.send_all(&[0, 1, 2, 3].map(|sensor| Reading { sensor, millidegrees: 20_000 + round % 7 }));
    }
    producer.send(Reading { sensor: NO_SENSOR, millidegrees: 0 });
    Ok(())
}

fn add_up() -> Result<(), Box<dyn std::error::Error>> {
    let file = tempfile::NamedTempFile::new_in("/dev/shm")?;
    let mut consumer = Consumer::<Reading>::attach(file.as_file(), SLOTS)?;
    let mut other = Command::new(std::env::current_exe()?).arg(file.path()).spawn()?;
    let (mut readings, mut sum, mut ended) = (0u32, 0.0, false);
    while !ended {
        consumer.handle_many(256, |reading| match *reading {
            Reading { sensor: NO_SENSOR, .. } => ended = true,
            Reading { millidegrees, .. } => (readings, sum) = (readings + 1, sum + f64::from(millidegrees) / 1000.0),
        });
    }
    assert!(other.wait()?.success());
    assert_eq!(readings, 40_000);
    println!("{readings} readings, {:.3} degrees on average", sum / f64::from(readings));
    Ok(())
}
