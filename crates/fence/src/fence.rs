//! The cold side: a fence by wish.

use std::fmt;

use crate::choice::{self, Choice};
use crate::grace;
use crate::ticket::Ticket;

/// A heavy fence, chosen by what its caller minds most. All pair with [`light`](crate::light).
///
/// | | how long | what it costs others |
/// | --- | --- | --- |
/// | [`FAST`](Fence::FAST) | some 10 µs (0.5 µs while the process has one thread) | an interrupt to each core that runs the process |
/// | [`CHEAP`](Fence::CHEAP) | 0.05 to 4 ms where [`barrierd`](crate::barrierd) runs when the process first asks, otherwise as the fast one | nothing where it runs: the daemon's page tells when every core was interrupted or idle anyway |
/// | [`QUIET`](Fence::QUIET) | 5 to 20 ms, longer on a busy machine | nothing: it waits until every core was interrupted or switched anyway |
///
/// Where a kernel or a sandbox offers less, the wish is granted as far as possible; [`describe`](Fence::describe)
/// tells.
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
    wish: Wish,
}

/// The kernel refuses every kind of heavy fence, though light fences are free since it did not: a sandbox was entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What the kernel says to the kind that is in force.
    pub reason: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no heavy fence is to be had any more: {}; let the sandbox allow membarrier(2)", self.reason)
    }
}

impl std::error::Error for Refused {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Fast,
    Cheap,
    Quiet,
}

impl Fence {
    /// As soon as possible; other cores may be interrupted.
    pub const FAST: Fence = Fence { wish: Wish::Fast };
    /// Within milliseconds, and without an interrupt to other cores where the daemon [`barrierd`](crate::barrierd)
    /// runs.
    pub const CHEAP: Fence = Fence { wish: Wish::Cheap };
    /// Without an interrupt to other cores, as long as there is a way; may take tens of milliseconds.
    pub const QUIET: Fence = Fence { wish: Wish::Quiet };

    /// Passes a heavy fence.
    ///
    /// What was written before this call is visible to every other thread after its next light fence; what they
    /// had written before their latest light fence is visible after this call. Where
    /// [`is_asymmetric`](Fence::is_asymmetric), it acts as if every other thread passed a full fence at some
    /// moment during the call.
    ///
    /// Blocks for as long as the kernel takes. It neither waits for locks of ours nor depends on the progress of
    /// other threads (with the mprotect back-end: on other callers of the same, who hold a lock for some 20 µs).
    ///
    /// If the kernel refuses the call after it accepted it when the back-end was chosen (a sandbox was entered since), another asymmetric fence is
    /// passed.
    ///
    /// # Panics
    /// If all of them are refused: a caller that went on without the fence would be wrong. [`try_heavy`](Fence::try_heavy) tells instead.
    pub fn heavy(self) {
        if let Err(refused) = self.try_heavy() {
            panic!("{refused}");
        }
    }

    /// Passes a heavy fence, as [`heavy`](Fence::heavy), for callers that can go on without it.
    ///
    /// # Errors
    /// [`Refused`]: no fence was passed. Another thread's may be, if the sandbox is this thread's alone.
    ///
    /// ```
    /// use millstream_fence::Fence;
    ///
    /// if Fence::FAST.try_heavy().is_ok() {
    ///     // Free what other threads looked at.
    /// } // else keep it
    /// ```
    pub fn try_heavy(self) -> Result<(), Refused> {
        grace::issue(self.choice().backend).map_err(|reason| Refused { reason })
    }

    /// A fence to come: [`Ticket::is_done`] tells when a heavy fence has passed that began after this call.
    ///
    /// Lock-free for [`FAST`](Fence::FAST) and [`CHEAP`](Fence::CHEAP); a quiet ticket takes a short lock of ours.
    /// Cost: a full fence and a load; for a cheap ticket a message to the daemon at most every 5 µs (1 µs), for a quiet
    /// one the waking of the thread that serves them.
    #[must_use]
    pub fn ticket(self) -> Ticket {
        Ticket::new(self)
    }

    /// Whether [`light`](crate::light) is free of fence instructions in this process.
    #[must_use]
    pub fn is_asymmetric(self) -> bool {
        self.choice().backend.asymmetric
    }

    /// Which back-end is in force for this wish and why, in one line for a person.
    #[must_use]
    pub fn describe(self) -> String {
        self.choice().describe()
    }

    pub(crate) fn choice(self) -> &'static Choice {
        match self.wish {
            Wish::Fast => choice::fast(),
            Wish::Cheap => choice::cheap(),
            Wish::Quiet => choice::quiet(),
        }
    }
}

/// Does nothing, because the operating system's fences are in force. Without the feature `std` it takes `heavy` for the heavy fence of this
/// program; from then on [`light`](crate::light) is free.
///
/// # Safety
/// For a program without `std`: every other thread passes a full fence, or is interrupted by something as good, between each call
/// of `heavy` and its return. And nobody has passed a fence of this crate before, or does so without knowing of this call (who
/// starts a processor or a thread afterwards lets it know).
///
/// ```
/// fn interrupt_all_processors() { /* and wait until each has answered */ }
///
/// // SAFETY: the other processors are not started yet.
/// unsafe { millstream_fence::give(interrupt_all_processors) };
/// ```
pub unsafe fn give(heavy: fn()) {
    let _ = heavy;
}

/// [`Fence::FAST`]`.heavy()`.
///
/// ```
/// millstream_fence::heavy();
/// ```
pub fn heavy() {
    Fence::FAST.heavy();
}

/// [`Fence::FAST`]`.ticket()`.
///
/// ```
/// let ticket = millstream_fence::ticket();
/// assert!(ticket.is_done(), "a fast fence is passed when it is asked for");
/// ```
#[must_use]
pub fn ticket() -> Ticket {
    Fence::FAST.ticket()
}

/// Whether [`light`](crate::light) is free of fence instructions in this process.
///
/// ```
/// println!("the light fence is free: {}", millstream_fence::is_asymmetric());
/// ```
#[must_use]
pub fn is_asymmetric() -> bool {
    Fence::FAST.is_asymmetric()
}

/// [`Fence::FAST`]`.describe()`.
///
/// ```
/// println!("{}", millstream_fence::describe());
/// ```
#[must_use]
pub fn describe() -> String {
    Fence::FAST.describe()
}
