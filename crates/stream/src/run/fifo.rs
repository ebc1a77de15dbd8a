//! A ring of values, oldest first. It does not allocate for each value.

/// See the [module](self).
pub(super) struct Fifo<T> {
    /// The slots used so far. A value that has left the ring stays in its slot, and the next value of the slot is cloned into it,
    /// which reuses its memory.
    slots: Vec<T>,
    /// The capacity: the number of slots, including those not used yet.
    room: usize,
    /// The slot of the oldest value.
    head: usize,
    length: usize,
}

impl<T: Clone> Fifo<T> {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), room: 0, head: 0, length: 0 }
    }

    /// Makes room for this many values, before the first one enters. A full ring grows.
    pub(super) fn reserve(&mut self, room: usize) {
        self.room = room;
        self.slots.reserve_exact(room);
    }

    /// Returns the oldest value. The ring must not be empty.
    #[inline]
    pub(super) fn front(&self) -> &T {
        &self.slots[self.head]
    }

    /// Returns the oldest value, which is about to leave. The ring must not be empty.
    #[inline]
    pub(super) fn front_mut(&mut self) -> &mut T {
        &mut self.slots[self.head]
    }

    #[inline]
    pub(super) fn enter(&mut self, value: &T) {
        if self.length == self.room {
            self.grow();
        }
        let behind = self.head + self.length;
        let slot = if behind < self.room { behind } else { behind - self.room };
        match self.slots.get_mut(slot) {
            Some(old) => old.clone_from(value),
            None => self.slots.push(value.clone()),
        }
        self.length += 1;
    }

    /// Doubles the capacity of a full ring.
    #[cold]
    fn grow(&mut self) {
        self.slots.rotate_left(self.head);
        self.head = 0;
        self.room = (2 * self.room).max(1);
    }

    /// Drops the oldest value. The ring must not be empty.
    #[inline]
    pub(super) fn leave(&mut self) {
        debug_assert!(self.length > 0, "an actor fires when its queues have values");
        self.length -= 1;
        self.head += 1;
        if self.head == self.room {
            self.head = 0;
        }
    }

    /// Swaps the oldest value with the value in `into`, whose memory the ring then reuses.
    #[inline]
    pub(super) fn take(&mut self, into: &mut Option<T>) {
        let front = &mut self.slots[self.head];
        match into {
            Some(old) => std::mem::swap(old, front),
            None => *into = Some(front.clone()),
        }
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use millstream_verify_random::{Random, stress};

    use super::Fifo;

    #[test]
    fn values_leave_in_order_however_the_ring_turns_and_grows() {
        let mut random = Random::seeded();
        for _ in 0..300 * stress() {
            let (mut ring, mut model, mut taken) = (Fifo::new(), VecDeque::new(), None);
            ring.reserve(random.below(6) as usize);
            for n in 0..random.below(200) {
                if random.below(5) < 3 {
                    ring.enter(&vec![n]);
                    model.push_back(vec![n]);
                } else if let Some(front) = model.pop_front() {
                    assert_eq!(*ring.front(), front);
                    if random.below(2) == 0 {
                        ring.leave();
                    } else {
                        ring.take(&mut taken);
                        assert_eq!(taken, Some(front));
                    }
                }
                assert_eq!(ring.length, model.len());
            }
        }
    }
}
