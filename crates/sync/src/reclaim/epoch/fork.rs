//! Guards in a child of `fork`, which has one thread and copies of the states of all its parent's threads.
//!
//! A thread that was pinned at the fork never leaves in the child, and would hold back every object retired there. So
//! the child forgets the guards of other threads. It leaves their garbage alone, since a thread may have been in the
//! middle of changing it.

use std::sync::atomic::{AtomicBool, Ordering};

use super::process::shared;

/// A name of the calling thread that stays valid in a child of fork.
pub(super) fn this_thread() -> usize {
    // SAFETY: `pthread_self` has no preconditions.
    unsafe { libc::pthread_self() as usize }
}

/// Makes children of fork forget the guards of other threads.
pub(super) fn prepare() {
    // There is no lock, which a child could inherit locked. Two threads may both register the handler; forgetting twice
    // is harmless.
    static IS_PREPARED: AtomicBool = AtomicBool::new(false);
    if !IS_PREPARED.load(Ordering::Acquire) {
        // Registration fails only for lack of memory; then children hold back objects on behalf of other threads'
        // guards.
        // SAFETY: the handler only loads and stores atomics, which is allowed in a child of fork.
        let _refused = unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
        // Release pairs with the acquire above: a thread that finds the flag set has the handler registered.
        IS_PREPARED.store(true, Ordering::Release);
    }
}

extern "C" fn in_the_child() {
    let this = this_thread();
    shared().members().filter(|member| member.thread() != this).for_each(|member| member.participant.reset());
}
