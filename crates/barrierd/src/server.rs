//! The loop: hears requests and bells, looks which processors have passed, tells who waits.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

use millstream_fence::barrierd::layout::Hello;
use millstream_fence::barrierd::{View, send_hello};

use crate::barrier::Barrier;
use crate::bpf::{Bell, Bpf};
use crate::budget::Budget;
use crate::clock::{monotonic_ns, used_ns};
use crate::poll::Poll;
use crate::processors::Online;
use crate::socket::{Heard, accept, hear};
use crate::stat::{self, Stat};
use crate::statement::state_of_quiet;
use crate::waiting::Waiting;

/// Where the program writes times, processors that keep the daemon waiting for longer are helped with a fall-back.
const PATIENCE: Duration = Duration::from_millis(8);
/// Connections at a time; further ones are refused.
const MAX_CLIENTS: usize = 1000;
/// The most connections, and messages of one client, that are taken in at a time, before others have their turn.
const TOGETHER: usize = 64;

const LISTENER: u64 = u64::MAX;
const RING: u64 = u64::MAX - 1;
const BARRIER: u64 = u64::MAX - 2;

/// What the daemon hands to clients.
#[derive(Debug)]
pub(crate) struct Gift {
    pub(crate) hello: Hello,
    pub(crate) page: OwnedFd,
    pub(crate) times: OwnedFd,
}

/// Everything the loop works with.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) view: Arc<View>,
    pub(crate) gift: Gift,
    pub(crate) listener: OwnedFd,
    pub(crate) bpf: Option<Bpf>,
    pub(crate) barrier: Option<Barrier>,
    pub(crate) stat: Option<Stat>,
    pub(crate) online: Option<Online>,
    /// Of one processor, 0 to 1.
    pub(crate) share: f64,
    pub(crate) poll: Poll,
}

/// The loop's memory.
#[derive(Debug)]
struct State {
    budget: Budget,
    /// As the page says.
    rests_until: u64,
    clients: HashMap<usize, OwnedFd>,
    next_client: usize,
    waiting: Waiting,
    /// A fall-back is under way.
    helping: bool,
    /// The smallest virtual time at the last look.
    least: u64,
}

impl State {
    fn new(budget: Budget) -> State {
        State {
            budget,
            rests_until: 0,
            clients: HashMap::new(),
            next_client: 0,
            waiting: Waiting::default(),
            helping: false,
            least: 0,
        }
    }
}

impl Server {
    /// Serves until the process ends.
    ///
    /// # Errors
    /// If waiting itself fails: a bug, or a kernel without memory.
    pub(crate) fn serve(mut self) -> io::Result<Infallible> {
        self.poll.add(self.listener.as_fd(), LISTENER)?;
        if let Some(bpf) = &self.bpf {
            self.poll.add(bpf.ring.as_fd(), RING)?;
        }
        if let Some(barrier) = &self.barrier {
            self.poll.add(barrier.as_fd(), BARRIER)?;
        }
        let mut state = State::new(Budget::new(self.share, monotonic_ns(), used_ns()));
        loop {
            let mut events = self.poll.wait(self.timeout(&state))?;
            // Whoever waits already is not kept waiting.
            if state.waiting.oldest().is_none() {
                let rest = state.rests_until.saturating_sub(monotonic_ns());
                if rest > 0 {
                    thread::sleep(Duration::from_nanos(rest));
                    // Those who have asked meanwhile are heard as well, without another wake-up.
                    events = self.poll.wait(Some(Duration::ZERO))?;
                }
            }
            for name in events {
                self.hear(name, &mut state);
            }
            self.look(&mut state);
        }
    }

    /// When to look without being called.
    fn timeout(&self, state: &State) -> Option<Duration> {
        let oldest = state.waiting.oldest()?;
        if state.helping { Some(stat::PERIOD) } else { Some(self.patience().saturating_sub(oldest.elapsed())) }
    }

    fn patience(&self) -> Duration {
        if self.bpf.is_some() { PATIENCE } else { Duration::ZERO }
    }

    fn hear(&self, name: u64, state: &mut State) {
        match name {
            LISTENER => _ = (0..TOGETHER).all(|_| self.greet(state)),
            RING => self.bpf.iter().for_each(|bpf| bpf.ring.clear()),
            BARRIER => self.barrier.iter().for_each(Barrier::clear),
            client => _ = (0..TOGETHER).all(|_| self.hear_client(client as usize, state)),
        }
    }

