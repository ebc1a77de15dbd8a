//! Channels as streams and sinks, one property per test.
#![cfg(all(feature = "futures", not(loom)))]

#[path = "support/block_on.rs"]
mod block_on;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use block_on::block_on;
use millstream_ring::channel::futures_core::{FusedStream, Stream};
use millstream_ring::channel::futures_sink::Sink;
use millstream_ring::channel::{self, SendError};

/// All values of a stream.
fn collected<S: Stream>(stream: S) -> Vec<S::Item> {
    let mut stream = pin!(stream);
    let next = || block_on(poll_fn(|context| stream.as_mut().poll_next(context)));
    std::iter::from_fn(next).collect()
}

/// Feeds a sink and closes it.
fn feed<S: Sink<u32> + Unpin>(mut sink: S, values: std::ops::Range<u32>) -> Result<(), S::Error> {
    block_on(async {
        for value in values {
            poll_fn(|context| Pin::new(&mut sink).poll_ready(context)).await?;
            Pin::new(&mut sink).start_send(value)?;
        }
        poll_fn(|context| Pin::new(&mut sink).poll_close(context)).await
    })
}

#[test]
fn a_sink_feeds_a_stream_until_it_is_closed() {
    let (sender, receiver) = channel::spsc(2);
    std::thread::scope(|scope| {
        scope.spawn(|| feed(sender.into_sink(), 0..1000).unwrap());
        assert_eq!(collected(receiver.into_stream()), (0..1000).collect::<Vec<_>>());
    });
    let (sender, receiver) = channel::mpmc(3);
    std::thread::scope(|scope| {
        for own in [sender.clone(), sender] {
            scope.spawn(|| feed(own.into_sink(), 0..1000).unwrap());
        }
        let shares = [receiver.clone(), receiver].map(|own| scope.spawn(|| collected(own.into_stream())));
        let mut all = shares.map(|share| share.join().unwrap()).concat();
        all.sort_unstable();
        assert!(all.iter().copied().eq((0..2000).map(|n| n / 2)));
    });
}

#[test]
fn a_sink_gives_its_value_back_when_the_receiver_has_left() {
    let (sender, receiver) = channel::mpsc(1);
    let mut sink = sender.into_sink();
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(Pin::new(&mut sink).start_send(1), Ok(()));
    assert_eq!(Pin::new(&mut sink).start_send(2), Ok(()), "the sink did not hold one value more than the channel");
    assert_eq!(Pin::new(&mut sink).poll_ready(&mut context), Poll::Pending);
    drop(receiver);
    assert_eq!(Pin::new(&mut sink).poll_flush(&mut context), Poll::Ready(Err(SendError(2))));
    assert_eq!(Pin::new(&mut sink).start_send(3), Err(SendError(3)));
}

#[test]
fn a_closed_sink_gives_values_back() {
    let (sender, receiver) = channel::mpsc(1);
    let mut sink = sender.into_sink();
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(Pin::new(&mut sink).poll_close(&mut context), Poll::Ready(Ok(())));
    assert_eq!(Pin::new(&mut sink).poll_ready(&mut context), Poll::Ready(Ok(())));
    assert_eq!(Pin::new(&mut sink).start_send(1), Err(SendError(1)));
    drop(receiver);
}

#[test]
fn a_stream_that_is_dropped_while_it_waits_loses_nothing() {
    let (sender, receiver) = channel::mpmc(1);
    let mut stream = receiver.clone().into_stream();
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(Pin::new(&mut stream).poll_next(&mut context), Poll::Pending);
    sender.send(1).unwrap();
    drop(stream);
    assert_eq!(receiver.recv(), Ok(1));
    drop(sender);
    let mut stream = receiver.into_stream();
    assert_eq!(Pin::new(&mut stream).poll_next(&mut context), Poll::Ready(None));
    assert!(stream.is_terminated());
}
