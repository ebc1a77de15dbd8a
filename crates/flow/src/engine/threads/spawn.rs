//! How threads start: the workers, and the timekeeper.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::clock::keep_time;
use super::shared::Shared;
use crate::engine::crew::crew::SPAWN_RETRY_NS;
use crate::engine::crew::post::Post;
use crate::engine::cycle::work;
use crate::engine::identity;

/// The number of attempts to start the timekeeper.
const TIMEKEEPER_ATTEMPTS: u32 = 100;

/// Opens admission.
///
/// # Panics
/// Panics if the system keeps refusing to start the first thread, which is the timekeeper.
pub(crate) fn open(shared: &Arc<Shared>) {
    start_timekeeper(shared);
    let now = shared.now();
    shared.lock().open(now);
}

/// Starts a worker, as a thread or a fiber; the state already counts it as alive. If the system refuses the thread, the
/// flow goes on with the threads it has, and the timekeeper tries again after a while.
pub(crate) fn start_worker(shared: &Arc<Shared>, post: Post) {
    let name = match post {
        Post::Shared => "worker",
        Post::Stage(stage) => &*shared.site().stage(stage).name,
    };
    #[cfg(feature = "fibers")]
    if shared.are_fibers(post) {
        let seat = Seat { shared: shared.clone(), post, started_ns: shared.now(), has_begun: false };
        return shared.fibers().spawn(name.into(), move || seat.work());
    }
    let theirs = shared.clone();
    if start(shared, name, move || work(&theirs, post)).is_err() {
        let mut state = shared.lock();
        state.spawn_failed(post, shared.now());
        // Perhaps a sleeping worker can do the work instead, so new wake-ups are planned.
        shared.unlock_and_wake(state);
    }
}

/// A fiber that was started for a stage.
#[cfg(feature = "fibers")]
struct Seat {
    shared: Arc<Shared>,
    post: Post,
    /// The time at which the fiber was started.
    started_ns: u64,
    has_begun: bool,
}

#[cfg(feature = "fibers")]
impl Seat {
    fn work(mut self) {
        self.has_begun = true;
        identity::join(self.shared.site().flow_id());
        if let Some(mut track) = self.shared.track(self.post) {
            track.fiber_began(self.shared.now().saturating_sub(self.started_ns));
        }
        work(&self.shared, self.post);
        if let Post::Stage(stage) = self.post {
            self.shared.fibers().note_depth(stage);
        }
    }
}

#[cfg(feature = "fibers")]
impl Drop for Seat {
    /// A fiber for which the system has no stack or no runtime counts as a refused thread.
    fn drop(&mut self) {
        if !self.has_begun {
            let mut state = self.shared.lock();
            state.spawn_failed(self.post, self.shared.now());
            self.shared.unlock_and_wake(state);
        }
    }
}

/// Starts the flow's timekeeper before anything is admitted. If the system refuses a thread later, the timekeeper tries
/// again.
fn start_timekeeper(shared: &Arc<Shared>) {
    for _ in 0..TIMEKEEPER_ATTEMPTS {
        let theirs = shared.clone();
        match start(shared, "timekeeper", move || keep_time(&theirs)) {
            Ok(()) => return,
            Err(_) => std::thread::sleep(Duration::from_nanos(SPAWN_RETRY_NS)),
        }
    }
    panic!("flow `{}` cannot start a single thread: the system refuses every attempt", shared.site().name());
}

fn start(shared: &Arc<Shared>, name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    // The kernel keeps 15 bytes of a thread's name, which ends at a NUL.
    let name = format!("ms-{name}").replace('\0', "?");
    let flow_id = shared.site().flow_id();
    let thread = std::thread::Builder::new().name(name).spawn(move || {
        identity::join(flow_id);
        body();
    })?;
    let mut threads = shared.threads.lock().unwrap_or_else(PoisonError::into_inner);
    threads.retain(|thread| !thread.is_finished());
    threads.push(thread);
    Ok(())
}
