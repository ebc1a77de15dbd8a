//! Properties of every kind of event count, one property per test, with both kinds of fences.
#![cfg(all(feature = "std", not(loom)))]

#[path = "support/asleep.rs"]
mod asleep;
#[path = "support/fences.rs"]
mod fences;

use std::fs;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use asleep::{thread_number, until_asleep};
use millstream_sync::eventcount::parameters::{InPlace, Kind, Many, TwoWord};
use millstream_sync::eventcount::{Count, Key, SpinPolicy, Waited};

macro_rules! for_each_kind {
    ($($property:ident)*) => {
        for_each_kind!(@ many_32 Many<u32> [$($property)*]);
        for_each_kind!(@ many_64 Many<u64> [$($property)*]);
        for_each_kind!(@ sole_32 InPlace<u32> [$($property)*]);
        for_each_kind!(@ sole_64 InPlace<u64> [$($property)*]);
        for_each_kind!(@ two_word_32 TwoWord<u32> [$($property)*]);
        for_each_kind!(@ two_word_64 TwoWord<u64> [$($property)*]);
    };
    (@ $module:ident $kind:ty [$($property:ident)*]) => {
        mod $module {
            use super::*;
            $(#[test] fn $property() { super::$property::<$kind>(); })*
        }
    };
}

for_each_kind! {
    the_value_is_the_sum_of_the_additions
    the_value_wraps_around_and_still_wakes
    a_wait_for_a_changed_count_returns_at_once
    a_wait_with_a_deadline_does_not_end_before_it
    a_deadline_in_the_past_does_not_wait
    a_sleeping_thread_is_woken
    all_sleeping_threads_are_woken
    no_more_waiters_are_woken_than_asked
    an_addition_of_zero_wakes_waiters_that_missed_a_change
    a_waiter_that_gave_up_does_not_keep_others_from_waking
    naps_end_with_a_change
    a_waiting_task_is_woken
    a_task_polled_again_is_woken_by_its_new_waker
    a_dropped_task_hands_its_wake_up_on
}

#[test]
fn everything_holds_with_symmetric_fences() {
    fences::again_with_symmetric_fences("everything_holds_with_symmetric_fences");
}

/// A count whose only incrementer is the test's main thread.
struct Subject<K: Kind>(Arc<Count<K>>);

impl<K: Kind> Subject<K> {
    fn new() -> Self {
        Self::starting_at(0)
    }

    fn starting_at(value: u64) -> Self {
        Subject(Arc::new(Count::starting_at(value)))
    }

    fn add(&mut self, n: u64) {
        self.add_waking(n, usize::MAX);
    }

    fn add_waking(&mut self, n: u64, most: usize) {
        // SAFETY: the subject is borrowed mutably and the other threads only wait, so no other increment runs.
        unsafe { self.0.add_waking_unchecked(n, most) }
    }

    /// Puts threads to sleep until the count differs from `key`; each of them reports when it wakes.
    fn sleepers(&self, threads: usize, key: Key) -> mpsc::Receiver<usize> {
        self.numbered_sleepers(threads, key).1
    }

    /// Like [`sleepers`](Self::sleepers), with the threads' kernel ids.
    fn numbered_sleepers(&self, threads: usize, key: Key) -> (Vec<i32>, mpsc::Receiver<usize>) {
        let (woken, receiver) = mpsc::channel();
        let mut numbers = Vec::new();
        for sleeper in 0..threads {
            let (count, woken) = (Arc::clone(&self.0), woken.clone());
            let (started, number) = mpsc::channel();
            thread::spawn(move || {
                started.send(thread_number()).unwrap();
                let waited = count.wait_with(key, None, SpinPolicy::NONE);
                assert_eq!(waited, Waited::Changed);
                let _ = woken.send(sleeper);
            });
            let number = number.recv().unwrap();
            until_asleep(std::process::id() as i32, number);
            numbers.push(number);
        }
        (numbers, receiver)
    }
}

const SOON: Duration = Duration::from_millis(30);
const LONG: Duration = Duration::from_secs(60);

fn the_value_is_the_sum_of_the_additions<K: Kind>() {
    let mut subject = Subject::<K>::starting_at(40);
    subject.add(1);
    subject.add(0);
    subject.add(1000);
    assert_eq!(subject.0.value(), 1041);
    assert_eq!(subject.0.snapshot(), subject.0.key_of(1041));
}

fn the_value_wraps_around_and_still_wakes<K: Kind>() {
    for n in [1, 3, 1000] {
        let mut subject = Subject::<K>::starting_at(u64::MAX);
        let last = subject.0.value();
        assert!([31, 32, 63, 64].contains(&last.count_ones()));
        let woken = subject.sleepers(2, subject.0.snapshot());
        subject.add(n);
        assert_eq!(subject.0.value(), n - 1);
        for _ in 0..2 {
            woken.recv_timeout(LONG).expect("both wake");
        }
        let woken = subject.sleepers(1, subject.0.snapshot());
        subject.add(1);
        woken.recv_timeout(LONG).expect("the waiter wakes after the wrap");
    }
}

fn a_wait_for_a_changed_count_returns_at_once<K: Kind>() {
    let mut subject = Subject::<K>::new();
    let key = subject.0.snapshot();
    subject.add(1);
    assert!(subject.0.has_changed(key));
    subject.0.wait(key);
    assert_eq!(subject.0.wait_with(key, Some(Instant::now()), SpinPolicy::DEFAULT), Waited::Changed);
    assert_eq!(subject.0.wait_with(key, None, SpinPolicy::NONE), Waited::Changed);
}

fn a_wait_with_a_deadline_does_not_end_before_it<K: Kind>() {
    let subject = Subject::<K>::new();
    let deadline = Instant::now() + SOON;
    assert_eq!(subject.0.wait_with(subject.0.snapshot(), Some(deadline), SpinPolicy::DEFAULT), Waited::TimedOut);
    assert!(Instant::now() >= deadline);
    let deadline = Instant::now() + SOON;
    assert_eq!(subject.0.wait_for_with(|| None::<()>, Some(deadline), SpinPolicy::DEFAULT), None);
    assert!(Instant::now() >= deadline);
}

fn a_deadline_in_the_past_does_not_wait<K: Kind>() {
    let subject = Subject::<K>::new();
    let key = subject.0.snapshot();
    for policy in [SpinPolicy::NONE, SpinPolicy::DEFAULT, SpinPolicy::NONE.naps(1000, Duration::from_millis(1))] {
        assert_eq!(subject.0.wait_with(key, Some(Instant::now()), policy), Waited::TimedOut);
    }
}

fn a_sleeping_thread_is_woken<K: Kind>() {
    let mut subject = Subject::<K>::new();
    for _ in 0..20 {
        let woken = subject.sleepers(1, subject.0.snapshot());
        subject.add(1);
        woken.recv_timeout(LONG).expect("the sleeper wakes");
    }
}

fn all_sleeping_threads_are_woken<K: Kind>() {
    let mut subject = Subject::<K>::new();
    let woken = subject.sleepers(8, subject.0.snapshot());
    subject.add(1);
    for left in (0..8).rev() {
        assert!(woken.recv_timeout(LONG).is_ok(), "{} waiters sleep on", left + 1);
    }
}

fn no_more_waiters_are_woken_than_asked<K: Kind>() {
    let mut subject = Subject::<K>::new();
    let (sleepers, woken) = subject.numbered_sleepers(5, subject.0.snapshot());
    until_no_naps(&sleepers);
    let mut left = 5;
    for most in [0, 1, 3] {
        subject.add_waking(1, most);
        for _ in 0..most {
            woken.recv_timeout(LONG).expect("as many wake as asked");
        }
        left -= most;
        assert!(woken.recv_timeout(SOON).is_err(), "{left} waiters should have slept on");
    }
    // This asks for more wake-ups than there are waiters.
    subject.add_waking(1, 2);
    woken.recv_timeout(LONG).expect("the last waiter wakes");
    let woken = subject.sleepers(1, subject.0.snapshot());
    subject.add_waking(1, 1);
    woken.recv_timeout(LONG).expect("a later waiter wakes");
}

/// Waits until the sleepers no longer nap: by the timed rule they wake up and check in the first second, but not later.
fn until_no_naps(sleepers: &[i32]) {
    let began = Instant::now();
    for sleeper in sleepers {
        while !sleeps_without_limit(*sleeper).unwrap_or_else(|| began.elapsed() > Duration::from_millis(1300)) {
            assert!(began.elapsed() < LONG, "thread {sleeper} never stops napping");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Whether a thread of this process sleeps on a futex without a limit; `None` if the kernel does not report it.
fn sleeps_without_limit(thread: i32) -> Option<bool> {
    let call = fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).ok()?;
    // The words are the system call's number and its arguments, the fourth of which is the limit.
    let mut words = call.split_ascii_whitespace();
    Some(words.next() == Some(&libc::SYS_futex.to_string()) && words.nth(3) == Some("0x0"))
}

fn an_addition_of_zero_wakes_waiters_that_missed_a_change<K: Kind>() {
    let mut subject = Subject::<K>::new();
    let late = subject.sleepers(2, subject.0.snapshot());
    subject.add_waking(1, 1);
    late.recv_timeout(LONG).expect("one wakes");
    let current = subject.sleepers(1, subject.0.snapshot());
    subject.add(0);
    late.recv_timeout(LONG).expect("the other wakes now");
    assert!(current.recv_timeout(SOON).is_err(), "a waiter woke although its count did not change");
    subject.add(1);
    current.recv_timeout(LONG).expect("that waiter wakes when its count changes");
}

fn a_waiter_that_gave_up_does_not_keep_others_from_waking<K: Kind>() {
    let mut subject = Subject::<K>::new();
    let key = subject.0.snapshot();
    let woken = subject.sleepers(1, key);
    assert_eq!(subject.0.wait_with(key, Some(Instant::now() + SOON), SpinPolicy::DEFAULT), Waited::TimedOut);
    subject.add_waking(1, 1);
    woken.recv_timeout(LONG).expect("the waiter without a deadline wakes");
}

fn naps_end_with_a_change<K: Kind>() {
    let mut subject = Subject::<K>::new();
    let (count, key) = (Arc::clone(&subject.0), subject.0.snapshot());
    let policy = SpinPolicy::NONE.naps(u32::MAX, Duration::from_millis(1));
    let napping = thread::spawn(move || count.wait_with(key, None, policy));
    thread::sleep(SOON);
    subject.add(1);
    assert_eq!(napping.join().unwrap(), Waited::Changed);
}

/// A waker that counts its wake-ups and unparks a thread.
struct Alarm {
    rung: AtomicUsize,
    thread: Thread,
}

impl Alarm {
    fn new() -> Arc<Self> {
        Arc::new(Alarm { rung: AtomicUsize::new(0), thread: thread::current() })
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.rung.fetch_add(1, SeqCst);
        self.thread.unpark();
    }
}

fn poll(future: Pin<&mut impl Future<Output = ()>>, alarm: &Arc<Alarm>) -> Poll<()> {
    future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(alarm))))
}

