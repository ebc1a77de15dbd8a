//! How threads wait: one rule, for any machine.
//!
//! # The rule
//! A thread that waits may spin, yield its core, or sleep. What each costs differs from machine to machine by an order of
//! magnitude, so the process [learns the costs](cost) where it runs, and the rule depends on these costs alone:
//!
//! 1. **Poll for as long as a sleep costs, then sleep.** A sleep costs its thread the way into the kernel and the wake-up,
//!    `S` together. A waiter that knew the future would poll if its event came before `S`, and sleep at once otherwise. One
//!    that polls for `S` first pays at most twice as much, and no rule that cannot see ahead pays less in its worst case
//!    (Karlin, Manasse, McGeoch and Owicki, *Competitive randomized algorithms for nonuniform problems*, 1994).
//! 2. **Poll for less time while polling does not help.** The time to poll halves with each sleep in which no event came before
//!    `S`, and after five of them the waiter sleeps at once; it doubles with each event that comes sooner. An adversary that
//!    knows this rule makes a waiter pay 49/16 of the best cost, not twice as much: by one long wait and two short ones, of
//!    which the second shows that the pace has changed. In return, a ring that is idle for most of the time pays nothing for
//!    polling.
//! 3. **Yield where a core is shared, spin where it is not.** A partner that runs needs no core; one that does not run needs
//!    this one. So a waiter spins for as long as a yield takes, and yields: that costs at most twice the better of the two.
//!    A yield that took longer than two quick ones let another thread run. Then the waiter only yields, and each turn of the
//!    others counts as a quick yield: a core that others use is not wasted, and the thread keeps its place on it. But a
//!    thread that keeps the core for a whole turn (a millisecond or more) is busy with other things, and has the core again
//!    after each yield, while a sleeper that is woken takes it back at once. Then the waiters spin and sleep, and try a yield
//!    after 32 times as long.
//! 4. **Let a batch gather, within a latency budget.** A check takes the cache line that the partner writes, and a partner that
//!    keeps its lines passes ten times as many events. So while events come in small portions, a consumer pauses between
//!    checks, and a producer waits for a quarter of the ring to be free. Either delay lasts for at most 1.6 µs, less in a ring
//!    of less than 1,000 slots, and an event that comes alone has none.
//! 5. **One polls, the others stand by.** A wake-up costs its waker as much as hundreds of events. Of the producers that find
//!    the ring full, [one polls](free_space), and the rest sleep in a [fair line](line). Of interchangeable consumers, none is
//!    woken while another one polls: the poller finds the event, and wakes another consumer if there is more than it takes.
//!
//! The `try_` forms never pause, and tasks never poll between their wake-ups.
//!
//! # Worst cases
//! - An event waits for a polling consumer for at most a gap of 1.6 µs, or for a quick yield and the threads that run
//!   meanwhile. It waits for a sleeping consumer for a wake-up.
//! - The waits of a consumer cost at most 49/16 of those of one that sees ahead, a sleep counted as `S`. `S` is a time: a
//!   sleep takes less of the processor's time, about a tenth where wake-ups are slow.
//! - Before a yield that may last longer than a sleep, a poller ceases to count as one, because it may lose its core. The
//!   first yield that is unexpectedly long delays the sleepers' events for as long as other threads keep the core.
//! - Beside threads that are always busy, yields that wait for them take 1/32 of a waiter's time, if one
//!   takes at most 0.1 s.
//! - A producer in the line waits for the turns of those before it, as long as the producers wait like it: those that use
//!   the `try_` forms, or send at a pace of their own, may take the room first. A turn lasts 32 `S`, and at least 1 ms
//!   unless its waits take `S` each; it ends at the next wait of the polling producer. If the consumers stop for good and
//!   leave room, the producer in the line finds it within 200 ms.
//! - If the polling producer leaves and the consumer uses only the `try_` forms, the line sleeps until a `try_` call finds
//!   nothing.
//!
//! # Constants
//! | constant | unit | reason |
//! | --- | --- | --- |
//! | `MAX_GATHERING_NS`: 1600 | ns | the latency that throughput may cost, a third of a wake-up where that is quickest |
//! | `EVENT_PS`: 1600 | ps | an event takes longer to pass, so a gap of as many events as the ring has slots gathers a full ring |
//! | `MAX_HALVINGS`: 5 | | polling for less than 1/32 `S` makes a few checks, and finds little |
//! | `SHARED`: 2 | quick yields | a yield that switches threads makes two switches |
//! | `SLEEPS_PER_TURN`: 32 | `S` | wake-ups take 1/32 of a turn, and yields that last a turn 1/32 of the time |
//! | `MIN_TURN_NS`: 1,000,000 | ns | the producer that takes over has to fill its core's caches, which no wake-up shows |
//! | `MAX_YIELD_NS`: 100,000,000 | ns | a process that was stopped in a yield yields again within 3.2 s |
//! | `MIN_NAP`, `MAX_NAP_EACH`, `MAX_NAP`: 1, 50, 200 | ms | bounds of the sleep of a producer that no consumer wakes |
//! | `MAX_WAKE_UP_NS`: 100,000 | ns | a wake-up that takes longer lacked a core, and says nothing of its cost |

mod arrivals;
mod cost;
mod free_space;
mod line;
mod notifier;
mod set;
mod spin;
mod strategy;

pub(crate) use arrivals::Arrivals;
pub(crate) use free_space::{FreeSpace, Places};
pub(crate) use notifier::Notifier;
pub use set::WaitSet;
pub use strategy::WaitStrategy;
