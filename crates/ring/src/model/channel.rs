//! Models of channels: one and many senders and receivers, batches, slots given up, ends that leave, and tasks.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
// The standard types: loom does not explore them, but it explores the wake-up that follows each store.
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use loom::cell::UnsafeCell;
use loom::thread;
use millstream_verify_random::depth;

use super::{explore, options};
use crate::Options;
use crate::channel::{self, Receiver, Sender};
use crate::sequencer::Sequencer;

/// Receives all values until the channel is disconnected; returns them in order.
fn drain<P: Sequencer, C: Sequencer>(receiver: &Receiver<Box<u32>, P, C>) -> Vec<u32> {
    receiver.iter().map(|value| *value).collect()
}

fn send<P: Sequencer, C: Sequencer>(sender: Sender<Box<u32>, P, C>, values: std::ops::Range<u32>) {
    values.for_each(|n| sender.send(Box::new(n)).expect("the receiver stays"));
}

#[test]
fn one_to_one_passes_every_value_and_wakes_both_sides() {
    explore(2, || {
        let (sender, receiver) = channel::spsc(options(1));
        let producer = thread::spawn(move || send(sender, 0..3));
        assert_eq!(drain(&receiver), [0, 1, 2]);
        producer.join().unwrap();
    });
}

#[test]
fn two_producers_lose_and_repeat_nothing() {
    explore(1, || {
        let (sender, receiver) = channel::mpsc(options(2));
        let other = sender.clone();
        let end = depth(11, 12);
        let producers = [thread::spawn(move || send(sender, 0..1)), thread::spawn(move || send(other, 10..end))];
        let received = drain(&receiver);
        let of = |first: u32| received.iter().copied().filter(|n| n / 10 == first / 10).collect::<Vec<_>>();
        assert_eq!((of(0), of(10), received.len()), (vec![0], (10..end).collect(), of(10).len() + 1));
        producers.into_iter().for_each(|producer| producer.join().unwrap());
    });
}

/// While a consumer polls, a sender does not wake any other consumer. So the polling consumer must see the event.
#[test]
fn a_polling_consumer_passes_on_the_event_for_which_no_other_was_woken() {
    explore(depth(1, 2) as usize, || {
        let (sender, receiver) = channel::spmc::<Box<u32>>(Options::new(2));
        let other = receiver.clone();
        let consumer = thread::spawn(move || *other.recv().expect("the sender stays"));
        let producer = thread::spawn(move || {
            (0..2).for_each(|n| sender.send(Box::new(n)).expect("the receivers stay"));
            sender
        });
        let own = *receiver.recv().expect("the sender stays");
        assert_eq!(own + consumer.join().unwrap(), 1);
        drop(producer.join().unwrap());
    });
}

#[test]
fn two_consumers_share_all_values() {
    explore(1, || {
        let (sender, receiver) = channel::spmc(options(1));
        let other = receiver.clone();
        let end = depth(1, 2);
        let consumer = thread::spawn(move || drain(&other));
        let producer = thread::spawn(move || send(sender, 0..end));
        let mut received = drain(&receiver);
        received.extend(consumer.join().unwrap());
        received.sort_unstable();
        assert_eq!(received, (0..end).collect::<Vec<_>>());
        producer.join().unwrap();
    });
}

/// The receiver writes to `done` and then ends the channel with `end`, which may return the receiver to keep it alive.
/// A sender that learns of the end checks `done`.
fn the_end_shows_what_came_before<P: Sequencer + 'static, C: Sequencer + 'static>(
    (sender, receiver): (Sender<Box<u32>, P, C>, Receiver<Box<u32>, P, C>),
    end: impl FnOnce(Receiver<Box<u32>, P, C>) -> Option<Receiver<Box<u32>, P, C>> + 'static,
) {
    let done = Arc::new(UnsafeCell::new(false));
    let doing = Arc::clone(&done);
    let consumer = thread::spawn(move || {
        // SAFETY: the sender reads only after the end; loom reports any other access.
        doing.with_mut(|done| unsafe { *done = true });
        end(receiver)
    });
    while sender.send(Box::new(0)).is_ok() {}
    // SAFETY: the receiver wrote before the end; loom reports any other access.
    assert!(done.with(|done| unsafe { *done }));
    consumer.join().unwrap();
}

