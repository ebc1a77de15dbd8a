//! The process that sends.

use std::ffi::c_void;
use std::mem::forget;

use millstream_ring::shared::RawProducer;

use crate::exclusive::Exclusive;
use crate::ring::{attach, deadline, millstream_ring_setup};
use crate::status::{Failure, answer, borrow, slice};

/// The sending end of a ring. A ring has one producer at a time. One thread at a time may use it; a second thread gets
/// MILLSTREAM_IN_USE.
pub struct millstream_ring_producer {
    producer: Exclusive<RawProducer>,
    event_bytes: usize,
    /// The process that has the role.
    pid: u32,
}

/// Acquires the producer's role at the ring in the open file `fd`, which becomes a ring if it is empty. The function
/// does not close the descriptor; the caller may close it at any time. The file should be in memory: in /dev/shm, or a
/// memfd. It must be writable, and /proc must be mounted.
///
/// The role ends with millstream_ring_producer_free, or when the process ends in any way. The next producer continues
/// where this one stopped. After a fork, the child must neither use nor free the producer. Waits while another process
/// attaches.
///
/// # Safety
/// `setup` points to a setup whose `struct_bytes` is its size; `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_ring_producer_new(
    fd: i32,
    setup: *const millstream_ring_setup,
    out: *mut *mut millstream_ring_producer,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `setup` is NULL or as large as its first member says.
        let (slots, event) = unsafe { millstream_ring_setup::read(setup) }?;
        let producer = Exclusive::new(attach(fd, |file| Ok(RawProducer::attach(file, slots, event)?))?);
        let (event_bytes, pid) = (event.size(), std::process::id());
        Ok(Box::into_raw(Box::new(millstream_ring_producer { producer, event_bytes, pid })))
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}

/// Releases the producer's role. The events that were sent remain in the ring.
///
/// # Safety
/// `producer` is NULL or was made by millstream_ring_producer_new, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_ring_producer_free(producer: *mut millstream_ring_producer) {
    if producer.is_null() {
        return;
    }
    // SAFETY: the caller guarantees that a non-NULL `producer` came from a box and is not used afterwards.
    let producer = unsafe { Box::from_raw(producer) };
    if producer.pid != std::process::id() {
        // The role belongs to the parent process, and freeing it in the child would end it in the parent.
        forget(producer);
    }
}

/// Sends `count` contiguous events, and stores in `*sent` how many were sent: fewer than `count` only if there was no
/// room within `timeout_ns` nanoseconds. A negative timeout waits without limit, and 0 never waits. A batch costs only
/// one wake-up.
///
/// # Safety
/// `producer` was made by millstream_ring_producer_new; `events` points to `count` events, and may be NULL if `count` is
/// 0; `sent` points to a size_t.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_ring_send(
    producer: *mut millstream_ring_producer,
    events: *const c_void,
    count: usize,
    timeout_ns: i64,
    sent: *mut usize,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `producer` is NULL or a live producer.
        let millstream_ring_producer { producer, event_bytes, .. } = unsafe { borrow("producer", producer) }?;
        let too_many = Failure::Range { what: "count", expected: "a number that memory can hold", found: count as u64 };
        let bytes = count.checked_mul(*event_bytes).ok_or(too_many)?;
        // SAFETY: the caller guarantees that `events` points to `count` events.
        let events = unsafe { slice("events", events.cast::<u8>(), bytes) }?;
        producer.with("producer", |producer| {
            Ok(if timeout_ns == 0 { producer.try_send(events) } else { producer.send(events, deadline(timeout_ns)) })
        })
    };
    // SAFETY: the caller guarantees that `sent` is NULL or valid for a write.
    unsafe { answer(sent, compute) }
}

/// Returns the number of events that were sent since the ring was made, by this producer and all earlier ones.
///
/// # Safety
/// `producer` was made by millstream_ring_producer_new; `out` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_ring_producer_position(
    producer: *const millstream_ring_producer,
    out: *mut u64,
) -> i32 {
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write, and that `producer` is NULL or a live
    // producer.
    unsafe {
        answer(out, || borrow("producer", producer)?.producer.with("producer", |producer| Ok(producer.position())))
    }
}
