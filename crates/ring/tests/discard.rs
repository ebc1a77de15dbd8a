//! Values whose receivers have left, and destructors and wakers that panic, one property per test.
#![cfg(not(loom))]

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

use millstream_ring::channel::{self, Receiver, Sender};
use millstream_ring::sequencer::{Multi, Sequencer};
use millstream_ring::{Options, WaitSet};
use millstream_verify_random::{Random, stress};

type Ends<T, P, C> = (Sender<T, P, C>, Receiver<T, P, C>);

/// Runs `work` when dropped.
struct OnDrop<W: FnMut()>(W);

impl<W: FnMut()> Drop for OnDrop<W> {
    fn drop(&mut self) {
        (self.0)();
    }
}

type Work = Box<dyn FnMut() + Send>;

fn on_drop(work: impl FnMut() + Send + 'static) -> OnDrop<Work> {
    OnDrop(Box::new(work))
}

fn panics() {
    std::panic::resume_unwind(Box::new("a destructor that panics"));
}

/// A task's waker that panics.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        std::panic::resume_unwind(Box::new("a waker that panics"));
    }
}

#[test]
fn values_are_dropped_when_the_last_receiver_leaves() {
    fn of<P: Sequencer, C: Sequencer>(ends: Ends<Arc<()>, P, C>) {
        let (sender, receiver) = ends;
        let value = Arc::new(());
        (0..6).for_each(|_| sender.send(Arc::clone(&value)).unwrap());
        drop(receiver.recv());
        drop(receiver);
        assert_eq!((Arc::strong_count(&value), sender.len()), (1, 0));
        assert!(sender.send(value).is_err());
    }
    of(channel::spsc(6));
    of(channel::spmc(6));
    of(channel::mpsc(6));
    of(channel::mpmc(6));
}

