//! The process that receives.

use std::ffi::c_void;
use std::mem::forget;

use millstream_ring::shared::RawConsumer;

use crate::exclusive::Exclusive;
use crate::ring::{attach, deadline, millstream_ring_setup};
use crate::status::{Failure, answer, borrow, place, status};

/// The receiving end of a ring. A ring has one consumer at a time. One thread at a time may use it; a second thread
/// gets MILLSTREAM_IN_USE.
pub struct millstream_ring_consumer {
    consumer: Exclusive<RawConsumer>,
    event_bytes: usize,
    /// The process that has the role.
    pid: u32,
}

/// Acquires the consumer's role at the ring in the open file `fd`; see millstream_ring_producer_new. The consumer
/// starts with the first event that no earlier consumer has consumed.
///
/// # Safety
/// `setup` points to a setup whose `struct_bytes` is its size; `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_ring_consumer_new(
    fd: i32,
    setup: *const millstream_ring_setup,
    out: *mut *mut millstream_ring_consumer,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `setup` is NULL or as large as its first member says.
        let (slots, event) = unsafe { millstream_ring_setup::read(setup) }?;
        let consumer = Exclusive::new(attach(fd, |file| Ok(RawConsumer::attach(file, slots, event)?))?);
        let (event_bytes, pid) = (event.size(), std::process::id());
        Ok(Box::into_raw(Box::new(millstream_ring_consumer { consumer, event_bytes, pid })))
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}

/// Releases the consumer's role. Events that were not consumed remain in the ring.
///
/// # Safety
/// `consumer` is NULL or was made by millstream_ring_consumer_new; neither it nor the events of millstream_ring_peek are
/// used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_ring_consumer_free(consumer: *mut millstream_ring_consumer) {
    if consumer.is_null() {
        return;
    }
    // SAFETY: the caller guarantees that a non-NULL `consumer` came from a box and is not used afterwards.
    let consumer = unsafe { Box::from_raw(consumer) };
    if consumer.pid != std::process::id() {
        // The role belongs to the parent process, and freeing it in the child would end it in the parent.
        forget(consumer);
    }
}

/// Waits for events, and stores the address of the available events in `*events` and their number in `*count`. They are
/// contiguous, up to the ring's last slot. `*count` is 0 if no event arrived within `timeout_ns` nanoseconds. A
/// negative timeout waits without limit, and 0 never waits.
///
/// The events may be read in place until millstream_ring_consume releases their slots. If the consumer crashes before
/// that, its successor sees the events again.
///
/// # Safety
/// `consumer` was made by millstream_ring_consumer_new; `events` points to a pointer; `count` points to a size_t. The
/// events are neither written to, nor read after they were consumed or the consumer was freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_ring_peek(
    consumer: *mut millstream_ring_consumer,
    timeout_ns: i64,
    events: *mut *const c_void,
    count: *mut usize,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `consumer` is NULL or a live consumer, and the other two NULL or valid for a
        // write.
        let (consumer, events, count) =
            unsafe { (borrow("consumer", consumer)?, place("events", events)?, place("count", count)?) };
        consumer.consumer.with("consumer", |ring| {
            if timeout_ns != 0 {
                ring.wait(deadline(timeout_ns));
            }
            let found = ring.events();
            events.write(found.as_ptr().cast());
            count.write(found.len() / consumer.event_bytes);
            Ok(())
        })
    };
    status(compute())
}

/// Releases the slots of the next `count` events to the producer. Returns MILLSTREAM_OUT_OF_RANGE if fewer events are
/// available.
///
/// # Safety
/// `consumer` was made by millstream_ring_consumer_new; the events are not read afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_ring_consume(consumer: *mut millstream_ring_consumer, count: usize) -> i32 {
    // SAFETY: the caller guarantees that `consumer` is NULL or a live consumer.
    let consumer = unsafe { borrow("consumer", consumer) };
    let compute = |ring: &mut RawConsumer| {
        if count as u64 > ring.ready() {
            return Err(Failure::Range {
                what: "count",
                expected: "no more events than are there",
                found: count as u64,
            });
        }
        ring.consume(count);
        Ok(())
    };
    status(consumer.and_then(|consumer| consumer.consumer.with("consumer", compute)))
}

/// Waits for at least one event, copies at most `most` of the available events to `events`, consumes them, and stores
/// their number in `*count`. The number is 0 if no event arrived within `timeout_ns` nanoseconds; see
/// millstream_ring_peek.
///
/// If the consumer crashes after this call, the copied events are lost. If that matters, use millstream_ring_peek.
///
/// # Safety
/// `consumer` was made by millstream_ring_consumer_new; `events` points to memory for `most` events; `count` points to a
/// size_t.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_ring_receive(
    consumer: *mut millstream_ring_consumer,
    events: *mut c_void,
    most: usize,
    timeout_ns: i64,
    count: *mut usize,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `consumer` is NULL or a live consumer.
        let millstream_ring_consumer { consumer, event_bytes, .. } = unsafe { borrow("consumer", consumer) }?;
        if events.is_null() {
            return Err(Failure::Null { what: "events" });
        }
        consumer.with("consumer", |ring| {
            if timeout_ns != 0 && most > 0 {
                ring.wait(deadline(timeout_ns));
            }
            let mut copied = 0;
            // Events that wrap around are in two contiguous runs.
            while copied < most {
                let found = ring.events();
                let events_found = (found.len() / event_bytes).min(most - copied);
                if events_found == 0 {
                    break;
                }
                let bytes = events_found * event_bytes;
                // SAFETY: `events` is not NULL, so the caller guarantees that it points to memory for `most` events,
                // and `copied + events_found` is no more. The memory belongs to the caller and is separate from the
                // ring's.
                unsafe {
                    found.as_ptr().copy_to_nonoverlapping(events.cast::<u8>().add(copied * event_bytes), bytes);
                }
                ring.consume(events_found);
                copied += events_found;
            }
            Ok(copied)
        })
    };
    // SAFETY: the caller guarantees that `count` is NULL or valid for a write.
    unsafe { answer(count, compute) }
}

/// Returns the number of events that were consumed since the ring was made, by this consumer and all earlier ones.
///
/// # Safety
/// `consumer` was made by millstream_ring_consumer_new; `out` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_ring_consumer_position(
    consumer: *const millstream_ring_consumer,
    out: *mut u64,
) -> i32 {
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write, and that `consumer` is NULL or a live
    // consumer.
    unsafe {
        answer(out, || borrow("consumer", consumer)?.consumer.with("consumer", |consumer| Ok(consumer.position())))
    }
}
