//! Rings with one mistake each. All their memory is atomic, so that the mistake is one of order and not undefined
//! behaviour.

use std::array;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;

/// The lap is missing: a slot knows whether it is full, but not in which lap. Two senders that are a lap apart wait for
/// the same slot, and either may get it.
pub(crate) struct NoLaps<const SLOTS: usize> {
    claimed: AtomicU64,
    taken: AtomicU64,
    full: [AtomicBool; SLOTS],
    value: [AtomicU64; SLOTS],
}

impl<const SLOTS: usize> NoLaps<SLOTS> {
    pub(crate) fn new() -> Self {
        NoLaps {
            claimed: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            full: array::from_fn(|_| AtomicBool::new(false)),
            value: array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Waits for room for a limited time: two senders that fill the same slot leave a position that no sender fills.
    pub(crate) fn send(&self, value: u64) -> bool {
        let slot = self.claimed.fetch_add(1, Relaxed) as usize % SLOTS;
        for _ in 0..20 {
            if !self.full[slot].load(Acquire) {
                self.value[slot].store(value, Relaxed);
                self.full[slot].store(true, Release);
                return true;
            }
            thread::yield_now();
        }
        false
    }

    pub(crate) fn try_recv(&self) -> Option<u64> {
        let position = self.taken.load(Relaxed);
        let slot = position as usize % SLOTS;
        if !self.full[slot].load(Acquire) {
            return None;
        }
        let value = self.value[slot].load(Relaxed);
        self.full[slot].store(false, Release);
        self.taken.store(position + 1, Relaxed);
        Some(value)
    }
}

/// The order is wrong, with one sender and one receiver: the cursor advances before the value is written.
pub(crate) struct TooEarly<const SLOTS: usize> {
    sent: AtomicU64,
    received: AtomicU64,
    value: [AtomicU64; SLOTS],
}

impl<const SLOTS: usize> TooEarly<SLOTS> {
    pub(crate) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        TooEarly { sent: zero(), received: zero(), value: array::from_fn(|_| zero()) }
    }

    pub(crate) fn try_send(&self, value: u64) -> bool {
        let position = self.sent.load(Relaxed);
        if position - self.received.load(Acquire) == SLOTS as u64 {
            return false;
        }
        self.sent.store(position + 1, Release);
        // A receiver must run in between to see the mistake, which a busy machine may never allow.
        if position.is_multiple_of(16) {
            std::thread::yield_now();
        }
        self.value[position as usize % SLOTS].store(value, Release);
        true
    }

    /// Sends without this mistake, for the twins with other mistakes.
    fn try_send_in_order(&self, value: u64) -> bool {
        let position = self.sent.load(Relaxed);
        if position.wrapping_sub(self.received.load(Acquire)) == SLOTS as u64 {
            return false;
        }
        self.value[position as usize % SLOTS].store(value, Relaxed);
        self.sent.store(position + 1, Release);
        true
    }

    pub(crate) fn try_recv(&self) -> Option<u64> {
        let position = self.received.load(Relaxed);
        if position == self.sent.load(Acquire) {
            return None;
        }
        let value = self.value[position as usize % SLOTS].load(Acquire);
        self.received.store(position + 1, Release);
        Some(value)
    }
}

/// The second check is missing: the receiver caches the sender's cursor, as fast rings do, but reads it again only in
/// every fourth call.
pub(crate) struct Stale<const SLOTS: usize> {
    ring: TooEarly<SLOTS>,
    seen: AtomicU64,
    calls: AtomicU64,
}

impl<const SLOTS: usize> Stale<SLOTS> {
    pub(crate) fn new() -> Self {
        Stale { ring: TooEarly::new(), seen: AtomicU64::new(0), calls: AtomicU64::new(0) }
    }

    pub(crate) fn try_send(&self, value: u64) -> bool {
        self.ring.try_send_in_order(value)
    }

    pub(crate) fn try_recv(&self) -> Option<u64> {
        let TooEarly { sent, received, value: slots } = &self.ring;
        let calls = self.calls.load(Relaxed);
        self.calls.store(calls + 1, Relaxed);
        if calls.is_multiple_of(4) {
            self.seen.store(sent.load(Acquire), Relaxed);
        }
        let position = received.load(Relaxed);
        if position >= self.seen.load(Relaxed) {
            return None;
        }
        let value = slots[position as usize % SLOTS].load(Relaxed);
        received.store(position + 1, Release);
        Some(value)
    }
}

/// The second consumer is forgotten: the producer waits only for the first.
pub(crate) struct Forgetful<const SLOTS: usize> {
    published: AtomicU64,
    consumed: [AtomicU64; 2],
    value: [AtomicU64; SLOTS],
}

impl<const SLOTS: usize> Forgetful<SLOTS> {
    pub(crate) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Forgetful { published: zero(), consumed: [zero(), zero()], value: array::from_fn(|_| zero()) }
    }

    pub(crate) fn try_publish(&self, value: u64) -> bool {
        let position = self.published.load(Relaxed);
        if position - self.consumed[0].load(Acquire) == SLOTS as u64 {
            return false;
        }
        self.value[position as usize % SLOTS].store(value, Release);
        self.published.store(position + 1, Release);
        true
    }

    pub(crate) fn try_consume(&self, consumer: usize) -> Option<u64> {
        let position = self.consumed[consumer].load(Relaxed);
        if position == self.published.load(Acquire) {
            return None;
        }
        let value = self.value[position as usize % SLOTS].load(Acquire);
        self.consumed[consumer].store(position + 1, Release);
        Some(value)
    }
}

/// The claim takes two steps: a receiver loads the next position, then stores the one after it, as if it were the only
/// receiver.
pub(crate) struct TwoReceivers<const SLOTS: usize> {
    ring: TooEarly<SLOTS>,
}

impl<const SLOTS: usize> TwoReceivers<SLOTS> {
    pub(crate) fn new() -> Self {
        TwoReceivers { ring: TooEarly::new() }
    }

    pub(crate) fn try_send(&self, value: u64) -> bool {
        self.ring.try_send_in_order(value)
    }

    pub(crate) fn try_recv(&self) -> Option<u64> {
        let position = self.ring.received.load(Acquire);
        if position >= self.ring.sent.load(Acquire) {
            return None;
        }
        let value = self.ring.value[position as usize % SLOTS].load(Relaxed);
        self.ring.received.store(position + 1, Release);
        Some(value)
    }
}
