//! Explores every order in which the ends of a small channel (its senders and receivers) can call its queue. In a channel, each
//! call is made under the lock, so there is no finer interleaving.
//!
//! An end that waits in line acts again only after it was woken. If a wake-up is lost, that end still waits when all others have
//! gone.

use std::collections::HashSet;

use super::*;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum State {
    Ready,
    Waiting(u64),
    Gone,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct End {
    state: State,
    is_woken: bool,
}

/// The state of the exploration: a channel, its ends, and the fate of each value. The values of a sender are consecutive
/// numbers.
#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    queue: Queue<usize, usize>,
    /// The senders, followed by the receivers.
    ends: Vec<End>,
    /// For each sender: its first value, the next value to send, and the end of its range of values.
    values: Vec<[usize; 3]>,
    received: Vec<usize>,
    /// The values that were returned to their senders, or dropped with the last receiver.
    not_received: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The sender or receiver makes its next call.
    GoOn,
    /// The sender or receiver is cancelled or times out, and leaves the channel.
    GiveUp,
}

impl World {
    fn new(senders: usize, receivers: usize, each: usize, capacity: usize) -> Self {
        let mut queue = Queue::new(VecDeque::new(), capacity);
        (1..senders).for_each(|_| queue.add_sender());
        (1..receivers).for_each(|_| queue.add_receiver());
        let ends = vec![End { state: State::Ready, is_woken: false }; senders + receivers];
        let values = (0..senders).map(|sender| [sender * each, sender * each, (sender + 1) * each]).collect();
        World { queue, ends, values, received: Vec::new(), not_received: Vec::new() }
    }

    fn wake(&mut self, woken: impl IntoIterator<Item = usize>) {
        woken.into_iter().for_each(|end| self.ends[end].is_woken = true);
    }

    /// Returns the world after a step of an end; `None` if the end cannot take this step.
    fn after(&self, end: usize, step: Step) -> Option<World> {
        let mut world = self.clone();
        let is_sender = end < self.values.len();
        let was_woken = std::mem::take(&mut world.ends[end].is_woken);
        match (self.ends[end].state, step) {
            (State::Gone, _) => return None,
            (State::Waiting(_), Step::GoOn) if !was_woken => return None,
            (State::Ready, Step::GoOn) if is_sender => world.send(end),
            (State::Ready, Step::GoOn) => world.receive(end),
            (State::Waiting(ticket), Step::GoOn) if is_sender => world.look_for_room(end, ticket),
            (State::Waiting(ticket), Step::GoOn) => world.look_for_a_value(end, ticket),
            (State::Waiting(ticket), Step::GiveUp) if is_sender => {
                let unsent = world.queue.leave_sending(ticket);
                world.not_received.extend(unsent.map(|(_, value)| value));
                world.go(end);
            }
            (State::Waiting(ticket), Step::GiveUp) => {
                let next = world.queue.leave_receiving(ticket);
                world.wake(next);
                world.go(end);
            }
            (State::Ready, Step::GiveUp) => world.go(end),
        }
        world.check();
        Some(world)
    }

    fn send(&mut self, end: usize) {
        let [_, value, until] = self.values[end];
        if value == until {
            return self.go(end);
        }
        self.values[end][1] += 1;
        match self.queue.send(value) {
            Ok(receiver) => self.wake(receiver),
            Err(TrySendError::Full(value)) => {
                self.ends[end].state = State::Waiting(self.queue.enter_sending(end, value));
            }
            Err(TrySendError::Disconnected(value)) => {
                self.not_received.push(value);
                self.go(end);
            }
        }
    }

    fn look_for_room(&mut self, end: usize, ticket: u64) {
        match self.queue.sent(ticket) {
            None => {}
            Some(Ok(())) => self.ends[end].state = State::Ready,
            Some(Err(SendError(value))) => {
                self.not_received.push(value);
                self.go(end);
            }
        }
    }

    fn receive(&mut self, end: usize) {
        match self.queue.receive() {
            Ok(taken) => self.take(taken),
            Err(TryRecvError::Empty) => self.ends[end].state = State::Waiting(self.queue.enter_receiving(end)),
            Err(TryRecvError::Disconnected) => self.end(end),
        }
    }

    fn look_for_a_value(&mut self, end: usize, ticket: u64) {
        match self.queue.received(ticket) {
            None => {}
            Some(Ok(taken)) => {
                self.take(taken);
                self.ends[end].state = State::Ready;
            }
            Some(Err(Disconnected)) => self.end(end),
        }
    }

    /// Removes a receiver that has received `Disconnected`.
    fn end(&mut self, end: usize) {
        assert!(self.queue.senders == 0 && self.queue.values.is_empty(), "there may be another value");
        self.go(end);
    }

    fn take(&mut self, (value, woken): Taken<usize, usize>) {
        let sender = |value: usize| self.values.iter().position(|&[_, _, until]| value < until);
        let before = self.received.iter().rfind(|before| sender(**before) == sender(value));
        assert!(before.is_none_or(|&before| before < value), "{value} after {before:?}");
        self.received.push(value);
        self.wake(woken);
    }

    fn go(&mut self, end: usize) {
        self.ends[end].state = State::Gone;
        if end < self.values.len() {
            let receivers = self.queue.remove_sender();
            self.wake(receivers);
        } else {
            let (values, senders) = self.queue.remove_receiver();
            self.not_received.extend(values);
            self.wake(senders);
        }
    }

    /// Checks the invariants between two calls.
    fn check(&self) {
        let queue = &self.queue;
        let values = queue.values.len();
        assert!(values <= queue.capacity && queue.promises <= values);
        let receives = queue.receiving.iter().next().is_some();
        assert!(!receives || queue.promises == values, "a receiver waits beside a value");
        let sends = queue.sending.iter().next().is_some();
        assert!(!sends || queue.receivers == 0 || values == queue.capacity, "a sender waits beside room");
    }

    /// Checks a world in which no end can continue.
    fn check_end(&self) {
        assert!(self.ends.iter().all(|end| end.state == State::Gone), "an end waits and is not woken");
        let mut all: Vec<_> = self.received.iter().chain(&self.not_received).copied().collect();
        all.sort_unstable();
        let called = self.values.iter().flat_map(|[first, next, _]| *first..*next);
        assert!(all.into_iter().eq(called), "each value is received or returned once");
    }
}

/// Explores all worlds that can follow `first`, and returns their number.
fn explore(first: World) -> usize {
    let mut seen = HashSet::from([first.clone()]);
    let mut open = vec![first];
    while let Some(world) = open.pop() {
        let world = &world;
        let after = |step| (0..world.ends.len()).filter_map(move |end| world.after(end, step));
        let go_on: Vec<_> = after(Step::GoOn).collect();
        if go_on.is_empty() {
            world.check_end();
        }
        for next in go_on.into_iter().chain(after(Step::GiveUp)) {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    seen.len()
}

#[test]
fn every_order_of_calls_keeps_values_and_wakes_waiters() {
    for (senders, receivers, each, capacity) in
        [(1, 1, 3, 1), (1, 1, 4, 2), (3, 1, 1, 1), (1, 3, 2, 1), (2, 2, 1, 1), (1, 3, 3, 2), (2, 2, 2, 1)]
    {
        let worlds = explore(World::new(senders, receivers, each, capacity));
        println!("{senders} senders of {each}, {receivers} receivers, {capacity} places: {worlds} worlds");
        assert!(worlds > 50);
    }
}
