//! Which back-end is in force, chosen once for the process.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering, compiler_fence, fence};

use crate::backend::Backend;
use crate::{membarrier, symmetric};

/// Best first; the last works everywhere.
const BACKENDS: [Backend; 2] = [membarrier::BACKEND, symmetric::BACKEND];

/// Takes the back-end of this name, if it works.
pub(crate) const VARIABLE: &str = "MILLSTREAM_FENCE";

static CHOICE: OnceLock<Choice> = OnceLock::new();

/// What [`light`] has to do; a copy of what [`CHOICE`] says, to be read by one plain load.
static LIGHT: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const FREE: u8 = 1;
const FULL: u8 = 2;

struct Choice {
    backend: &'static Backend,
    /// Why the back-ends before it were passed over.
    passed_over: Vec<String>,
}

/// The hot side's fence: pairs with [`heavy`] on any other thread.
///
/// What this thread wrote before is visible to whoever passes a heavy fence afterwards, and what was written
/// before an earlier heavy fence is visible to this thread from here on. Light fences do not pair with each
/// other.
///
/// Wait-free, except that the first call in the process chooses the back-end (three system calls). Cost: a load
/// and a branch that is always predicted, where [`is_asymmetric`]; otherwise also a full fence (about 40
/// cycles).
///
/// ```
/// millstream_fence::light();
/// ```
#[inline(always)]
pub fn light() {
    // Relaxed: the value is decided once, and whoever reads UNKNOWN asks CHOICE.
    match LIGHT.load(Ordering::Relaxed) {
        FREE => compiler_fence(Ordering::SeqCst),
        FULL => fence(Ordering::SeqCst),
        _ => first_light(),
    }
}

#[cold]
fn first_light() {
    choice();
    light();
}

/// The cold side's fence: pairs with [`light`] and with `heavy` on any other thread of this process.
///
/// What was written before this call is visible to every other thread after its next light fence; what they
/// had written before their latest light fence is visible after this call. Where [`is_asymmetric`], it acts
/// as if every other thread passed a full fence at some moment during the call.
///
/// Blocks for as long as the kernel takes: with the membarrier back-end under 1 µs in a process of one thread,
/// some 10 µs while others run. It neither waits for locks of ours nor depends on the progress of other threads.
///
/// # Panics
/// If the kernel refuses the call after it accepted it when the back-end was chosen (a sandbox was entered
/// since).
///
/// ```
/// millstream_fence::heavy();
/// ```
pub fn heavy() {
    (choice().backend.heavy)();
}

/// Whether [`light`] is free of fence instructions in this process.
///
/// ```
/// println!("the light fence is free: {}", millstream_fence::is_asymmetric());
/// ```
#[must_use]
pub fn is_asymmetric() -> bool {
    choice().backend.asymmetric
}

/// Which back-end is in force and why, in one line for a person.
///
/// ```
/// let text = millstream_fence::describe();
/// assert!(text.starts_with("membarrier: ") || text.starts_with("symmetric: "));
/// ```
#[must_use]
pub fn describe() -> String {
    choice().describe()
}

fn choice() -> &'static Choice {
    CHOICE.get_or_init(|| {
        let asked = std::env::var(VARIABLE).ok().filter(|asked| !asked.is_empty());
        let choice = Choice::make(&BACKENDS, asked.as_deref());
        LIGHT.store(if choice.backend.asymmetric { FREE } else { FULL }, Ordering::Relaxed);
        choice
    })
}

impl Choice {
    fn make(backends: &'static [Backend], asked: Option<&str>) -> Self {
        let mut passed_over = Vec::new();
        let wanted = asked.and_then(|asked| backends.iter().find(|backend| backend.name == asked));
        if let (Some(asked), None) = (asked, wanted) {
            passed_over.push(format!("{VARIABLE}={asked} names no back-end"));
        }
        for backend in wanted.into_iter().chain(backends) {
            match (backend.prepare)() {
                Ok(()) => return Choice { backend, passed_over },
                Err(reason) => passed_over.push(format!("{}: {reason}", backend.name)),
            }
        }
        Choice { backend: &symmetric::BACKEND, passed_over }
    }

    fn describe(&self) -> String {
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

    static BROKEN_THEN_WORKING: [Backend; 2] =
        [Backend { prepare: || Err("not here".to_owned()), name: "broken", ..membarrier::BACKEND }, symmetric::BACKEND];

    #[test]
    fn a_backend_that_does_not_work_is_passed_over_with_its_reason() {
        let choice = Choice::make(&BROKEN_THEN_WORKING, None);
        assert_eq!(choice.backend.name, "symmetric");
        assert_eq!(choice.describe(), "symmetric: a full fence on both sides (broken: not here)");
    }

    #[test]
    fn a_backend_asked_for_is_taken_before_better_ones() {
        assert_eq!(Choice::make(&BACKENDS, Some("symmetric")).backend.name, "symmetric");
    }

    #[test]
    fn a_backend_asked_for_that_does_not_work_is_not_taken() {
        let choice = Choice::make(&BROKEN_THEN_WORKING, Some("broken"));
        assert_eq!(choice.backend.name, "symmetric");
    }

    #[test]
    fn an_unknown_name_is_reported() {
        let text = Choice::make(&BACKENDS, Some("mfence")).describe();
        assert!(text.contains("MILLSTREAM_FENCE=mfence names no back-end"), "{text}");
    }

    #[test]
    fn light_and_choice_agree() {
        light();
        assert_eq!(LIGHT.load(Ordering::Relaxed) == FREE, is_asymmetric());
    }
}
