//! Waiting as a task: a future instead of a sleeping thread.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use super::count::{Count, Key};
use super::kind::{Announced, Kind};
use super::quiet::Quiet;
use super::scope::{Certainty, Private, Scope as _};
use super::tasks::Ticket;
use super::timekeeper;

impl<K: Kind> Count<K, Private> {
    /// A future that is ready when the count differs from `key`.
    ///
    /// It may be dropped at any time; a wake-up meant for a single waiter is then passed on to another waiter. Polling
    /// never sleeps; when the task is about to wait, the poll briefly takes a lock and, if the count has a single
    /// incrementer, executes a heavy fence (some 10 µs). Everything written before the increment that ended the wait is
    /// visible afterwards (acquire).
    ///
    /// ```
    /// use millstream_sync::eventcount::EventCount;
    ///
    /// async fn next(count: &EventCount) -> u64 {
    ///     count.wait_async(count.snapshot()).await;
    ///     count.value()
    /// }
    /// ```
    pub fn wait_async(&self, key: Key) -> WaitAsync<'_, K> {
        WaitAsync { count: self, key, ticket: None, quiet: None }
    }

    /// Waits as a task until `ready` returns a value, and calls it again after each change of the count; otherwise like
    /// [`wait_async`](Self::wait_async).
    ///
    /// The change that makes `ready` succeed must happen before an increment.
    ///
    /// ```
    /// use std::sync::Mutex;
    /// use millstream_sync::eventcount::EventCount;
    ///
    /// async fn receive(queue: &Mutex<Vec<u32>>, arrivals: &EventCount) -> u32 {
    ///     arrivals.wait_for_async(|| queue.lock().unwrap().pop()).await
    /// }
    /// ```
    pub async fn wait_for_async<T>(&self, mut ready: impl FnMut() -> Option<T>) -> T {
        loop {
            let key = self.snapshot();
            if let Some(found) = ready() {
                return found;
            }
            self.wait_async(key).await;
        }
    }
}

/// The future of [`Count::wait_async`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct WaitAsync<'a, K: Kind> {
    count: &'a Count<K, Private>,
    key: Key,
    /// The task's position in the line, from the first poll that had to wait.
    ticket: Option<Ticket>,
    /// Set while the task relies on the timed rule.
    quiet: Option<Quiet>,
}

impl<K: Kind> Future for WaitAsync<'_, K> {
    type Output = ();

    /// Enters the line, *then* sets the flag and checks the count again. The incrementer changes the count, *then* goes
    /// through the line if it sees the flag. The line's lock decides which of the two comes first: if the task does, it
    /// is woken; if the incrementer does, the task sees its change in the second check. Each kind's documentation shows
    /// that the incrementer sees the flag.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { count, key, ticket, quiet } = &mut *self;
        let tasks = &count.scope.tasks;
        if count.has_changed(*key) {
            return self.finish();
        }
        let queued = ticket.is_some_and(|ticket| tasks.refresh(ticket, context.waker()));
        if queued && quiet.is_none() {
            return Poll::Pending;
        }
        if !queued {
            *ticket = Some(tasks.enter(context.waker()));
        }
        let announced = count.kind.announce(key.0);
        if announced == Announced::Changed {
            return self.finish();
        }
        let nap = match count.scope.confirm(K::OVERLOOKS) {
            Certainty::Now => None,
            Certainty::InTime => quiet.get_or_insert_with(Quiet::new).nap(announced),
        };
        if count.has_changed(*key) {
            return self.finish();
        }
        match nap {
            Some(nap) => timekeeper::wake_at(Instant::now() + nap, context.waker().clone()),
            None => *quiet = None,
        }
        Poll::Pending
    }
}

impl<K: Kind> WaitAsync<'_, K> {
    fn finish(&mut self) -> Poll<()> {
        if let Some(ticket) = self.ticket.take() {
            self.count.scope.tasks.leave(ticket);
        }
        Poll::Ready(())
    }
}

impl<K: Kind> Drop for WaitAsync<'_, K> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take()
            && !self.count.scope.tasks.leave(ticket)
        {
            // An increment woke this task before the drop, and perhaps only this task. So the wake-up is passed on to
            // the next waiter.
            self.count.wake(1);
        }
    }
}
