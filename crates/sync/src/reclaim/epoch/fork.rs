//! A child of fork has one thread, and the states of all threads that its parent had.
//!
//! A thread that was pinned at the fork will never leave in the child, and would hold back everything that is retired there. So the child forgets
//! the guards of other threads. It leaves their garbage alone, for a thread may have been in the middle of changing it.

use std::sync::atomic::{AtomicBool, Ordering};

use super::process::shared;

/// The calling thread, by a name that it keeps in a child of fork.
pub(super) fn this_thread() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::pthread_self() as usize }
}

/// From now on children forget the guards of other threads.
pub(super) fn prepare() {
    // No lock, which a child could find taken. Of two threads both may register the handler; to forget twice does no harm.
    static IS_PREPARED: AtomicBool = AtomicBool::new(false);
    if !IS_PREPARED.load(Ordering::Acquire) {
        // Refused for want of memory alone: then children hold back what other threads had pinned.
        // SAFETY: the handler loads and stores atomics, which is all right in a child of fork.
        let _refused = unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
        // Release: pairs with the acquire above, so that a thread that finds it set has the handler registered.
        IS_PREPARED.store(true, Ordering::Release);
    }
}

extern "C" fn in_the_child() {
    let this = this_thread();
    shared().members().filter(|member| member.thread() != this).for_each(|member| member.participant.reset());
}
