//! How threads wait: one rule, for any machine.
//!
//! # The rule
//! A thread that waits may spin, yield its core, or sleep. The costs of these differ from machine to machine by an
//! order of magnitude. So the process [learns the costs](cost) where it runs, and the rule depends on these costs
//! alone:
//!
//! 1. **Poll for as long as a sleep costs, then sleep.** The cost `S` of a sleep is the time into the kernel plus the
//!    time of the wake-up. A waiter that knew the future would poll if its event came within `S`, and otherwise sleep
//!    at once. A waiter that polls for `S` first pays at most twice as much. No rule without knowledge of the future
//!    has a better worst case (Karlin, Manasse, McGeoch and Owicki, *Competitive randomized algorithms for nonuniform
//!    problems*, 1994).
//! 2. **Poll for less time while polling does not help.** Each sleep that lasts longer than `S` halves the time to
//!    poll; after five halvings the waiter sleeps at once. Each event that comes sooner doubles the time. This raises
//!    the worst case from twice the best cost to 49/16 of it: after a long wait, the waiter needs two short ones to
//!    notice that the pace has changed. In return, a ring that is idle for most of the time pays nothing for polling.
//! 3. **Yield where a core is shared, spin where it is not.** A partner that is running needs no core; a partner that
//!    is not running needs this one. So a waiter spins for as long as a yield takes, then yields, which costs at most
//!    twice the better of the two. Two kinds of yield change what the waiter does next:
//!    - A yield that took longer than two quick ones let another thread run. Then the waiter only yields, and counts
//!      each yield as a quick one: the other threads use the core in the meantime, and the waiter need not be woken.
//!    - A yield that took a whole turn (a millisecond or more) gave the core to a thread that is busy with other work.
//!      That thread would get the core again at each yield, whereas a sleeper that is woken takes the core back at
//!      once. Then the waiters spin and sleep, and do not yield again for 32 times the length of that yield.
//! 4. **Let a batch accumulate, within a latency budget.** Each check takes the cache line that the partner writes, and
//!    a partner that keeps its lines passes ten times as many events. So while events come in small portions, a
//!    consumer pauses between checks, and a producer waits for a quarter of the ring to be free. Either delay lasts for
//!    at most 1.6 µs, and for less in a ring of fewer than 1,000 slots. An event that comes alone is not delayed.
//! 5. **One polls, the others sleep.** A wake-up costs its waker as much as hundreds of events. Of the producers that
//!    find the ring full, [one polls](free_space), and the others sleep in a [fair line](line). Of interchangeable
//!    consumers, none is woken while another one polls: the poller finds the event. If there are more events than the
//!    poller takes, it wakes another consumer.
//!
//! The `try_` forms never pause, and tasks never poll between their wake-ups.
//!
//! # Worst cases
//! - A polling consumer that pauses finds an event after at most 1.6 µs. A polling consumer that yields finds it when
//!   the threads to which it yielded give the core back. A sleeping consumer finds it after a wake-up.
//! - The waits of a consumer cost at most 49/16 of the waits of a consumer that knows the future, if a sleep counts as
//!   `S`. `S` is elapsed time; the processor time of a sleep is less, about a tenth where wake-ups are slow.
//! - Before a yield that may last longer than a sleep, a poller no longer counts as a poller, because it may lose its
//!   core. Only the first long yield comes without warning: it delays the sleepers' events for as long as other threads
//!   keep the core.
//! - A waiter that shares its core with a thread that is always busy spends 1/32 of its time in yields, provided that a
//!   yield takes at most 0.1 s.
//! - A producer in the line waits for the turns of those in front of it, if all producers wait in the line. Producers
//!   that use the `try_` forms, or send at their own pace, may take the free slots first. In its turn, a producer polls
//!   for room and sends. The turn lasts until the producer next waits for room, once 32 `S` and at least 1 ms have
//!   passed. If each of the producer's waits takes `S` or longer, the turn may be shorter than 1 ms. If the consumers
//!   stop for good and leave room, a producer in the line finds the room within 200 ms.
//! - If the polling producer finds room and then sends no more, and the consumer uses only the `try_` forms, the
//!   producers in the line sleep until a `try_` call finds no event or a sleep times out.
//!
//! # Constants
//! | constant | unit | reason |
//! | --- | --- | --- |
//! | `MAX_GATHERING_NS`: 1600 | ns | the latency that throughput may cost, a third of a wake-up where wake-ups are quickest |
//! | `EVENT_PS`: 1600 | ps | about the time of one event: during a longer pause per slot, the ring could fill up |
//! | `MAX_HALVINGS`: 5 | | polling for less than 1/32 `S` makes a few checks, and finds little |
//! | `SHARED`: 2 | quick yields | yielding to another thread and returning takes two switches |
//! | `SLEEPS_PER_TURN`: 32 | `S` | wake-ups take 1/32 of a turn, and yields that last a turn take 1/32 of the time |
//! | `MIN_TURN_NS`: 1,000,000 | ns | the next polling producer first has to fill its core's caches |
//! | `MAX_YIELD_NS`: 100,000,000 | ns | a process that was stopped in a yield yields again within 3.2 s |
//! | `MIN_NAP`, `MAX_NAP_EACH`, `MAX_NAP`: 1, 50, 200 | ms | bounds of the sleep of a producer that no consumer wakes |
//! | `MAX_WAKE_UP_NS`: 100,000 | ns | a sleeper that takes longer to wake lacked a core, which is no cost of the wake-up |

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
