//! Light and heavy fences in a model: they promise what the real ones promise, and no more.
//!
//! Each thread has a word. A light fence acquires and releases the word of its thread; a heavy fence does so with the words of all
//! others, one after the other, as an interrupt reaches one core after the other. So a light and a heavy fence order each other,
//! and two light fences do not, as two full fences would.
//!
//! Where the environment asks for symmetric fences, as it may ask the real ones, both are full fences and nothing else.
//!
//! These are accesses, not fences of loom's, for another reason, too: loom lets another thread go on between two accesses, but
//! never between an access and a fence that follows it.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, LazyLock};

use loom::sync::atomic::{AtomicU32, Ordering, fence};
use loom::thread;

/// Threads of a model that pass fences, at most.
const THREADS: usize = 3;

/// Of one execution of a model.
struct Words {
    words: [AtomicU32; THREADS],
    /// How many have a thread. Not loom's, for nothing depends on who is first.
    given: Cell<usize>,
}

impl Words {
    fn new() -> Self {
        Words { words: std::array::from_fn(|_| AtomicU32::new(0)), given: Cell::new(0) }
    }
}

/// A thread's.
struct Own {
    words: Arc<Words>,
    word: usize,
}

impl Own {
    fn new() -> Self {
        let words = Arc::clone(&SHARED);
        LATEST.set(Some(Arc::clone(&words)));
        let word = words.given.replace(words.given.get() + 1);
        assert!(word < THREADS, "more than {THREADS} threads with fences");
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
    /// Of the execution under way, for threads that have lost their storage; loom runs a model on one real thread.
    static LATEST: RefCell<Option<Arc<Words>>> = const { RefCell::new(None) };
}

/// The same for all models of a run.
pub(crate) fn is_asymmetric() -> bool {
    static SYMMETRIC: LazyLock<bool> =
        LazyLock::new(|| std::env::var("MILLSTREAM_FENCE").is_ok_and(|asked| asked == "symmetric"));
    !*SYMMETRIC
}

/// A full fence. Another thread that can go on does so before it.
fn full() {
    thread::yield_now();
    fence(Ordering::SeqCst);
}

pub(crate) fn light() {
    if !is_asymmetric() {
        return full();
    }
    OWN.with(|own| own.words.words[own.word].fetch_add(1, Ordering::AcqRel));
}

pub(crate) fn heavy() {
    if !is_asymmetric() {
        return full();
    }
    fence(Ordering::SeqCst);
    match OWN.try_with(|own| (Arc::clone(&own.words), Some(own.word))) {
        Ok((words, own)) => visit(&words, own),
        // This thread is ending.
        Err(_) => LATEST.with_borrow(Option::clone).iter().for_each(|words| visit(words, None)),
    }
    fence(Ordering::SeqCst);
}

/// A model's fences are never refused.
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

/// A fence that is passed when the ticket is asked whether it was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket;

impl Ticket {
    pub(crate) fn is_done(self) -> bool {
        heavy();
        true
    }
}

/// Draws a ticket for a fence of this kind.
pub(crate) fn ticket(_fence: millstream_fence::Fence) -> Ticket {
    Ticket
}
