//! Every lock: no two threads hold it at once.

use crate::recorded::{a_while, disturb, record};
use crate::verdict::{assert_caught, assert_holds};
use millstream_history::{Kind, Op};
use millstream_sync::lock::lock_api::RawMutex;
use millstream_sync::lock::{Adaptive, Tas, Ticket, Ttas, TtasBackoff};
use millstream_verify_random::{Random, stress};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Every fourth attempt does not wait. The lock does not promise when such an attempt fails, so a failure is recorded
/// as an operation that failed, without a result.
fn excludes<L: RawMutex + Sync>() {
    let mut random = Random::new(millstream_verify_random::seed());
    for threads in [1, 2, 8] {
        let lock = L::INIT;
        let history = record(threads, &mut random, |log, random| {
            for _ in 0..4000 / threads * stress() {
                disturb(random);
                if random.below(4) == 0 {
                    log.begin(Op::ACQUIRE, ());
                    if !lock.try_lock() {
                        log.fail();
                        continue;
                    }
                    log.end(true);
                } else {
                    log.record(Op::ACQUIRE, (), || lock.lock());
                }
                disturb(random);
                // SAFETY: this thread has acquired the lock above.
                log.record(Op::RELEASE, (), || unsafe { lock.unlock() });
            }
        });
        assert_holds(&history, Kind::Mutex);
    }
}

#[test]
fn every_lock_excludes() {
    excludes::<Tas>();
    excludes::<Ttas>();
    excludes::<TtasBackoff>();
    excludes::<Ticket>();
    excludes::<Adaptive>();
}

/// Test-and-test-and-set without the second test: the twin believes that it has acquired a lock that was free a moment
/// ago.
#[test]
fn a_lock_that_tests_and_does_not_set_atomically_is_caught() {
    let mut random = Random::new(millstream_verify_random::seed());
    assert_caught("test-and-no-set", "a lock that checks whether it is free, and then takes it", Kind::Mutex, || {
        let taken = AtomicBool::new(false);
        record(3, &mut random, |log, random| {
            for _ in 0..60 {
                log.record(Op::ACQUIRE, (), || {
                    while taken.load(Ordering::Acquire) {
                        thread::yield_now();
                    }
                    disturb(random);
                    taken.store(true, Ordering::Release);
                });
                a_while();
                log.record(Op::RELEASE, (), || taken.store(false, Ordering::Release));
            }
        })
    });
}
