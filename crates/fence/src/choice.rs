//! The choice of back-ends, made once for the process.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering, compiler_fence, fence};

use crate::backend::{self, Backend};
use crate::{barrierd, global, membarrier, mprotect, symmetric};

/// The environment variable that selects a back-end for every kind of fence, if it works.
pub(crate) const VARIABLE: &str = "MILLSTREAM_FENCE";

/// Back-ends for callers in a hurry, best first; the last works everywhere. A fence that takes milliseconds is not
/// among them: fencing on the hot side would be better than making every cold caller wait that long.
static FAST: [&Backend; 3] = [&membarrier::BACKEND, &mprotect::BACKEND, &symmetric::BACKEND];
/// Tried before the fast one for callers that can wait some milliseconds.
static CHEAP: [&Backend; 1] = [&barrierd::backend::BACKEND];
/// Tried before the fast one for callers that would rather wait than interrupt other cores.
static QUIET: [&Backend; 2] = [&global::BACKEND, &barrierd::backend::BACKEND];

/// The work of [`light`]; a copy of [`fast`]'s answer that one plain load reads.
static LIGHT: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const FREE: u8 = 1;
const FULL: u8 = 2;

/// A back-end, and the reasons for choosing it.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) backend: &'static Backend,
    /// The reasons why the back-ends before it were passed over.
    passed_over: Vec<String>,
}

/// The hot side's fence: pairs with a heavy fence of any other thread, whichever [`Fence`](crate::Fence) it is.
///
/// Everything this thread wrote before is visible to a thread that passes a heavy fence afterwards, and everything
/// written before an earlier heavy fence is visible to this thread from here on. Light fences do not pair with each
/// other.
///
/// Wait-free, except that the first call in the process chooses the back-end (three system calls). Cost: a load and a
/// branch that is always predicted, where [`is_asymmetric`](crate::is_asymmetric); otherwise also a full fence (about
/// 40 cycles).
///
/// ```
/// millstream_fence::light();
/// ```
#[inline(always)]
pub fn light() {
    // Relaxed: the value is decided once, and a thread that reads UNKNOWN makes the choice.
    if LIGHT.load(Ordering::Relaxed) == FREE {
        compiler_fence(Ordering::SeqCst);
    } else {
        full_or_first();
    }
}

/// This function is out of line to keep loops around [`light`] small: the call costs nothing compared with the fence.
#[cold]
fn full_or_first() {
    if LIGHT.load(Ordering::Relaxed) == UNKNOWN {
        fast();
    }
    if LIGHT.load(Ordering::Relaxed) == FULL {
        fence(Ordering::SeqCst);
    }
}

/// The choice for callers in a hurry. It alone decides the work of [`light`].
pub(crate) fn fast() -> &'static Choice {
    static CHOICE: OnceLock<Choice> = OnceLock::new();
    CHOICE.get_or_init(|| {
        let choice = Choice::make(&FAST, asked().as_deref(), &symmetric::BACKEND);
        LIGHT.store(if choice.backend.asymmetric { FREE } else { FULL }, Ordering::Relaxed);
        choice
    })
}

/// The choice for callers that can wait some milliseconds, but not indefinitely.
pub(crate) fn cheap() -> &'static Choice {
    static CHOICE: OnceLock<Choice> = OnceLock::new();
    rather(&CHEAP, &CHOICE)
}

/// The choice for callers that would rather wait than interrupt other cores.
pub(crate) fn quiet() -> &'static Choice {
    static CHOICE: OnceLock<Choice> = OnceLock::new();
    rather(&QUIET, &CHOICE)
}

/// The first of these back-ends that works, otherwise the fast one.
fn rather(order: &[&'static Backend], choice: &'static OnceLock<Choice>) -> &'static Choice {
    let fast = fast();
    // If the light side passes full fences, the heavy side interrupts no core anyway; and a back-end named by the
    // environment applies to every kind of fence.
    if !fast.backend.asymmetric || asked().as_deref() == Some(fast.backend.name) {
        return fast;
    }
    // The fast back-end is in force and is not tried again: even if the kernel refuses it by now, a full fence would
    // not pair with the free light fences.
    choice.get_or_init(|| Choice::make(order, None, fast.backend))
}

fn asked() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|asked| !asked.is_empty())
}

impl Choice {
    /// The first of these back-ends that works, or `otherwise`.
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
