//! An example to adapt: records a queue that four threads use with random preemptions, checks the history, and draws the result.
//!
//! `cargo run -p millstream-recorder --example my_queue`, then open `my_queue.html`.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::{fs, thread};

use millstream_history::timeline::Timeline;
use millstream_history::{Kind, Op, Options, check};
use millstream_recorder::{Preemption, Recorder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let queue = Mutex::new(VecDeque::new()); // put yours here
    let (recorder, preemption) = (Recorder::new(), Preemption::start()?);
    thread::scope(|scope| {
        for thread in 0..4 {
            let (queue, mut log) = (&queue, recorder.log());
            scope.spawn(move || {
                for n in 0..10_000 {
                    let value = 4 * n + thread;
                    log.record(Op::ENQUEUE, value, || queue.lock().unwrap().push_back(value));
                    // There are fewer dequeues than enqueues, so the queue does not stay nearly empty: a queue of one value
                    // behaves like a stack.
                    if n % 3 > 0 {
                        log.record(Op::DEQUEUE, (), || queue.lock().unwrap().pop_front());
                    }
                    if n % 8 == 0 {
                        thread::yield_now();
                    }
                }
            });
        }
    });
    drop(preemption);
    let history = recorder.finish();
    let verdict = check(&history, &Kind::Queue.into(), &Options::default())?;
    fs::write("my_queue.html", Timeline::new("my queue", &history, &verdict).html())?;
    println!("{} operations, linearizable: {:?}", history.len(), verdict.holds());
    Ok(())
}