#[test]
fn a_sender_that_learns_that_the_receiver_has_left_sees_its_writes() {
    explore(2, || {
        the_end_shows_what_came_before(channel::spsc(options(1)), |receiver| {
            drop(receiver);
            None
        });
    });
}

#[test]
fn a_sender_that_learns_of_a_closed_channel_sees_earlier_writes() {
    explore(1, || {
        the_end_shows_what_came_before(channel::mpsc(options(1)), |receiver| {
            receiver.close();
            Some(receiver)
        });
    });
}

#[test]
fn a_slot_that_is_given_up_holds_no_receiver_up() {
    explore(1, || {
        let (mut sender, receiver) = channel::mpsc(options(2));
        let other = sender.clone();
        let end = depth(0, 1);
        let producers = [
            thread::spawn(move || {
                drop(sender.reserve().expect("the receiver stays"));
                send(sender, 0..end);
            }),
            thread::spawn(move || send(other, 10..11)),
        ];
        let mut received = drain(&receiver);
        received.sort_unstable();
        assert_eq!(received, (0..end).chain(10..11).collect::<Vec<_>>());
        producers.into_iter().for_each(|producer| producer.join().unwrap());
    });
}

#[test]
fn batches_lose_and_reorder_nothing() {
    explore(2, || {
        let (sender, receiver) = channel::mpsc(options(2));
        let producer = thread::spawn(move || {
            let mut batch = vec![Box::new(0), Box::new(1), Box::new(2)];
            sender.send_many(&mut batch).expect("the receiver stays");
        });
        let mut received = Vec::new();
        while receiver.recv_many(&mut received, 2).is_ok() {}
        assert_eq!(received, [Box::new(0), Box::new(1), Box::new(2)]);
        producer.join().unwrap();
    });
}

#[test]
fn a_sender_learns_that_the_receiver_is_gone_and_nothing_leaks() {
    explore(2, || {
        let (sender, receiver) = channel::mpsc(options(1));
        let producer = thread::spawn(move || (0..3).take_while(|&n| sender.send(Box::new(n)).is_ok()).count());
        let first = receiver.recv();
        assert_eq!(first, Ok(Box::new(0)));
        drop(receiver);
        producer.join().unwrap();
    });
}

#[test]
fn values_sent_before_the_end_are_received_and_none_is_sent_after_it() {
    explore(2, || {
        let (sender, receiver) = channel::mpsc(options(1));
        let other = sender.clone();
        let producers =
            [sender, other].map(|sender| thread::spawn(move || usize::from(sender.send(Box::new(0)).is_ok())));
        receiver.close();
        let received = drain(&receiver).len();
        assert_eq!(producers.map(|producer| producer.join().unwrap()).iter().sum::<usize>(), received);
    });
}

#[test]
fn the_end_ends_every_receivers_wait() {
    explore(1, || {
        let (sender, receiver) = channel::mpmc(options(1));
        let other = receiver.clone();
        // The sender stays until the receivers' waits have ended, because its departure would also end them.
        let producer = thread::spawn(move || (usize::from(sender.send(Box::new(0)).is_ok()), sender));
        let consumer = thread::spawn(move || drain(&other).len());
        receiver.close();
        let received = drain(&receiver).len() + consumer.join().unwrap();
        assert_eq!(producer.join().unwrap().0, received);
    });
}

#[test]
fn a_value_sent_before_another_thread_sees_the_end_is_received() {
    explore(2, || {
        let (sender, receiver) = channel::mpsc(options(1));
        let producer = thread::spawn(move || {
            sender.send(Box::new(0)).expect("the receiver stays");
            sender.close();
            sender
        });
        assert_eq!(drain(&receiver), [0]);
        producer.join().unwrap();
    });
}

