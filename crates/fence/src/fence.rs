//! The cold side: heavy fences by priority.

use std::fmt;

use crate::choice::{self, Choice};
use crate::grace;
use crate::ticket::Ticket;

/// A heavy fence, chosen by its caller's priority. All kinds pair with [`light`](crate::light).
///
/// | | time | cost for other threads |
/// | --- | --- | --- |
/// | [`FAST`](Fence::FAST) | some 10 µs (0.5 µs while the process has one thread) | an interrupt to each core that runs the process |
/// | [`CHEAP`](Fence::CHEAP) | 0.05 to 4 ms where [`barrierd`](crate::barrierd) runs when the process first asks, otherwise as the fast one | none where it runs: the daemon's page tells when every core was interrupted or idle of its own accord |
/// | [`QUIET`](Fence::QUIET) | 5 to 20 ms, longer on a busy machine | none: it waits until every core was interrupted or switched of its own accord |
///
/// Where a kernel or a sandbox offers less, the priority is honoured as far as possible; [`describe`](Fence::describe)
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

/// The kernel refuses every kind of heavy fence. It accepted one when the process started to use light fences, which
/// rely on it; the process has entered a sandbox since.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// The kernel's reason for refusing the kind in force.
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
    /// As soon as possible; other cores may be interrupted.
    pub const FAST: Fence = Fence { priority: Priority::Fast };
    /// Without an interrupt to other cores where the daemon [`barrierd`](crate::barrierd) runs.
    pub const CHEAP: Fence = Fence { priority: Priority::Cheap };
    /// Without an interrupt to other cores, where the machine offers a way.
    pub const QUIET: Fence = Fence { priority: Priority::Quiet };

    /// Passes a heavy fence.
    ///
    /// Everything written before this call is visible to every other thread after its next light fence; everything
    /// other threads wrote before their latest light fence is visible after this call. Where
    /// [`is_asymmetric`], the call acts as if every other thread passed a full fence at some
    /// moment during it.
    ///
    /// Blocks for as long as the kernel takes. It waits for no lock of this crate and does not depend on the progress
    /// of other threads (with the mprotect back-end it waits for other callers, each of which holds a lock for some 20
    /// µs).
    ///
    /// If the kernel now refuses a call that it accepted when the back-end was chosen (a sandbox was entered since),
    /// the call passes another asymmetric fence.
    ///
    /// # Panics
    /// If all of them are refused: a caller that went on without the fence would be wrong.
    /// [`try_heavy`](Fence::try_heavy) returns an error instead.
    pub fn heavy(self) {
        if let Err(refused) = self.try_heavy() {
            panic!("{refused}");
        }
    }

    /// Passes a heavy fence, like [`heavy`](Fence::heavy), for callers that can go on without it.
    ///
    /// # Errors
    /// [`Refused`]: no fence was passed. Other threads may still pass theirs, if only this thread is in the sandbox.
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

    /// A future fence: [`Ticket::is_done`] tells when a heavy fence that began after this call has ended.
    ///
    /// Lock-free for [`FAST`](Fence::FAST) and [`CHEAP`](Fence::CHEAP); a quiet ticket takes a short lock of this
    /// crate. Cost: a full fence and a load. A cheap ticket costs two of each, and a message to the daemon (1 µs) if
    /// virtual time, which advances every 5 µs or so, has advanced since the last message; a quiet ticket also wakes
    /// the thread that serves quiet tickets.
    #[must_use]
    pub fn ticket(self) -> Ticket {
        Ticket::new(self)
    }

    /// One line for people: the back-end in force for this priority, and the reason.
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

/// Does nothing, since the operating system's fences are in force. Without the feature `std` it sets the heavy fence of
/// this program; from then on [`light`](crate::light) is free.
///
/// # Safety
/// For a program without `std`: between each call of `heavy` and its return, every other thread passes a full fence, or
/// is interrupted in an equivalent way. No thread has passed a fence of this crate before this call, and this call
/// happens before every later fence, as it does if the processors or the threads are started afterwards.
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

/// The cold side's fence in a hurry: [`Fence::FAST`]`.heavy()`.
///
/// ```
/// millstream_fence::heavy();
/// ```
pub fn heavy() {
    Fence::FAST.heavy();
}

/// Whether [`light`](crate::light) is free of fence instructions in this process, whichever [`Fence`] the cold side
/// uses.
///
/// ```
/// println!("the light fence is free: {}", millstream_fence::is_asymmetric());
/// ```
#[must_use]
pub fn is_asymmetric() -> bool {
    choice::fast().backend.asymmetric
}
