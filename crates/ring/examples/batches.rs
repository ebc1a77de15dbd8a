//! Several producers, and a receiver that takes what they send in batches: 64 lines, or those of 10 ms, whichever comes first.
//!
//! A journal is written like this: each write costs much, so it should be of many lines, but no line should wait for long.

use std::thread;
use std::time::{Duration, Instant};

use millstream_ring::channel::{self, Receiver, RecvTimeoutError};

const PRODUCERS: u32 = 3;
const LINES: u32 = 1000;
const BATCH: usize = 64;
const DELAY_MOST: Duration = Duration::from_millis(10);

fn main() {
    let (sender, receiver) = channel::mpsc(1024);
    let (mut lines, mut writes) = (0, 0);
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let sender = sender.clone();
            scope.spawn(move || {
                for n in 0..LINES {
                    sender.send(format!("producer {producer}, line {n}")).expect("the journal stays");
                    if n % 100 == 0 {
                        // Now and then nothing happens for a while.
                        thread::sleep(Duration::from_millis(3));
                    }
                }
            });
        }
        // Ours: when all senders are gone, the receiver learns it.
        drop(sender);
        let mut batch = Vec::with_capacity(BATCH);
        while gather(&receiver, &mut batch) {
            // Here they would be written.
            (lines, writes) = (lines + batch.len(), writes + 1);
            batch.clear();
        }
    });
    assert_eq!(lines, (PRODUCERS * LINES) as usize);
    println!("{lines} lines in {writes} writes");
}

/// Waits for a first line, then for as many as make a batch, or for as long as the first may wait. False when no more can come.
fn gather(receiver: &Receiver<String>, batch: &mut Vec<String>) -> bool {
    if receiver.recv_many(batch, BATCH).is_err() {
        return false;
    }
    let deadline = Instant::now() + DELAY_MOST;
    while let missing @ 1.. = BATCH - batch.len() {
        match receiver.recv_many_deadline(batch, missing, deadline) {
            Ok(_) => (),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    true
}
