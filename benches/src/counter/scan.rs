//! A scan with and without statistics. Several threads read the records of a table in memory in order, like the
//! iterator of a storage engine, and count rows and bytes at each record.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use millstream_sync::counter::Counter;

use crate::args::Args;
use crate::compare::{Competitor, Role, alternate, median};
use crate::error::Error;
use crate::random::Random;
use crate::reclaim::threads::together;

const RECORDS: usize = 20_000;
const QUICK_RECORDS: usize = 100;
/// How often each thread reads the whole table.
const PASSES: u64 = 15;
const KEY_BYTES: usize = 16;
/// The range of value sizes in LevelDB's benchmark.
const VALUE_BYTES: std::ops::Range<usize> = 80..120;

/// Records in sequence: the length of the value in four bytes, the key, the value.
struct Table(Vec<u8>);

impl Table {
    fn new(records: usize) -> Self {
        let mut random = Random::new(7);
        let mut bytes = Vec::new();
        for number in 0..records as u64 {
            let value = VALUE_BYTES.start + random.below(VALUE_BYTES.len());
            bytes.extend((value as u32).to_le_bytes());
            bytes.extend(format!("{number:0KEY_BYTES$}").bytes());
            bytes.extend((0..value).map(|_| random.next_u64() as u8));
        }
        Table(bytes)
    }

    /// Reads all records, checks that their keys ascend, and returns a checksum of their values.
    #[inline(always)]
    fn scan(&self, mut count: impl FnMut(u64)) -> u64 {
        let (mut rest, mut last, mut sum) = (&self.0[..], &[0_u8; 0][..], 0_u64);
        while let Some((length, tail)) = rest.split_first_chunk::<4>() {
            let (key, tail) = tail.split_at(KEY_BYTES);
            let (value, tail) = tail.split_at(u32::from_le_bytes(*length) as usize);
            assert!(last < key, "the table is not in order");
            sum = sum.wrapping_add(checksum(value));
            count(value.len() as u64);
            (rest, last) = (tail, key);
        }
        sum
    }
}

/// Computes FNV-1a, one byte at a time.
fn checksum(value: &[u8]) -> u64 {
    value.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Scans with `threads` threads. Returns the time of a pass and the sum of the checksums.
type Work = fn(&Table, threads: usize) -> (f64, u64);

const OFF: &str = "statistics off";

const WORKS: [(&str, Role, Work); 5] = [
    ("Counter, a Local each", Role::Ours, per_thread),
    ("Counter, by its Adder", Role::Ours, per_processor),
    (OFF, Role::Peer, off),
    ("shared load and store", Role::Reference, racy),
    ("shared fetch_add", Role::Reference, shared),
];

/// Prints a table for each number of threads.
///
/// # Errors
/// Fails when a scan skipped part of the table.
pub fn run(args: &Args) -> Result<(), Error> {
    let table = Table::new(if args.quick { QUICK_RECORDS } else { RECORDS });
    let records = table.scan(|_| ()).max(1);
    for threads in [1, 2, 4] {
        println!("### scan: {threads} thread(s), records and bytes counted, {PASSES} passes each\n");
        let (table, expected) = (&table, records.wrapping_mul(PASSES * threads as u64));
        let competitors = WORKS.map(|(name, role, work)| {
            Competitor::new(name, role, move || match work(table, threads) {
                (took, sum) if sum == expected => Ok(took),
                (_, sum) => Err(Error::new(format!("the checksum is {sum:#x}, not {expected:#x}"))),
            })
        });
        let comparison = alternate("cycles a pass", 1, args.rounds, competitors.into())?;
        println!("{}\n", comparison.render());
        let off = comparison.figures.iter().find(|figures| figures.name == OFF).map(|off| median(&off.rounds));
        for figures in comparison.figures.iter().filter(|figures| figures.name != OFF) {
            println!("{} / {OFF}: {:.3}", figures.name, median(&figures.rounds) / off.unwrap_or(f64::NAN));
        }
        println!();
    }
    Ok(())
}

/// Runs the scans; each thread counts with its own closure from `prepare`.
fn scans<C: FnMut(u64)>(table: &Table, threads: usize, prepare: impl Fn() -> C + Sync) -> (f64, u64) {
    together(threads, PASSES, |_| {
        let mut count = prepare();
        move |passes| (0..passes).fold(0, |sum: u64, _| sum.wrapping_add(table.scan(&mut count)))
    })
}

fn off(table: &Table, threads: usize) -> (f64, u64) {
    scans(table, threads, || |_| ())
}

fn per_thread(table: &Table, threads: usize) -> (f64, u64) {
    let (rows, bytes) = (Counter::new(), Counter::new());
    scans(table, threads, || {
        let (rows, bytes) = (rows.local(), bytes.local());
        move |length| {
            rows.increment();
            bytes.add(length);
        }
    })
}

fn per_processor(table: &Table, threads: usize) -> (f64, u64) {
    let (rows, bytes) = (Counter::new(), Counter::new());
    together(threads, PASSES, |_| {
        |passes| {
            let (rows, bytes) = (rows.adder(), bytes.adder());
            let mut count = |length| {
                rows.increment();
                bytes.add(length);
            };
            (0..passes).fold(0, |sum: u64, _| sum.wrapping_add(table.scan(&mut count)))
        }
    })
}

fn racy(table: &Table, threads: usize) -> (f64, u64) {
    let (rows, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    scans(table, threads, || {
        |length| {
            rows.store(rows.load(Relaxed) + 1, Relaxed);
            bytes.store(bytes.load(Relaxed) + length, Relaxed);
        }
    })
}

fn shared(table: &Table, threads: usize) -> (f64, u64) {
    let (rows, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    scans(table, threads, || {
        |length| {
            rows.fetch_add(1, Relaxed);
            bytes.fetch_add(length, Relaxed);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scan_reads_the_whole_table() {
        let table = Table::new(50);
        let expected = table.scan(|_| ()).wrapping_mul(2 * PASSES);
        for (name, _, work) in WORKS {
            assert_eq!(work(&table, 2).1, expected, "{name}");
        }
    }
}
