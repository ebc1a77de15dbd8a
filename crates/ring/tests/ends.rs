//! The methods that both ends of a channel share, one property per test.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicUsize, Ordering};

use millstream_ring::channel::{
    self, Disconnected, Receiver, RecvTimeoutError, SendError, SendTimeoutError, Sender, TryRecvError, TrySendError,
};
use millstream_ring::sequencer::Sequencer;

#[test]
fn a_channel_is_full_at_the_requested_capacity() {
    fn of<P: Sequencer, C: Sequencer>(
        capacity: usize,
        (sender, receiver): (Sender<usize, P, C>, Receiver<usize, P, C>),
    ) {
        assert_eq!((sender.capacity(), receiver.capacity()), (capacity, capacity));
        let mut next = 0;
        for lap in 0..5 * capacity {
            let before = next;
            while sender.try_send(next).is_ok() {
                next += 1;
            }
            assert_eq!(next - before, if lap == 0 { capacity } else { 1 + lap % capacity }, "capacity {capacity}");
            assert!(sender.is_full() && receiver.is_full() && receiver.len() == capacity);
            let mut batch = vec![next];
            assert_eq!(sender.try_send_many(&mut batch), Ok(0));
            for n in 0..=(lap + 1) % capacity {
                assert_eq!(receiver.recv(), Ok(next - capacity + n));
            }
            assert!(!sender.is_full());
        }
    }
    for capacity in 1..12 {
        of(capacity, channel::spsc(capacity));
        of(capacity, channel::spmc(capacity));
        of(capacity, channel::mpsc(capacity));
        of(capacity, channel::mpmc(capacity));
    }
}

#[test]
fn threads_pass_everything_through_a_channel_of_an_odd_capacity() {
    for capacity in [1, 3, 5, 7] {
        let (sender, receiver) = channel::mpmc::<usize>(capacity);
        let (sum, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let (receiver, sum, most) = (receiver.clone(), &sum, &most);
                scope.spawn(move || {
                    for value in &receiver {
                        sum.fetch_add(value, Ordering::Relaxed);
                        most.fetch_max(receiver.len(), Ordering::Relaxed);
                    }
                });
                let sender = sender.clone();
                scope.spawn(move || (0..5000).for_each(|n| sender.send(n).unwrap()));
            }
            drop(sender);
        });
        assert_eq!(sum.into_inner(), 2 * (0..5000).sum::<usize>(), "capacity {capacity}");
        assert!(most.into_inner() <= capacity);
    }
}

#[test]
#[should_panic(expected = "a channel's capacity is between 1 and")]
fn a_capacity_of_zero_is_refused() {
    drop(channel::mpsc::<u8>(0));
}

#[test]
#[should_panic(expected = "a channel's capacity is between 1 and")]
fn a_capacity_beyond_all_memory_is_refused() {
    drop(channel::mpsc::<u8>(usize::MAX / 2));
}

#[test]
fn ends_know_their_channel() {
    let ((one, one_rx), (other, other_rx)) = (channel::mpmc::<u8>(1), channel::mpmc::<u8>(1));
    assert!(one.same_channel(&one.clone()) && one_rx.same_channel(&one_rx.clone()));
    assert!(!one.same_channel(&other) && !one_rx.same_channel(&other_rx));
}

#[test]
fn a_receiver_learns_of_the_end_before_it_has_received_the_last_values() {
    let (sender, receiver) = channel::mpsc(2);
    sender.send(1).unwrap();
    assert!(!receiver.is_disconnected());
    drop(sender);
    assert!(receiver.is_disconnected());
    assert_eq!((receiver.recv(), receiver.recv()), (Ok(1), Err(Disconnected)));
}

#[test]
fn a_sender_closes_a_channel_as_a_receiver_does() {
    let (sender, receiver) = channel::mpmc(2);
    sender.send(1).unwrap();
    sender.clone().close();
    assert!(sender.is_disconnected() && receiver.is_disconnected());
    assert_eq!(sender.send(2), Err(SendError(2)));
    assert_eq!((receiver.recv(), receiver.recv()), (Ok(1), Err(Disconnected)));
}

#[test]
fn a_slot_is_reserved_if_there_is_one() {
    let (mut sender, receiver) = channel::mpsc(1);
    drop(sender.try_reserve().unwrap());
    assert_eq!(
        sender.try_reserve().unwrap_err(),
        TrySendError::Full(()),
        "the slot was free before receivers skipped it"
    );
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    sender.try_reserve().unwrap().send(1);
    assert_eq!(receiver.recv(), Ok(1));
    drop(receiver);
    assert_eq!(sender.try_reserve().unwrap_err(), TrySendError::Disconnected(()));
}

#[test]
fn draining_takes_all_values_in_order() {
    let (sender, receiver) = channel::mpsc(5);
    for lap in 0..10 {
        (0..lap % 6).for_each(|n| sender.send(lap + n).unwrap());
        let mut drained = Vec::new();
        assert_eq!(receiver.try_recv_many(&mut drained, usize::MAX), Ok(lap % 6));
        assert!(drained.into_iter().eq(lap..lap + lap % 6));
    }
    assert_eq!(receiver.try_recv_many(&mut Vec::new(), usize::MAX), Ok(0));
}

#[test]
fn a_vector_grows_only_by_the_available_values() {
    let (sender, receiver) = channel::mpsc::<[u8; 1024]>(1 << 12);
    for _ in 0..3 {
        (0..20).for_each(|n| sender.send([n; 1024]).unwrap());
        let mut into = Vec::new();
        assert_eq!(receiver.recv_many(&mut into, usize::MAX), Ok(20));
        assert!(into.capacity() <= 40, "{}", into.capacity());
        assert_eq!(receiver.try_recv_many(&mut into, usize::MAX), Ok(0));
        assert!(into.capacity() <= 80, "{}", into.capacity());
    }
}

#[test]
fn errors_give_values_back_and_become_each_other() {
    assert_eq!(SendError(0).into_inner(), 0);
    assert_eq!(TrySendError::from(SendError(1)), TrySendError::Disconnected(1));
    assert_eq!([TrySendError::Full(1), TrySendError::Disconnected(2)].map(TrySendError::into_inner), [1, 2]);
    assert_eq!(SendTimeoutError::from(SendError(1)), SendTimeoutError::Disconnected(1));
    assert_eq!(
        [SendTimeoutError::Timeout(1), SendTimeoutError::Disconnected(2)].map(SendTimeoutError::into_inner),
        [1, 2]
    );
    assert_eq!(TryRecvError::from(Disconnected), TryRecvError::Disconnected);
    assert_eq!(RecvTimeoutError::from(Disconnected), RecvTimeoutError::Disconnected);
    let boxed: Box<dyn std::error::Error> = Box::new(TrySendError::Full(std::cell::Cell::new(0)));
    assert_eq!(boxed.to_string(), "the channel is full");
}