/// Polls until ready; fails if a wake-up does not come.
fn finish(mut future: Pin<&mut impl Future<Output = ()>>, alarm: &Arc<Alarm>) {
    let began = Instant::now();
    while poll(future.as_mut(), alarm).is_pending() {
        let rung = alarm.rung.load(SeqCst);
        while alarm.rung.load(SeqCst) == rung {
            assert!(began.elapsed() < LONG, "the task was not woken");
            thread::park_timeout(SOON);
        }
    }
}

fn a_waiting_task_is_woken<K: Kind>() {
    let mut subject = Subject::<K>::new();
    for _ in 0..10 {
        let (count, target) = (Arc::clone(&subject.0), subject.0.value() + 1);
        let (waiting, waits) = mpsc::channel();
        let task = thread::spawn(move || {
            let alarm = Alarm::new();
            let mut future = pin!(count.wait_for_async(|| (count.value() >= target).then_some(())));
            assert!(poll(future.as_mut(), &alarm).is_pending());
            waiting.send(()).unwrap();
            finish(future, &alarm);
        });
        waits.recv().unwrap();
        subject.add(1);
        task.join().unwrap();
    }
}

fn a_task_polled_again_is_woken_by_its_new_waker<K: Kind>() {
    let mut subject = Subject::<K>::new();
    let count = Arc::clone(&subject.0);
    let mut future = pin!(count.wait_async(count.snapshot()));
    let [old, new] = std::array::from_fn(|_| Alarm::new());
    assert!(poll(future.as_mut(), &old).is_pending());
    assert!(poll(future.as_mut(), &new).is_pending());
    subject.add(1);
    assert!(new.rung.load(SeqCst) >= 1);
    assert!(poll(future.as_mut(), &new).is_ready());
}