#[test]
fn values_stay_until_the_last_of_several_receivers_leaves() {
    let value = Arc::new(());
    let (sender, receiver) = channel::mpmc(4);
    let other = receiver.clone();
    sender.send(Arc::clone(&value)).unwrap();
    drop(receiver);
    assert_eq!((Arc::strong_count(&value), other.len()), (2, 1));
    drop(other);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_request_that_carries_its_reply_sender_ends_the_wait_for_the_reply() {
    let (requests, server) = channel::mpsc(4);
    let (reply, replies) = channel::mpsc::<u32>(1);
    requests.send(reply).unwrap();
    drop(server);
    assert!(replies.recv().is_err());
    drop(requests);
}

#[test]
fn a_value_that_is_sent_while_the_last_receiver_leaves_is_dropped() {
    fn of<P: Sequencer, C: Sequencer>(random: &mut Random, make: impl Fn() -> Ends<Arc<()>, P, C>) {
        for _ in 0..500 * stress() {
            let value = Arc::new(());
            let (sender, receiver) = make();
            let pauses = random.below(300);
            std::thread::scope(|scope| {
                let sent = Arc::clone(&value);
                let sending = scope.spawn(move || {
                    while sender.send(Arc::clone(&sent)).is_ok() {}
                    sender
                });
                (0..pauses).for_each(|_| std::hint::spin_loop());
                drop(receiver);
                let sender = sending.join().unwrap();
                assert_eq!(
                    Arc::strong_count(&value),
                    1,
                    "a value outlived the last receiver although the sender still exists"
                );
                drop(sender);
            });
        }
    }
    let mut random = Random::seeded().fork();
    of(&mut random, || channel::spsc(4));
    of(&mut random, || channel::mpsc(4));
    of(&mut random, || channel::mpmc(3));
}

#[test]
fn values_behind_a_gap_are_dropped_when_the_gap_closes() {
    for fills in [false, true] {
        let value = Arc::new(());
        let (mut sender, receiver) = channel::mpsc(4);
        let other = sender.clone();
        let permit = sender.reserve().unwrap();
        other.send(Arc::clone(&value)).unwrap();
        drop(receiver);
        assert!(other.send(Arc::clone(&value)).is_err());
        if fills {
            permit.send(Arc::clone(&value));
        } else {
            drop(permit);
        }
        assert_eq!(
            Arc::strong_count(&value),
            1,
            "a value outlived the last receiver although both senders still exist"
        );
    }
}

#[test]
fn values_behind_a_leaked_permit_are_dropped_with_the_channel() {
    let value = Arc::new(());
    let (mut sender, receiver) = channel::mpsc(4);
    let other = sender.clone();
    std::mem::forget(sender.reserve().unwrap());
    other.send(Arc::clone(&value)).unwrap();
    drop((receiver, sender, other));
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_destructor_may_use_the_channel_it_was_in() {
    let (sender, receiver) = channel::mpsc::<OnDrop<Work>>(4);
    let refused = Arc::new(AtomicUsize::new(0));
    for _ in 0..3 {
        let (own, refused) = (sender.clone(), Arc::clone(&refused));
        let uses = move || {
            let again = own.send(on_drop(|| ()));
            refused.fetch_add(usize::from(again.is_err()), Ordering::Relaxed);
            assert!(own.is_disconnected() && own.reserve_is_refused());
        };
        sender.send(on_drop(uses)).unwrap();
    }
    drop(sender);
    drop(receiver);
    assert_eq!(refused.load(Ordering::Relaxed), 3, "not every destructor found the channel disconnected");
}

trait ReserveIsRefused {
    fn reserve_is_refused(&self) -> bool;
}

impl<T: Send> ReserveIsRefused for Sender<T> {
    fn reserve_is_refused(&self) -> bool {
        self.clone().reserve().is_err()
    }
}

#[test]
fn a_destructor_that_panics_keeps_no_other_value_from_being_dropped() {
    let value = Arc::new(());
    let (sender, receiver) = channel::mpmc::<(OnDrop<Work>, Arc<()>)>(8);
    for n in 0..6 {
        let work = if n % 2 == 0 { on_drop(panics) } else { on_drop(|| ()) };
        assert!(sender.send((work, Arc::clone(&value))).is_ok());
    }
    assert!(catch_unwind(|| drop(receiver)).is_err(), "the first panic did not resume");
    assert_eq!(Arc::strong_count(&value), 1);

    let (mut sender, receiver) = channel::mpsc::<(OnDrop<Work>, Arc<()>)>(8);
    let other = sender.clone();
    std::mem::forget(sender.reserve().unwrap());
    (0..3).for_each(|_| assert!(other.send((on_drop(panics), Arc::clone(&value))).is_ok()));
    assert!(catch_unwind(|| drop((receiver, sender, other))).is_err());
    assert_eq!(Arc::strong_count(&value), 1, "a value leaked when the channel itself was dropped");
}

#[test]
fn a_send_that_drops_values_for_the_receiver_swallows_their_panics() {
    let (mut sender, receiver) = channel::mpsc::<OnDrop<Work>>(4);
    let permit = sender.reserve().unwrap();
    drop(receiver);
    assert!(catch_unwind(AssertUnwindSafe(|| permit.send(on_drop(panics)))).is_ok());
}

#[test]
fn a_set_notices_its_other_channels_when_one_has_lost_its_receiver() {
    let set = WaitSet::new();
    let (mut dead, receiver) = channel::mpsc::<Arc<()>>(Options::new(2).wait_set(&set));
    let (sender, receiver_alive) = channel::mpsc::<u32>(Options::new(2).wait_set(&set));
    let permit = dead.reserve().unwrap();
    drop(receiver);
    sender.send(1).unwrap();
    assert_eq!(set.wait(|| receiver_alive.try_recv().ok()), 1);
    drop(permit);
    drop(dead);
    std::thread::scope(|scope| {
        scope.spawn(|| sender.send(2).unwrap());
        assert_eq!(set.wait(|| receiver_alive.try_recv().ok()), 2);
    });
}

/// A task waits with a waker that panics, while the values go to another receiver.
#[test]
fn a_waker_that_panics_affects_neither_the_sender_nor_other_receivers() {
    let (sender, receiver) = channel::mpmc::<u32>(4);
    let hostile = receiver.clone();
    let mut waiting = pin!(hostile.recv_async());
    let waker = Waker::from(Arc::new(Panics));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    sender.send_many(&mut vec![1, 2]).unwrap();
    assert_eq!([receiver.recv(), receiver.recv()], [Ok(1), Ok(2)]);
}

#[test]
fn a_waker_that_panics_does_not_affect_the_receiver_that_makes_room() {
    let (sender, receiver) = channel::mpsc::<u32>(1);
    sender.send(1).unwrap();
    let [first, second] = [sender.clone(), sender];
    let mut hostile = pin!(first.send_async(2));
    let waker = Waker::from(Arc::new(Panics));
    assert!(hostile.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let received = catch_unwind(AssertUnwindSafe(|| receiver.recv()));
    assert_eq!(received.ok(), Some(Ok(1)), "the value was lost");
    assert_eq!(second.try_send(3), Ok(()));
    assert_eq!(receiver.recv(), Ok(3));
}

#[test]
fn both_ends_are_unwind_safe_for_every_type_of_value() {
    fn safe<U: std::panic::UnwindSafe + std::panic::RefUnwindSafe>(_: &U) {}
    let (sender, receiver) = channel::mpmc::<Box<dyn FnMut() + Send>>(1);
    safe(&sender);
    safe(&receiver);
    let typed: &Sender<_, Multi, Multi> = &sender;
    assert!(format!("{typed:?} {receiver:?}").contains("capacity: 1"));
}

/// A zero-sized value. Its destructor reads no memory, so only the count shows whether a value that was never written
/// is dropped.
struct Marker;

static MARKERS_DROPPED: AtomicUsize = AtomicUsize::new(0);

impl Drop for Marker {
    fn drop(&mut self) {
        MARKERS_DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_slot_of_a_leaked_permit_has_no_value_to_drop() {
    let (mut sender, receiver) = channel::mpsc(8);
    sender.try_send(Marker).unwrap();
    std::mem::forget(sender.reserve().unwrap());
    let other = sender.clone();
    other.try_send(Marker).unwrap();
    drop((sender, other, receiver));
    assert_eq!(MARKERS_DROPPED.load(Ordering::Relaxed), 2, "not exactly the two values that were sent are dropped");
}
