//! A worker without work: it polls for a moment if work is likely to come, then sleeps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use millstream_sync::eventcount::{SpinPolicy, Waited};

use super::shared::{Locked, Shared};
use crate::engine::crew::post::Post;
use crate::engine::pace::ALERT_NS;

/// A thread of a blocking stage ends after this time without work.
const MAX_IDLE: Duration = Duration::from_secs(5);

/// The number of pauses between two readings of the clock while polling.
const ALERT_SPINS: u32 = 8;

/// Sleeps until there may be work. Returns `None` if the thread was idle for so long that it should end.
///
/// If another worker will be back soon, this worker first polls for a while. If work comes meanwhile, the polling
/// worker begins it at once; a sleeping thread would have to wake up first.
pub(crate) fn sleep<'a>(shared: &'a Arc<Shared>, mut state: Locked<'a>, post: Post, now: u64) -> Option<Locked<'a>> {
    let max_idle = (post != Post::Shared).then_some(MAX_IDLE);
    let mut alert = state.fall_asleep(post, now);
    let work = shared.work_for(post);
    let mut key = work.snapshot();
    // Changes that this thread made before it found no work may concern other threads, so it wakes them before it
    // sleeps.
    shared.unlock_and_wake(state);
    if alert {
        let until = shared.now() + ALERT_NS;
        while !work.has_changed(key) && shared.now() < until {
            for _ in 0..ALERT_SPINS {
                std::hint::spin_loop();
            }
        }
    }
    loop {
        let mut state = shared.lock();
        if state.has_woken(post, std::mem::take(&mut alert)) {
            return Some(state);
        }
        key = work.snapshot();
        drop(state);
        let deadline = max_idle.map(|most| Instant::now() + most);
        let waited = work.wait_with(key, deadline, SpinPolicy::NONE);
        if waited == Waited::TimedOut && shared.lock().crew.threads_mut(post).end_asleep() {
            return None;
        }
    }
}