    /// Takes a connection in; whether there was one. One that does not take its greeting at once is dropped.
    fn greet(&self, state: &mut State) -> bool {
        let Ok(Some(socket)) = accept(&self.listener) else { return false };
        let name = state.next_client;
        let gift = &self.gift;
        let is_welcome = state.clients.len() < MAX_CLIENTS
            && send_hello(socket.as_fd(), gift.hello, gift.page.as_fd(), gift.times.as_fd()).is_ok()
            && self.poll.add(socket.as_fd(), name as u64).is_ok();
        if is_welcome {
            state.clients.insert(name, socket);
            state.next_client += 1;
        }
        true
    }

    /// Hears a client's next request; whether there was one.
    fn hear_client(&self, name: usize, state: &mut State) -> bool {
        let Some(socket) = state.clients.get(&name) else { return false };
        let now = self.view.times().virtual_now.load(Ordering::Relaxed);
        match hear(socket) {
            Heard::Asks(mut request) => {
                // Nobody can have read more; who says so would wait for ever. And 0 means that nobody waits: it
                // passes with 1, before the first client has come.
                request.virtual_time = request.virtual_time.min(now).max(1);
                state.waiting.add(name, request, Instant::now());
                true
            }
            Heard::Silence => false,
            Heard::Leaves => {
                state.waiting.forget(name);
                state.clients.remove(&name);
                false
            }
        }
    }

    /// Looks until nothing new has passed, tells who waits, and leaves the bell armed for what has not.
    fn look(&mut self, state: &mut State) {
        if state.waiting.oldest().is_none() {
            self.arm(Bell::Off);
            self.announce_rest(state);
            return;
        }
        let mut fulfilled = state.waiting.fulfil(&self.virtual_times());
        if state.waiting.oldest().is_some() {
            state_of_quiet(&self.view, &state.waiting.wanted(&self.virtual_times()), self.online.as_ref());
            self.help(state);
        }
        loop {
            let times = self.virtual_times();
            fulfilled |= state.waiting.fulfil(&times);
            let wanted = state.waiting.wanted(&times);
            if let Some(bpf) = &self.bpf {
                wanted.iter().enumerate().for_each(|(cpu, wanted)| bpf.control.set_wanted(cpu, *wanted));
            }
            if state.waiting.oldest().is_none() {
                self.arm(Bell::Off);
                break;
            }
            self.arm(if state.waiting.agree() { Bell::ForAll } else { Bell::ForEach });
            // Either the program finds the bell armed, or we find what it has written: see there.
            fence(Ordering::SeqCst);
            if !state.waiting.fulfil(&self.virtual_times()) {
                break;
            }
            fulfilled = true;
        }
        // Before anybody is woken: who asks at once for the next moment is to know.
        self.announce_rest(state);
        self.publish(state, fulfilled);
    }

    /// Says until when to rest for what was used so far. While somebody waits there is no rest, but others need not add to it.
    fn announce_rest(&self, state: &mut State) {
        let now = monotonic_ns();
        state.rests_until = now + state.budget.rest(now, used_ns()).as_nanos() as u64;
        self.view.page().rests_until.store(state.rests_until, Ordering::Relaxed);
    }

    fn arm(&self, bell: Bell) {
        self.bpf.iter().for_each(|bpf| bpf.control.set_bell(bell));
    }

    /// Helps processors along that keep somebody waiting for too long.
    fn help(&mut self, state: &mut State) {
        let late = state.waiting.oldest().is_some_and(|since| since.elapsed() >= self.patience());
        if late && !state.helping {
            self.stat.iter_mut().for_each(Stat::forget);
        }
        state.helping = late;
        if late {
            self.barrier.iter().for_each(Barrier::ask);
            if let Some(stat) = &mut self.stat {
                // Unreadable it says nothing, and clients have a limit of their own.
                let _ = stat.look(&self.view);
            }
        }
    }

    fn virtual_times(&self) -> Vec<u64> {
        (0..self.view.cpus()).map(|cpu| self.view.virtual_time(cpu)).collect()
    }

    /// Writes the minima, and wakes who sleeps.
    fn publish(&self, state: &mut State, fulfilled: bool) {
        let page = self.view.page();
        let least = self.virtual_times().into_iter().min().unwrap_or(0);
        if least > state.least {
            state.least = least;
            let least_time = (0..self.view.cpus()).map(|cpu| self.view.time(cpu)).min().unwrap_or(0);
            page.least_time.fetch_max(least_time, Ordering::Release);
            page.least_virtual.store(least, Ordering::Release);
            turn(&page.least_turn);
        }
        if fulfilled {
            turn(&page.turn);
        }
    }
}

/// Moves a futex on and wakes all who sleep on it.
fn turn(word: &AtomicU32) {
    // Release: whoever sees the new turn sees what was stated before.
    word.fetch_add(1, Ordering::Release);
    // SAFETY: the word lives through the call, which reads nothing else.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