/// The channel is closed while a task and a thread wait and a slot is claimed. The completion of that slot wakes one of
/// them, and must also tell the other that no more values will come. Both waiters have executed their heavy fences long
/// before, and the wake-up does not make visible to the sender what they have seen.
#[test]
fn the_last_value_ends_the_wait_of_a_receiver_that_knows_of_the_end() {
    explore(1, || {
        let (sender, receiver) = channel::mpmc(options(1));
        let other = receiver.clone();
        let sender = Box::into_raw(Box::new(sender));
        // SAFETY: the sender is freed at the end, when the thread with its permit has ended.
        let permit = unsafe { &mut *sender }.reserve().expect("the receivers stay");
        let consumer = thread::spawn(move || drain(&other).len());
        let producer = thread::spawn(move || permit.send(Box::new(0)));
        let received = Cell::new(0);
        let task = async {
            while receiver.recv_async().await.is_ok() {
                received.set(received.get() + 1);
            }
        };
        // The task begins to wait before the channel is closed.
        both(task, async { receiver.close() });
        assert_eq!(received.get() + consumer.join().unwrap(), 1);
        producer.join().unwrap();
        // The sender stays until the receivers' waits have ended, because its departure would also end them. SAFETY:
        // the pointer comes from the box above, and no other reference to the sender is left.
        drop(unsafe { Box::from_raw(sender) });
    });
}

#[test]
fn tasks_are_woken() {
    explore(2, || {
        let (sender, mut receiver) = channel::spsc(options(1));
        let producer = thread::spawn(move || send(sender, 0..2));
        loom::future::block_on(async {
            for n in 0..2 {
                assert_eq!(receiver.recv_async().await, Ok(Box::new(n)));
            }
        });
        producer.join().unwrap();
    });
}

#[test]
fn a_task_that_sends_is_woken() {
    explore(2, || {
        let (mut sender, receiver) = channel::spsc(options(1));
        let consumer = thread::spawn(move || drain(&receiver));
        loom::future::block_on(async {
            for n in 0..2 {
                assert_eq!(sender.send_async(Box::new(n)).await, Ok(()));
            }
        });
        drop(sender);
        assert_eq!(consumer.join().unwrap(), [0, 1]);
    });
}

#[test]
fn tasks_that_send_and_receive_batches_are_woken() {
    explore(2, || {
        let (mut sender, mut receiver) = channel::spsc(options(1));
        let producer = thread::spawn(move || {
            let mut batch = vec![Box::new(0), Box::new(1)];
            assert_eq!(loom::future::block_on(sender.send_many_async(&mut batch)), Ok(()));
        });
        let mut received = Vec::new();
        while loom::future::block_on(receiver.recv_many_async(&mut received, 2)).is_ok() {}
        assert_eq!(received, [Box::new(0), Box::new(1)]);
        producer.join().unwrap();
    });
}

/// The receivers may complete at the same time, in either order; one of them must wake the task.
#[test]
fn a_task_that_sends_is_woken_by_either_of_two_receivers() {
    explore(2, || {
        let (mut sender, receiver) = channel::spmc(options(2));
        (0..2).for_each(|n| sender.send(Box::new(n)).expect("the receivers stay"));
        let receivers = [receiver.clone(), receiver].map(|receiver| {
            thread::spawn(move || {
                receiver.recv().expect("the sender stays");
                receiver
            })
        });
        assert_eq!(loom::future::block_on(sender.send_async(Box::new(2))), Ok(()));
        for receiver in receivers {
            receiver.join().unwrap();
        }
    });
}

#[test]
fn each_of_two_tasks_that_send_is_woken() {
    explore(1, || {
        let (sender, receiver) = channel::mpsc(options(1));
        let other = sender.clone();
        let task = thread::spawn(move || loom::future::block_on(other.send_async(Box::new(1))));
        let consumer = thread::spawn(move || drain(&receiver).len());
        assert_eq!(loom::future::block_on(sender.send_async(Box::new(0))), Ok(()));
        drop(sender);
        assert_eq!((task.join().unwrap(), consumer.join().unwrap()), (Ok(()), 2));
    });
}

