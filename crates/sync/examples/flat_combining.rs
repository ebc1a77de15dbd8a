//! Flat combining on a revocable lock: a ticket machine whose threads hand their requests to whoever has the lock.
//!
//! Each thread writes its request where everybody sees it. One of them, the combiner, carries out all that it finds and publishes the result
//! by one store. If it is preempted in between, another one takes the lock away and does the same work: the first one's store fails, and
//! nobody has waited for it.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::thread;

use millstream_sync::percpu::Revocable;

const THREADS: usize = 4;
const REQUESTS: u64 = 20_000;

/// The machine after some requests. Only its owner writes to one, and only while it is not the current one.
#[derive(Default)]
struct Version {
    next_ticket: AtomicU64,
    /// For each thread: how many of its requests are done, and what the last one got.
    done: [AtomicU64; THREADS],
    ticket: [AtomicU64; THREADS],
}

#[derive(Default)]
struct Machine {
    lock: Revocable,
    /// How many requests each thread has made.
    requests: [AtomicU64; THREADS],
    /// Two for each thread: one may be the current one, the other is free for its next attempt.
    versions: [[Version; 2]; THREADS],
    /// Which is the current one: twice the thread, plus 0 or 1.
    current: AtomicU64,
}

impl Machine {
    fn version(&self, index: u64) -> &Version {
        &self.versions[index as usize / 2][index as usize % 2]
    }

    /// A ticket that nobody else gets.
    fn draw(&self, thread: usize) -> u64 {
        let request = self.requests[thread].load(Relaxed) + 1;
        self.requests[thread].store(request, Release);
        loop {
            let current = self.version(self.current.load(Acquire));
            // Acquire: the ticket was written before.
            if current.done[thread].load(Acquire) == request {
                return current.ticket[thread].load(Relaxed);
            }
            self.combine(thread);
        }
    }

    fn combine(&self, thread: usize) {
        let ownership = self.lock.own();
        let current = self.current.load(Acquire);
        let mine = [0, 1].map(|i| 2 * thread as u64 + i).into_iter().find(|&index| index != current);
        let mine = mine.expect("at most one of two is the current one");
        let (old, new) = (self.version(current), self.version(mine));
        let mut next_ticket = old.next_ticket.load(Relaxed);
        for other in 0..THREADS {
            let (requested, done) = (self.requests[other].load(Acquire), old.done[other].load(Acquire));
            let mut ticket = old.ticket[other].load(Relaxed);
            if requested != done {
                ticket = next_ticket;
                next_ticket += 1;
            }
            new.ticket[other].store(ticket, Relaxed);
            new.done[other].store(requested, Release);
        }
        new.next_ticket.store(next_ticket, Relaxed);
        // If the lock was taken away, what we wrote is nobody's, and what we read may have been nonsense.
        let _revoked = ownership.store(&self.current, mine);
    }
}

pub(crate) fn main() {
    let machine = Machine::default();
    let mut tickets: Vec<u64> = thread::scope(|scope| {
        let machine = &machine;
        let drawing: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || (0..REQUESTS).map(|_| machine.draw(thread)).collect::<Vec<_>>()))
            .collect();
        drawing.into_iter().flat_map(|tickets| tickets.join().expect("nobody panics")).collect()
    });
    tickets.sort_unstable();
    assert!(tickets.iter().copied().eq(0..THREADS as u64 * REQUESTS), "each ticket is drawn once");
    println!("{} tickets, each drawn once", tickets.len());
}
