//! The daemon's loop: reads requests, checks which processors have passed, and wakes the waiting clients.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::{Duration, Instant};

use millstream_fence::barrierd::layout::Hello;
use millstream_fence::barrierd::{View, send_hello, send_refusal};

use crate::barrier::Barrier;
use crate::bpf::{Bell, Bpf};
use crate::budget::{Budget, Payer};
use crate::clients::{Clients, Left, Limits};
use crate::clock::{monotonic_ns, used_ns};
use crate::poll::Poll;
use crate::processors::Online;
use crate::socket::{Heard, accept, hear, user};
use crate::stat::{self, Stat};
use crate::statement::state_of_quiet;
use crate::waiting::Waiting;

/// The time after which a fallback is used for processors that have not passed, if the program writes the times. Without the
/// program, a fallback is used at once.
const PATIENCE: Duration = Duration::from_millis(8);
/// The maximum number of connections that the daemon accepts, or of messages that it reads from one client, before it serves
/// other clients.
const MAX_TOGETHER: usize = 4;
/// The work of accepting a connection, as a multiple of the work of reading a message.
const GREETING: u32 = 8;

const LISTENER: u64 = u64::MAX;
const RING: u64 = u64::MAX - 1;
const BARRIER: u64 = u64::MAX - 2;

/// The greeting and the descriptors that the daemon sends to a new client.
#[derive(Debug)]
pub(crate) struct Gift {
    pub(crate) hello: Hello,
    pub(crate) page: OwnedFd,
    pub(crate) times: OwnedFd,
}

/// The server: the resources that the loop uses.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) view: Arc<View>,
    pub(crate) gift: Gift,
    pub(crate) listener: OwnedFd,
    pub(crate) bpf: Option<Bpf>,
    pub(crate) barrier: Option<Barrier>,
    pub(crate) stat: Option<Stat>,
    pub(crate) online: Option<Online>,
    /// The daemon's share of one processor, from 0 to 1.
    pub(crate) share: f64,
    pub(crate) limits: Limits,
    pub(crate) poll: Poll,
}

/// The state of the loop.
#[derive(Debug)]
struct State {
    budget: Budget,
    clients: Clients,
    /// Whether new connections are currently left pending.
    is_shut: bool,
    /// The numbers of the clients with an event in this iteration.
    named: Vec<usize>,
    waiting: Waiting,
    /// Whether a fallback is in use.
    helping: bool,
    /// The smallest virtual time of all processors at the last check.
    least: u64,
}