/// One receiver may complete behind a gap, and wake a task that finds no free slot. The other then wakes a task for
/// each of two slots.
#[test]
fn each_of_two_tasks_that_send_is_woken_by_two_receivers() {
    explore(1, || {
        let (sender, receiver) = channel::mpmc(options(2));
        (0..2).for_each(|n| sender.send(Box::new(n)).expect("the receivers stay"));
        let receivers = [receiver.clone(), receiver].map(|receiver| {
            thread::spawn(move || {
                receiver.recv().expect("the senders stay");
                receiver
            })
        });
        let other = sender.clone();
        both(sender.send_async(Box::new(2)), other.send_async(Box::new(3)));
        for receiver in receivers {
            receiver.join().unwrap();
        }
    });
}

/// The waker of one of two tasks on this thread: records whether that task was woken.
struct Own {
    woken: AtomicBool,
    thread: Waker,
}

impl Wake for Own {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed);
        self.thread.wake_by_ref();
    }
}

/// Runs two tasks to their ends, on one thread. Polls a task only when it was woken; the first task goes first.
fn both<T>(one: impl Future<Output = T>, other: impl Future<Output = T>) {
    let mut running: [Option<Pin<&mut dyn Future<Output = T>>>; 2] = [Some(pin!(one)), Some(pin!(other))];
    let mut own = None;
    loom::future::block_on(poll_fn(|context| {
        let new = || Arc::new(Own { woken: AtomicBool::new(true), thread: context.waker().clone() });
        let own = own.get_or_insert_with(|| [new(), new()]);
        for (task, own) in running.iter_mut().zip(own) {
            if own.woken.swap(false, Ordering::Relaxed)
                && let Some(future) = task
                && future.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(own)))).is_ready()
            {
                *task = None;
            }
        }
        if running.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    }));
}

/// A value that counts its live instances.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(left: &Arc<AtomicUsize>) -> Self {
        left.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(left))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Senders send while the receivers leave. Afterwards no value is left, although the senders still exist.
fn nothing_outlives_the_receivers<P: Sequencer + 'static, C: Sequencer + 'static>(
    senders: Vec<Sender<Counted, P, C>>,
    receivers: Vec<Receiver<Counted, P, C>>,
) {
    let left = Arc::default();
    let sending = senders.into_iter().map(|sender| {
        let left = Arc::clone(&left);
        thread::spawn(move || {
            let _ = sender.send(Counted::new(&left));
            sender
        })
    });
    let sending: Vec<_> = sending.collect();
    let mut receivers = receivers.into_iter();
    let last = receivers.next();
    let leaving: Vec<_> = receivers.map(|receiver| thread::spawn(move || drop(receiver))).collect();
    drop(last);
    let senders: Vec<_> = sending.into_iter().map(|sender| sender.join().unwrap()).collect();
    leaving.into_iter().for_each(|leaving| leaving.join().unwrap());
    assert_eq!(left.load(Ordering::Relaxed), 0, "a value outlives the last receiver");
    drop(senders);
}

#[test]
fn a_value_that_a_sole_sender_sends_while_the_receiver_leaves_is_dropped() {
    explore(3, || {
        let (sender, receiver) = channel::spsc(options(2));
        nothing_outlives_the_receivers(vec![sender], vec![receiver]);
    });
}

#[test]
fn values_that_senders_send_while_the_receiver_leaves_are_dropped() {
    explore(2, || {
        let (sender, receiver) = channel::mpsc(options(2));
        nothing_outlives_the_receivers(vec![sender.clone(), sender], vec![receiver]);
    });
}

#[test]
fn a_value_sent_while_the_last_of_two_receivers_leaves_is_dropped() {
    explore(2, || {
        let (sender, receiver) = channel::mpmc(options(2));
        nothing_outlives_the_receivers(vec![sender], vec![receiver.clone(), receiver]);
    });
}
