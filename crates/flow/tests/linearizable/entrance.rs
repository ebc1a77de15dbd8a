//! The entrance: units of many threads enter in the order of a queue, whether they waited in line, were at the gate, or
//! entered directly. The broken twin is an entrance that lets a newcomer overtake units at the gate.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use millstream_flow::Flow;
use millstream_history::{History, Kind, Op};
use millstream_recorder::Recorder;
use millstream_verify_random::stress;

use crate::{Logs, assert_caught, assert_holds, busy};

#[test]
fn submitters_put_their_units_into_a_queue() {
    for (submitters, inflight) in [(1, 2), (4, 1), (4, 64), (8, 3)] {
        let recorder = Recorder::new();
        let logs = Logs::new(&recorder, 1);
        let mut flow = Flow::builder::<()>("entrance");
        flow.workers(2).inflight(inflight);
        let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
        let leaving = logs.clone();
        flow.stage(work, move |unit: &mut u64, _| {
            leaving.with(|log| log.record(Op::DEQUEUE, (), || *unit));
            busy(*unit / 3);
            Ok(())
        })
        .workers(0..=1)
        .to(done);
        let service = flow.build(work).unwrap().start();
        let each = 3000 / submitters * stress();
        thread::scope(|scope| {
            for first in (0..submitters).map(|submitter| submitter * each) {
                let (submitter, mut log) = (service.submitter(), recorder.log());
                scope.spawn(move || {
                    for unit in first..first + each {
                        busy(unit);
                        log.record(Op::ENQUEUE, unit, || submitter.send(unit).unwrap());
                    }
                });
            }
        });
        service.drain();
        logs.close();
        let history = recorder.finish();
        assert_eq!(history.len() as u64, 2 * submitters * each);
        assert_holds(&history, &Kind::Queue.into());
    }
}

/// While a worker attends the gate, units wait there, and the worker admits all of them together. Otherwise, a unit
/// enters directly, and a correct entrance first admits the units that are still at the gate.
#[derive(Default)]
struct Entrance<const EMPTIES_GATE: bool> {
    gate: Mutex<Vec<u64>>,
    queue: Mutex<VecDeque<u64>>,
}

impl<const EMPTIES_GATE: bool> Entrance<EMPTIES_GATE> {
    fn send(&self, unit: u64, attended: bool) {
        if attended {
            self.gate.lock().unwrap().push(unit);
            return;
        }
        let mut queue = self.queue.lock().unwrap();
        if EMPTIES_GATE {
            queue.extend(self.gate.lock().unwrap().drain(..));
        }
        queue.push_back(unit);
    }

    fn take(&self) -> Option<u64> {
        let mut queue = self.queue.lock().unwrap();
        queue.pop_front().or_else(|| {
            queue.extend(self.gate.lock().unwrap().drain(..));
            queue.pop_front()
        })
    }
}

/// The worker stops attending the gate between the two units.
fn passed<const EMPTIES_GATE: bool>() -> History {
    let (entrance, recorder) = (Entrance::<EMPTIES_GATE>::default(), Recorder::new());
    let (mut one, mut other, mut worker) = (recorder.log(), recorder.log(), recorder.log());
    // The pause is longer than the maximum difference between the clocks of two cores.
    let pause = || thread::sleep(Duration::from_micros(10));
    one.record(Op::ENQUEUE, 1, || entrance.send(1, true));
    pause();
    other.record(Op::ENQUEUE, 2, || entrance.send(2, false));
    for _ in 0..2 {
        pause();
        worker.record(Op::DEQUEUE, (), || entrance.take());
    }
    drop((one, other, worker));
    recorder.finish()
}

#[test]
fn a_newcomer_that_overtakes_the_gate_is_caught() {
    assert_holds(&passed::<true>(), &Kind::Queue.into());
    assert_caught(
        "passed-the-gate",
        "an entrance that lets a newcomer overtake units at the gate",
        &Kind::Queue.into(),
        passed::<false>,
    );
}
