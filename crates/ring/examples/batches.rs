//! Several producers, and a receiver that takes their lines in batches: 64 lines, or those that arrive within 10 ms.
//!
//! A journal is a typical use: each write is expensive, so it should contain many lines, but no line should wait for
//! long.

use std::thread;
use std::time::{Duration, Instant};

use millstream_ring::channel::{self, Receiver, RecvTimeoutError};

const PRODUCERS: u32 = 3;
const LINES: u32 = 1000;
const BATCH: usize = 64;
const MAX_DELAY: Duration = Duration::from_millis(10);

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
                        // Now and then a producer is idle.
                        thread::sleep(Duration::from_millis(3));
                    }
                }
            });
        }
        // The threads use clones. Without this drop, one sender would remain, and the receiver would wait without end.
        drop(sender);
        let mut batch = Vec::with_capacity(BATCH);
        while gather(&receiver, &mut batch) {
            // A journal would write the batch here.
            (lines, writes) = (lines + batch.len(), writes + 1);
            batch.clear();
        }
    });
    assert_eq!(lines, (PRODUCERS * LINES) as usize);
    println!("{lines} lines in {writes} writes");
}

/// Waits for a first line, then for more until the batch is full or the first line has waited long enough. Returns
/// `false` when no more lines can come.
fn gather(receiver: &Receiver<String>, batch: &mut Vec<String>) -> bool {
    if receiver.recv_many(batch, BATCH).is_err() {
        return false;
    }
    let deadline = Instant::now() + MAX_DELAY;
    while let missing @ 1.. = BATCH - batch.len() {
        match receiver.recv_many_deadline(batch, missing, deadline) {
            Ok(_) => (),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    true
}