impl State {
    fn new(budget: Budget, limits: Limits) -> State {
        State {
            budget,
            clients: Clients::new(limits),
            is_shut: false,
            named: Vec::new(),
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
    /// Returns an error if waiting itself fails, because of a bug or because the kernel has no memory.
    pub(crate) fn serve(mut self) -> io::Result<Infallible> {
        self.poll.add(self.listener.as_fd(), LISTENER)?;
        if let Some(bpf) = &self.bpf {
            self.poll.add(bpf.ring.as_fd(), RING)?;
        }
        if let Some(barrier) = &self.barrier {
            self.poll.add(barrier.as_fd(), BARRIER)?;
        }
        let mut state = State::new(Budget::new(self.share, monotonic_ns(), used_ns()), self.limits);
        loop {
            let events = self.poll.wait(self.timeout(&state))?;
            state.budget.earn(monotonic_ns());
            self.unmute_solvent(&mut state);
            for name in events {
                self.hear(name, &mut state);
            }
            self.look(&mut state);
            state.budget.charge(used_ns());
            self.mute_debtors(&mut state);
        }
    }

    /// Returns the maximum time to wait for an event: until the next check of the processors for waiting clients, or until a
    /// payer is out of debt.
    fn timeout(&self, state: &State) -> Option<Duration> {
        let budget = &state.budget;
        let muted = state.clients.resting_users().map(Payer::User).chain(state.is_shut.then_some(Payer::Newcomers));
        let unmute = muted.map(|payer| budget.rest(payer)).min();
        let look = state.waiting.oldest().map(|oldest| {
            let look = if state.helping { stat::PERIOD } else { self.patience().saturating_sub(oldest.elapsed()) };
            // The waiting users pay for the check, so the daemon waits until at least one of them is out of debt.
            look.max(state.waiting.users().map(|user| budget.rest(Payer::User(user))).min().unwrap_or_default())
        });
        unmute.into_iter().chain(look).min()
    }

    /// Unmutes the connections of users that are out of debt, and the listening socket if the newcomers' account is out of
    /// debt. The daemon then serves them again.
    fn unmute_solvent(&self, state: &mut State) {
        if state.is_shut && state.budget.is_solvent(Payer::Newcomers) {
            state.is_shut = self.poll.unmute(self.listener.as_fd(), LISTENER).is_err();
        }
        let solvent: Vec<u32> =
            state.clients.resting_users().filter(|user| state.budget.is_solvent(Payer::User(*user))).collect();
        for user in solvent {
            state.clients.end_rest(user, |place, connection| {
                state.budget.note(Payer::User(user), 1);
                // The call fails only if the kernel has no memory. The client is then served only after it has connected again.
                let _ = self.poll.unmute(connection.socket.as_fd(), place as u64);
                self.view.page_client(place).rests.store(0, Ordering::Relaxed);
            });
        }
    }

    /// Mutes the clients with an event in this iteration whose users are now in debt. The other connections of these users are
    /// not muted yet, so each of them can still be served once.
    fn mute_debtors(&self, state: &mut State) {
        for place in std::mem::take(&mut state.named) {
            let Some(connection) = state.clients.get(place) else { continue };
            if state.budget.is_solvent(Payer::User(connection.user)) {
                continue;
            }
            let Some(connection) = state.clients.rest(place) else { continue };
            // Muting counts as work for the user, which is charged in the next iteration.
            state.budget.note(Payer::User(connection.user), 1);
            self.view.page_client(place).rests.store(1, Ordering::Relaxed);
            let _ = self.poll.mute(connection.socket.as_fd(), place as u64);
        }
        if !state.is_shut && !state.budget.is_solvent(Payer::Newcomers) {
            state.is_shut = self.poll.mute(self.listener.as_fd(), LISTENER).is_ok();
        }
    }

    fn patience(&self) -> Duration {
        if self.bpf.is_some() { PATIENCE } else { Duration::ZERO }
    }

    fn hear(&self, name: u64, state: &mut State) {
        match name {
            LISTENER => _ = (0..MAX_TOGETHER).all(|_| self.greet(state)),
            RING => self.bpf.iter().for_each(|bpf| bpf.ring.clear()),
            BARRIER => self.barrier.iter().for_each(Barrier::clear),
            client => {
                let place = client as usize;
                _ = (0..MAX_TOGETHER).all(|_| self.hear_client(place, state));
                state.named.push(place);
            }
        }
    }

    /// Accepts a connection, or refuses it with a reason. Returns whether a connection was pending.
    fn greet(&self, state: &mut State) -> bool {
        state.budget.note(Payer::Newcomers, GREETING);
        let Ok(Some(socket)) = accept(&self.listener) else { return false };
        match self.welcome(&socket, state) {
            Ok((place, user)) => {
                state.budget.open(Payer::User(user));
                state.clients.add(place, socket, user);
            }
            // If the socket has no room for the refusal, it is not sent, and the client only sees that the connection is closed.
            Err(reason) => _ = send_refusal(socket.as_fd(), self.gift.hello, &reason),
        }
        true
    }

    /// Sends the greeting on a new connection. Returns the connection's number and its user.
    ///
    /// # Errors
    /// Returns the reason why the connection is refused, as human-readable text.
    fn welcome(&self, socket: &OwnedFd, state: &State) -> Result<(usize, u32), String> {
        let failed = |error: io::Error| format!("the daemon can't take in a connection: {error}");
        let user = user(socket).map_err(failed)?;
        let place = state.clients.place_for(user)?;
        let gift = &self.gift;
        let hello = Hello { client: place as u32, ..gift.hello };
        self.view.page_client(place).rests.store(0, Ordering::Relaxed);
        self.poll.add(socket.as_fd(), place as u64).map_err(failed)?;
        send_hello(socket.as_fd(), hello, gift.page.as_fd(), gift.times.as_fd()).map_err(failed)?;
        Ok((place, user))
    }

    /// Reads a client's next request. Returns whether a request was pending.
    fn hear_client(&self, place: usize, state: &mut State) -> bool {
        let Some(connection) = state.clients.get(place) else { return false };
        let (user, now) = (connection.user, self.view.times().virtual_now.load(Ordering::Relaxed));
        state.budget.note(Payer::User(user), 1);
        let heard = if connection.rests {
            // A resting connection has an event only if its other side has closed.
            Heard::Leaves
        } else if state.budget.may_overdraw(Payer::User(user)) {
            hear(&connection.socket)
        } else {
            Heard::Silence
        };
        match heard {
            Heard::Asks(mut request) => {
                // A larger time than `now` is invalid: no client can have read it, and such a request might never be fulfilled. A
                // request for 0 is valid before virtual time first advances, but in `wanted` 0 means that no request waits, so it
                // becomes a request for 1.
                request.virtual_time = request.virtual_time.min(now).max(1);
                state.waiting.add(user, request, Instant::now());
                state.clients.note_heard(user, place);
                true
            }
            Heard::Silence => false,
            Heard::Leaves => {
                if state.clients.remove(place) == Left::TheUser {
                    state.waiting.forget(user);
                    state.budget.close(Payer::User(user));
                }
                false
            }
        }
    }

    /// Checks which processors have passed, and wakes the clients whose requests are fulfilled. For the other requests, arms the
    /// bell. Repeats the check if requests were fulfilled while the bell was being armed.
    fn look(&mut self, state: &mut State) {
        if state.waiting.oldest().is_none() {
            self.arm(Bell::Off);
            return;
        }
        state.waiting.users().for_each(|user| state.budget.note(Payer::User(user), 1));
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
            // After this fence, either the program finds the bell armed, or this loop sees the time that the program has written;
            // `bpf/program.rs` explains why.
            fence(Ordering::SeqCst);
            if !state.waiting.fulfil(&self.virtual_times()) {
                break;
            }
            fulfilled = true;
        }
        self.publish(state, fulfilled);
    }

    fn arm(&self, bell: Bell) {
        self.bpf.iter().for_each(|bpf| bpf.control.set_bell(bell));
    }

    /// Uses the fallbacks if the oldest request is older than the [patience](Self::patience) and at least one waiting user is out
    /// of debt, because the waiting users pay for the fallbacks.
    fn help(&mut self, state: &mut State) {
        let late = state.waiting.oldest().is_some_and(|since| since.elapsed() >= self.patience());
        if late && !state.helping {
            self.stat.iter_mut().for_each(Stat::forget);
        }
        state.helping = late;
        if late && state.waiting.users().any(|user| state.budget.is_solvent(Payer::User(user))) {
            self.barrier.iter().for_each(Barrier::ask);
            if let Some(stat) = &mut self.stat {
                // If the file cannot be read, the page stays unchanged. Clients then reach their own time limit.
                let _ = stat.look(&self.view);
            }
        }
    }

    fn virtual_times(&self) -> Vec<u64> {
        (0..self.view.cpus()).map(|cpu| self.view.virtual_time(cpu)).collect()
    }

    /// Publishes the minima of the processors' times, and wakes sleeping clients.
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

/// Increments a futex and wakes all threads that sleep on it.
fn turn(word: &AtomicU32) {
    // Release: a client that sees the new value sees the earlier statements.
    word.fetch_add(1, Ordering::Release);
    // SAFETY: the word outlives the call, which accesses nothing else.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
