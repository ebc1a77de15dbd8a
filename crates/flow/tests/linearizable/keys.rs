//! Keyed tokens: each key is a separate semaphore. The broken twin is a table of keys that makes a key twice.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use millstream_flow::{Flow, Need};
use millstream_history::{Kind, Model, Op};
use millstream_recorder::Recorder;
use millstream_verify_random::stress;

use crate::{Logs, assert_caught, assert_holds, busy, workers};

/// The flow has more keys than may exist at once, so they are forgotten and made again all the time.
#[test]
fn each_key_is_a_semaphore_however_often_it_is_forgotten() {
    for (tokens, threads, keys_most) in [(1, 2, 2), (2, 8, 3)] {
        let recorder = Recorder::new();
        let logs = Logs::new(&recorder, threads);
        let mut flow = Flow::builder::<()>("keys");
        flow.workers(threads);
        let hosts = flow.keyed_tokens("hosts", tokens);
        flow.max_keys(hosts, keys_most);
        let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
        let inside = logs.clone();
        let key = |unit: &u64| (unit % 5) as u32;
        flow.stage(work, move |unit: &mut u64, _| {
            inside.with(|log| {
                log.on(key(unit)).record(Op::ACQUIRE, (), || ());
                busy(*unit / 5);
                log.record(Op::RELEASE, (), || ());
            });
            Ok(())
        })
        .need(Need::keyed(hosts, move |unit: &u64| key(unit).to_string()))
        .to(done);
        flow.build(work).unwrap().run(0..600 * stress());
        logs.close();
        let history = recorder.finish();
        assert_eq!(history.len() as u64, 1200 * stress());
        assert_holds(&history, &Model::new(Kind::Semaphore).with_capacity(tokens));
    }
}

/// A table of keys that searches under one lock and inserts under another. Two workers make the same key, and each copy
/// has its own token.
#[test]
fn a_key_that_is_made_twice_is_caught() {
    assert_caught("key-made-twice", "a key that two workers make at once", &Kind::Mutex.into(), || {
        let table: Mutex<HashMap<u64, Arc<AtomicBool>>> = Mutex::default();
        workers(2, |log| {
            for unit in 0..40 {
                let key = unit / 4;
                let known = table.lock().unwrap().get(&key).cloned();
                let held = known.unwrap_or_else(|| {
                    busy(unit + 1);
                    let made = Arc::new(AtomicBool::new(false));
                    table.lock().unwrap().insert(key, made.clone());
                    made
                });
                while held.swap(true, Ordering::Acquire) {
                    thread::yield_now();
                }
                log.on(key as u32).record(Op::ACQUIRE, (), || ());
                busy(unit + 2);
                log.record(Op::RELEASE, (), || ());
                held.store(false, Ordering::Release);
            }
        })
    });
}
