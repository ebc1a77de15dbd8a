//! The choice of back-ends, made once for the process.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering, compiler_fence, fence};

use crate::backend::{self, Backend};
use crate::{barrierd, global, membarrier, mprotect, symmetric};

/// The environment variable that selects a back-end for every kind of fence, if it works.
pub(crate) const VARIABLE: &str = "MILLSTREAM_FENCE";

/// The back-ends for [`Fence::FAST`](crate::Fence::FAST), best first. The last one works everywhere. No back-end that takes
/// milliseconds is in this list: if only such a back-end works, full fences on the hot side are better than making every caller
/// of a fast fence wait that long.
static FAST: [&Backend; 3] = [&membarrier::BACKEND, &mprotect::BACKEND, &symmetric::BACKEND];
/// The back-ends for [`Fence::CHEAP`](crate::Fence::CHEAP), tried before the fast one.
static CHEAP: [&Backend; 1] = [&barrierd::backend::BACKEND];
/// The back-ends for [`Fence::QUIET`](crate::Fence::QUIET), best first, tried before the fast one.
static QUIET: [&Backend; 2] = [&global::BACKEND, &barrierd::backend::BACKEND];

/// Whether [`light`] needs a fence. This copies the result of [`fast`] into one byte, which a plain load reads.
static LIGHT: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const FREE: u8 = 1;
const FULL: u8 = 2;

/// The chosen back-end, and the reasons for the choice.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) backend: &'static Backend,
    /// The reasons why better back-ends do not work here.
    passed_over: Vec<String>,
}

/// The hot side's fence. It pairs with a heavy fence of any other thread, of any kind of [`Fence`](crate::Fence).
///
/// Everything this thread wrote before is visible to any thread that passes a heavy fence afterwards. Everything written before
/// an earlier heavy fence is visible to this thread from here on. Light fences do not pair with each other.
///
/// Wait-free, except that the first call in the process chooses the back-end (three system calls). Cost: a load, and a branch
/// that is always predicted. If fences are not [asymmetric](crate::is_asymmetric) here, also a full fence (about 40 cycles).
///
/// ```
/// millstream_fence::light();
/// ```
#[inline(always)]
pub fn light() {
    // Relaxed: the value is decided once, and a thread that still reads `UNKNOWN` makes the choice itself.
    if LIGHT.load(Ordering::Relaxed) == FREE {
        compiler_fence(Ordering::SeqCst);
    } else {
        full_or_first();
    }
}

/// Out of line, to keep loops around [`light`] small. The cost of the call is negligible compared with the fence.
#[cold]
fn full_or_first() {
    if LIGHT.load(Ordering::Relaxed) == UNKNOWN {
        fast();
    }
    if LIGHT.load(Ordering::Relaxed) == FULL {
        fence(Ordering::SeqCst);
    }
}

/// Returns the choice for fast fences. It alone decides whether [`light`] needs a fence.
pub(crate) fn fast() -> &'static Choice {
    static CHOICE: OnceLock<Choice> = OnceLock::new();
    CHOICE.get_or_init(|| {
        let choice = Choice::make(&FAST, asked().as_deref(), &symmetric::BACKEND);
        LIGHT.store(if choice.backend.asymmetric { FREE } else { FULL }, Ordering::Relaxed);
        choice
    })
}

/// Returns the choice for cheap fences, whose callers can wait some milliseconds.
pub(crate) fn cheap() -> &'static Choice {
    static CHOICE: OnceLock<Choice> = OnceLock::new();
    rather(&CHEAP, &CHOICE)
}

/// Returns the choice for quiet fences, whose callers would rather wait than interrupt other cores.
pub(crate) fn quiet() -> &'static Choice {
    static CHOICE: OnceLock<Choice> = OnceLock::new();
    rather(&QUIET, &CHOICE)
}

/// Returns the first of these back-ends that works, or the fast one if none does.
fn rather(order: &[&'static Backend], choice: &'static OnceLock<Choice>) -> &'static Choice {
    let fast = fast();
    // There are two reasons to use the fast back-end at once. If light fences are full fences, the fast heavy fence interrupts no
    // core anyway. And if the environment names a back-end, it applies to every kind of fence.
    if !fast.backend.asymmetric || asked().as_deref() == Some(fast.backend.name) {
        return fast;
    }
    // The fast back-end is in force, and is not tried again. Even if the kernel refuses it by now, `symmetric` could not replace
    // it: a full fence on the cold side does not pair with light fences that are only compiler fences.
    choice.get_or_init(|| Choice::make(order, None, fast.backend))
}

fn asked() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|asked| !asked.is_empty())
}

impl Choice {
    /// Chooses the first of these back-ends that works, or `otherwise`.
    fn make(order: &[&'static Backend], asked: Option<&str>, otherwise: &'static Backend) -> Self {
        let mut passed_over = Vec::new();
        let wanted = asked.and_then(|asked| backend::ALL.into_iter().find(|backend| backend.name == asked));
        if let (Some(asked), None) = (asked, wanted) {
            passed_over.push(format!("{VARIABLE}={asked} names no back-end"));
        }
        for backend in wanted.into_iter().chain(order.iter().copied()) {
            match (backend.prepare)() {
                Ok(()) => return Choice { backend, passed_over },
                Err(reason) => passed_over.push(format!("{}: {reason}", backend.name)),
            }
        }
        Choice { backend: otherwise, passed_over }
    }

    pub(crate) fn describe(&self) -> String {
        let mut text = format!("{}: {}", self.backend.name, self.backend.about);
        for reason in &self.passed_over {
            text.push_str(&format!(" ({reason})"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static BROKEN: Backend = Backend { prepare: || Err("not here".to_owned()), name: "broken", ..membarrier::BACKEND };
    static BROKEN_THEN_WORKING: [&Backend; 2] = [&BROKEN, &symmetric::BACKEND];

    #[test]
    fn a_backend_that_does_not_work_is_passed_over_with_its_reason() {
        let choice = Choice::make(&BROKEN_THEN_WORKING, None, &mprotect::BACKEND);
        assert_eq!(choice.backend.name, "symmetric");
        assert_eq!(choice.describe(), "symmetric: a full fence on both sides (broken: not here)");
    }

    #[test]
    fn a_backend_asked_for_is_taken_before_better_ones() {
        assert_eq!(Choice::make(&FAST, Some("symmetric"), &symmetric::BACKEND).backend.name, "symmetric");
    }

    #[test]
    fn an_unknown_name_is_reported() {
        let text = Choice::make(&FAST, Some("mfence"), &symmetric::BACKEND).describe();
        assert!(text.contains("MILLSTREAM_FENCE=mfence names no back-end"), "{text}");
    }

    #[test]
    fn light_and_choice_agree() {
        light();
        assert_eq!(LIGHT.load(Ordering::Relaxed) == FREE, fast().backend.asymmetric);
    }

    #[test]
    fn no_choice_is_weaker_than_the_light_fence() {
        assert_eq!(quiet().backend.asymmetric, fast().backend.asymmetric);
        assert_eq!(cheap().backend.asymmetric, fast().backend.asymmetric);
    }
}
