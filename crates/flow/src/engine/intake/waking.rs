//! Waking submitters at the entrance.
//!
//! A waker may poll its task at once, and the task may enter the flow, which wakes the next submitter. The stack could
//! then have as many nested calls as the flow has room for units. To prevent this, a thread that runs a wake-up defers
//! all further wake-ups until the current one is over.

use std::cell::RefCell;
use std::sync::Arc;

use super::entrance::{Entering, Wake};

/// A flow with submitters at its entrance.
pub(crate) trait Host: Send + Sync {
    /// Removes the submitters at these positions from the line, because their wake-ups failed. Returns the next
    /// submitters to wake.
    fn expel(&self, places: &[u64]) -> Entering;
}

/// The pending wake-ups of several flows.
type Pending = Vec<(Arc<dyn Host>, Entering)>;

thread_local! {
    /// The wake-ups to run after the current one; `None` if the thread runs no wake-up.
    static NEXT: RefCell<Option<Pending>> = const { RefCell::new(None) };
}

fn pop_next() -> Option<(Arc<dyn Host>, Entering)> {
    NEXT.try_with(|waiting| waiting.borrow_mut().as_mut()?.pop()).ok().flatten()
}

/// Runs the pending wake-ups before the thread blocks, because the thread may block on their effects. The caller must
/// hold no lock.
pub(crate) fn wake_before_blocking() {
    while let Some((flow, entering)) = pop_next() {
        wake_now(&*flow, entering);
    }
}

/// Wakes submitters of a flow. The caller must hold no lock.
pub(crate) fn wake<H: Host + 'static>(flow: &Arc<H>, entering: Entering) {
    // Waking a thread runs no user code, so it need not be deferred.
    let wake_threads = |(place, wake)| match wake {
        Wake::Thread(bell) => {
            bell.increment();
            None
        }
        Wake::Task(_) => Some((place, wake)),
    };
    let entering: Entering = entering.into_iter().filter_map(wake_threads).collect();
    if entering.is_empty() {
        return;
    }
    let mut next: Option<(Arc<dyn Host>, Entering)> = Some((flow.clone(), entering));
    let is_outermost = NEXT.try_with(|waiting| match &mut *waiting.borrow_mut() {
        Some(waiting) => {
            waiting.extend(next.take());
            false
        }
        none => {
            *none = Some(Vec::new());
            true
        }
    });
    // A thread that is ending has lost its local storage, so its wake-ups nest.
    while let Some((flow, entering)) = next {
        wake_now(&*flow, entering);
        next = pop_next();
    }
    if is_outermost == Ok(true) {
        let _ = NEXT.try_with(|waiting| waiting.borrow_mut().take());
    }
}

/// Runs the wake-ups. A submitter whose wake-up panics may never return, so it is removed from the line, and the next
/// submitter is woken.
fn wake_now(flow: &dyn Host, mut entering: Entering) {
    while !entering.is_empty() {
        let failed = entering.drain(..).filter_map(|(place, wake)| (!wake.wake()).then_some(place));
        let failed: Vec<u64> = failed.collect();
        if !failed.is_empty() {
            entering = flow.expel(&failed);
        }
    }
}