fn a_dropped_task_hands_its_wake_up_on<K: Kind>() {
    let mut subject = Subject::<K>::new();
    let count = Arc::clone(&subject.0);
    let [dropped_alarm, other_alarm] = std::array::from_fn(|_| Alarm::new());
    let mut dropped = Box::pin(count.wait_async(count.snapshot()));
    let mut other = pin!(count.wait_async(count.snapshot()));
    assert!(poll(dropped.as_mut(), &dropped_alarm).is_pending());
    assert!(poll(other.as_mut(), &other_alarm).is_pending());
    subject.add_waking(1, 1);
    let rung = dropped_alarm.rung.load(SeqCst);
    // By the timed rule, the timekeeper may have woken the task as well.
    let is_woken = if millstream_fence::is_asymmetric() { rung == 1 } else { rung >= 1 };
    assert!(is_woken, "the first task in the line was woken {rung} times");
    drop(dropped);
    finish(other, &other_alarm);
}

#[test]
fn many_incrementers_lose_no_increment() {
    let count = millstream_sync::eventcount::EventCount::new();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..100_000).for_each(|_| count.increment()));
        }
    });
    assert_eq!(count.value(), 400_000);
}

#[test]
fn a_static_count_needs_no_initialization() {
    static COUNT: millstream_sync::eventcount::EventCount = millstream_sync::eventcount::EventCount::new();
    COUNT.add_waking(1, 1);
    assert_eq!(COUNT.value(), 1);
}
