//! Light and heavy fences in a model: they promise what the real ones promise, and no more.
//!
//! Each thread has a word. A light fence acquires and releases the word of its thread; a heavy fence acquires and
//! releases the words of all other threads, one after another, as an interrupt reaches one core after another. So a
//! light and a heavy fence order each other, whereas two light fences, unlike two full fences, do not.
//!
//! If the environment asks for symmetric fences, both are plain full fences, like the real ones in that case.
//!
//! There is a second reason to build these fences from accesses rather than from loom's fences: loom may switch threads
//! between two accesses, but never between an access and the fence that follows it.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, LazyLock};

use loom::sync::atomic::{AtomicU32, Ordering, fence};
use loom::thread;

/// The largest number of threads in a model that execute fences.
const MAX_THREADS: usize = 3;

/// The words of one execution of a model.
struct Words {
    words: [AtomicU32; MAX_THREADS],
    /// Number of words assigned to threads. This is not one of loom's atomics, because nothing depends on which thread
    /// comes first.
    assigned: Cell<usize>,
}

impl Words {
    fn new() -> Self {
        Words { words: std::array::from_fn(|_| AtomicU32::new(0)), assigned: Cell::new(0) }
    }
}

/// The word of one thread.
struct Own {
    words: Arc<Words>,
    word: usize,
}

impl Own {
    fn new() -> Self {
        let words = Arc::clone(&SHARED);
        LATEST.set(Some(Arc::clone(&words)));
        let word = words.assigned.replace(words.assigned.get() + 1);
        assert!(word < MAX_THREADS, "more than {MAX_THREADS} threads with fences");
        Own { words, word }
    }
}

loom::lazy_static! {
    static ref SHARED: Arc<Words> = Arc::new(Words::new());
}

loom::thread_local! {
    static OWN: Own = Own::new();
}

std::thread_local! {
    /// The words of the current execution, for threads whose thread-local storage is gone; loom runs a model on one
    /// real thread.
    static LATEST: RefCell<Option<Arc<Words>>> = const { RefCell::new(None) };
}

/// Whether the fences are asymmetric, which is the same for all models of a run.
pub(crate) fn is_asymmetric() -> bool {
    static SYMMETRIC: LazyLock<bool> =
        LazyLock::new(|| std::env::var("MILLSTREAM_FENCE").is_ok_and(|asked| asked == "symmetric"));
    !*SYMMETRIC
}

/// A full fence, before which every other runnable thread may run.
fn full() {
    thread::yield_now();
    fence(Ordering::SeqCst);
}

/// The light fence.
pub fn light() {
    if !is_asymmetric() {
        return full();
    }
    OWN.with(|own| own.words.words[own.word].fetch_add(1, Ordering::AcqRel));
}

/// The heavy fence.
pub fn heavy() {
    if !is_asymmetric() {
        return full();
    }
    fence(Ordering::SeqCst);
    match OWN.try_with(|own| (Arc::clone(&own.words), Some(own.word))) {
        Ok((words, own)) => visit(&words, own),
        // The thread is exiting, and its thread-local storage is gone.
        Err(_) => LATEST.with_borrow(Option::clone).iter().for_each(|words| visit(words, None)),
    }
    fence(Ordering::SeqCst);
}

/// Executes a heavy fence, which a model never refuses.
pub(crate) fn try_heavy() -> bool {
    heavy();
    true
}

fn visit(words: &Words, own: Option<usize>) {
    for (word, others) in words.words.iter().enumerate() {
        if own != Some(word) {
            others.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// A ticket for a fence, which `is_done` executes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket;

impl Ticket {
    pub(crate) fn is_done(self) -> bool {
        heavy();
        true
    }
}

/// Takes a ticket for a fence of kind `fence`.
pub(crate) fn ticket(_fence: millstream_fence::Fence) -> Ticket {
    Ticket
}
