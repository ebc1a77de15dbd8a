//! The cold side: heavy fences by priority.

use std::fmt;

use crate::choice::{self, Choice};
use crate::grace;
use crate::ticket::Ticket;

/// A heavy fence, chosen by its caller's priority. All kinds pair with [`light`](crate::light).
///
/// | | time | cost for other threads |
/// | --- | --- | --- |
/// | [`FAST`](Fence::FAST) | about 10 µs (0.5 µs while the process has one thread) | an interrupt to each core that runs the process |
/// | [`CHEAP`](Fence::CHEAP) | 0.05 to 4 ms if [`barrierd`](crate::barrierd) runs when the process first needs it, otherwise as long as a fast fence | none with `barrierd`: its page shows when every core was interrupted or idle of its own accord |
/// | [`QUIET`](Fence::QUIET) | 5 to 20 ms, longer on a busy machine | none: the fence waits until every core was interrupted or has switched threads of its own accord |
///
/// If the kernel or a sandbox refuses a kind of fence, the nearest kind that works replaces it; [`describe`](Fence::describe)
/// names the back-end in force.
///
/// ```
/// use millstream_fence::Fence;
///
/// let ticket = Fence::QUIET.ticket();
/// // … go on working …
/// ticket.wait();
/// assert!(ticket.is_done());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    priority: Priority,
}

/// The kernel refuses every kind of heavy fence. It accepted one when the process began to use light fences, which rely on it.
/// Since then, the process has entered a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// The kernel's reason for refusing the fence of the back-end in force.
    pub reason: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the kernel no longer allows any heavy fence: {}; let the sandbox allow membarrier(2)", self.reason)
    }
}

impl std::error::Error for Refused {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Priority {
    Fast,
    Cheap,
    Quiet,
}

impl Fence {
    /// A fence that is passed as soon as possible. Other cores may be interrupted.
    pub const FAST: Fence = Fence { priority: Priority::Fast };
    /// A fence that interrupts no other core if the daemon [`barrierd`](crate::barrierd) runs.
    pub const CHEAP: Fence = Fence { priority: Priority::Cheap };
    /// A fence that interrupts no other core, if the machine has a mechanism for this.
    pub const QUIET: Fence = Fence { priority: Priority::Quiet };

    /// Passes a heavy fence.
    ///
    /// Everything written before this call is visible to every other thread after its next light fence; everything
    /// other threads wrote before their latest light fence is visible after this call. If fences are [asymmetric](is_asymmetric)
    /// here, the call acts as if every other thread passed a full fence at some moment during the call.
    ///
    /// Blocks for as long as the kernel takes. The time does not depend on the progress of other threads, with one exception:
    /// with the mprotect back-end, the call waits for other callers, each of which holds a lock for about 20 µs.
    ///
    /// If the process has entered a sandbox since the back-end was chosen, and the kernel now refuses the fence, another
    /// asymmetric fence is passed.
    ///
    /// # Panics
    /// Panics if the kernel refuses all of these fences, because the caller could not continue correctly without a fence.
    /// [`try_heavy`](Fence::try_heavy) returns an error instead.
    pub fn heavy(self) {
        if let Err(refused) = self.try_heavy() {
            panic!("{refused}");
        }
    }

    /// Passes a heavy fence, like [`heavy`](Fence::heavy), for callers that can continue without it.
    ///
    /// # Errors
    /// Returns [`Refused`] if no fence was passed. If only this thread is in the sandbox, other threads may still pass fences.
    ///
    /// ```
    /// use millstream_fence::Fence;
    ///
    /// if Fence::FAST.try_heavy().is_ok() {
    ///     // Free the objects that other threads have used.
    /// } // otherwise keep them
    /// ```
    pub fn try_heavy(self) -> Result<(), Refused> {
        grace::issue(self.choice().backend).map_err(|reason| Refused { reason })
    }

    /// Draws a ticket for a future fence: [`Ticket::is_done`] tells whether a heavy fence that began after this call has ended.
    ///
    /// Lock-free for [`FAST`](Fence::FAST) and [`CHEAP`](Fence::CHEAP); a quiet ticket briefly locks a mutex of this crate. A
    /// ticket costs a full fence and a load, and a quiet ticket also wakes the thread that serves quiet tickets. A cheap ticket
    /// costs two full fences and two loads. It also costs a message to the daemon (1 µs) if the daemon's [virtual
    /// time](crate::barrierd::layout) has advanced since the last message, as it does about every 5 µs.
    #[must_use]
    pub fn ticket(self) -> Ticket {
        Ticket::new(self)
    }

    /// Returns one line of human-readable text: the back-end in force for this priority, and the reason for it.
    #[must_use]
    pub fn describe(self) -> String {
        self.choice().describe()
    }

    pub(crate) fn choice(self) -> &'static Choice {
        match self.priority {
            Priority::Fast => choice::fast(),
            Priority::Cheap => choice::cheap(),
            Priority::Quiet => choice::quiet(),
        }
    }
}

/// Does nothing, because the operating system's fences are used. Without the feature `std`, this function sets the heavy fence of
/// the program; from then on, [`light`](crate::light) needs no fence instruction.
///
/// # Safety
/// For a program without `std`: between each call of `heavy` and its return, every other thread passes a full fence, or
/// is interrupted in an equivalent way. No thread has passed a fence of this crate before this call, and this call happens before
/// every later fence of any thread. This is the case if the other processors or threads are started afterwards.
///
/// ```
/// fn interrupt_all_processors() { /* and wait until each has answered */ }
///
/// // SAFETY: the other processors are not started yet.
/// unsafe { millstream_fence::set_heavy_fence(interrupt_all_processors) };
/// ```
pub unsafe fn set_heavy_fence(heavy: fn()) {
    let _ = heavy;
}

/// Passes the cold side's fence as soon as possible. The same as [`Fence::FAST`]`.heavy()`.
///
/// ```
/// millstream_fence::heavy();
/// ```
pub fn heavy() {
    Fence::FAST.heavy();
}

/// Returns whether [`light`](crate::light) is free of fence instructions in this process. This does not depend on which [`Fence`]
/// the cold side uses.
///
/// ```
/// println!("the light fence is free: {}", millstream_fence::is_asymmetric());
/// ```
#[must_use]
pub fn is_asymmetric() -> bool {
    choice::fast().backend.asymmetric
}
