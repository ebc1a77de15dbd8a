//! Flat combining on a revocable lock: a ticket machine whose threads leave their requests to the owner of the lock.
//!
//! Each thread writes its request where all threads see it. One of them, the combiner, carries out all requests that it
//! finds and publishes the result by one store. If the combiner is preempted before that store, another thread takes
//! the lock away and does the same work. The store of the preempted thread then fails, and no thread has waited for it.
//!
//! A thread reads its result without the lock. Meanwhile another version may become the current one, and the owner of
//! the version being read may overwrite it with a result that is never published. So the reader checks afterwards, as
//! with a sequence lock, whether the version was the current one throughout. The word that it checks also counts
//! publications: an owner publishes the same version repeatedly, so the version's index alone would not show a change.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use std::thread;

use millstream_sync::percpu::Revocable;

const THREADS: usize = 4;

/// The machine's state after some requests. Only the owner of a version writes to it, and only while the version is not
/// current.
#[derive(Default)]
struct Version {
    next_ticket: AtomicU64,
    /// For each thread, the number of its requests that are done, and the ticket of the last of them.
    done: [AtomicU64; THREADS],
    ticket: [AtomicU64; THREADS],
}

struct Machine<P> {
    lock: Revocable,
    /// The number of requests that each thread has made.
    requests: [AtomicU64; THREADS],
    /// Two versions for each thread: one may be current, and the other is free for the thread's next attempt.
    versions: [[Version; 2]; THREADS],
    /// The number of publications, times the number of versions, plus the index of the current version.
    current: AtomicU64,
    /// Called between steps; a test delays threads here.
    pause: P,
}

const VERSIONS: u64 = 2 * THREADS as u64;

impl<P: Fn()> Machine<P> {
    fn new(pause: P) -> Self {
        let (requests, versions) = Default::default();
        Machine { lock: Revocable::new(), requests, versions, current: AtomicU64::new(0), pause }
    }

    fn version(&self, current: u64) -> &Version {
        let place = (current % VERSIONS) as usize;
        &self.versions[place / 2][place % 2]
    }

    /// Returns a ticket that no other thread gets.
    fn draw(&self, thread: usize) -> u64 {
        let request = self.requests[thread].load(Relaxed) + 1;
        self.requests[thread].store(request, Release);
        loop {
            match self.result(thread, request) {
                Some(ticket) => return ticket,
                None => self.combine(thread),
            }
        }
    }

    /// The ticket of this request, if it is published.
    fn result(&self, thread: usize, request: u64) -> Option<u64> {
        loop {
            let current = self.current.load(Acquire);
            let version = self.version(current);
            (self.pause)();
            let done = version.done[thread].load(Relaxed);
            (self.pause)();
            let ticket = version.ticket[thread].load(Relaxed);
            // Pairs with the releasing stores in `combine`: if the reads above saw a value of a later attempt, the
            // second check sees what the writer of that value had seen, including the publication of another version.
            fence(Acquire);
            if self.current.load(Relaxed) == current {
                return (done == request).then_some(ticket);
            }
        }
    }

    fn combine(&self, thread: usize) {
        let ownership = self.lock.own();
        let current = self.current.load(Acquire);
        let mine = [0, 1].map(|i| 2 * thread as u64 + i).into_iter().find(|&place| place != current % VERSIONS);
        let mine = mine.expect("at most one of two is the current one");
        let (old, new) = (self.version(current), self.version(mine));
        let mut next_ticket = old.next_ticket.load(Relaxed);
        for other in 0..THREADS {
            let (requested, done) = (self.requests[other].load(Acquire), old.done[other].load(Relaxed));
            let mut ticket = old.ticket[other].load(Relaxed);
            if requested != done {
                ticket = next_ticket;
                next_ticket += 1;
            }
            // Both stores release: a reader of either value finds out that this version is not the current one.
            new.ticket[other].store(ticket, Release);
            (self.pause)();
            new.done[other].store(requested, Release);
        }
        new.next_ticket.store(next_ticket, Relaxed);
        (self.pause)();
        let publication = (current / VERSIONS + 1) * VERSIONS + mine;
        // If the lock was taken away, the values written are never published, and the values read may have been
        // inconsistent.
        let _revoked = ownership.store(&self.current, publication);
    }
}

/// Lets each thread draw the given number of tickets, and returns all of them.
pub(crate) fn draw_all(requests: u64, pause: impl Fn() + Sync) -> Vec<u64> {
    let machine = Machine::new(pause);
    thread::scope(|scope| {
        let machine = &machine;
        let drawing: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || (0..requests).map(|_| machine.draw(thread)).collect::<Vec<_>>()))
            .collect();
        drawing.into_iter().flat_map(|tickets| tickets.join().expect("no thread panics")).collect()
    })
}

/// Whether each ticket was drawn once.
pub(crate) fn each_once(mut tickets: Vec<u64>) -> bool {
    let count = tickets.len() as u64;
    tickets.sort_unstable();
    tickets.into_iter().eq(0..count)
}

pub(crate) fn main() {
    let tickets = draw_all(20_000, || ());
    let count = tickets.len();
    assert!(each_once(tickets), "a ticket is missing or was drawn twice");
    println!("{count} tickets, each drawn once");
}
