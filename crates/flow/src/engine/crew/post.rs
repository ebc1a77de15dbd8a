//! Posts: the kinds of workers, and the counts of each kind's threads, on which wake-ups depend.

/// The batches that a thread may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Post {
    /// The batches of all non-blocking stages.
    Shared,
    /// The batches of one blocking stage.
    Stage(u16),
}

/// The threads of one post.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// The number of workers that exist.
    alive: usize,
    /// The number of workers that sleep.
    asleep: usize,
    /// The number of sleepers that still poll for work; waking them takes no system call.
    alert: usize,
    /// The number of workers that were woken and have not noticed it yet.
    signals: usize,
}

impl Threads {
    /// The number of threads that are awake without work, given the number of busy threads.
    #[inline]
    pub(crate) fn looking(&self, busy: usize) -> usize {
        self.alive - busy - self.asleep
    }

    #[inline]
    pub(crate) fn has_sleepers(&self) -> bool {
        self.asleep > 0
    }

    #[inline]
    pub(crate) fn has_alert(&self) -> bool {
        self.alert > 0
    }

    /// Whether a thread was woken and has not noticed it yet.
    #[inline]
    pub(crate) fn has_signals(&self) -> bool {
        self.signals > 0
    }

    /// The number of threads that the system must wake for one more wake-up: 0 if a polling sleeper will take the
    /// wake-up.
    #[inline]
    pub(crate) fn sleepers_to_wake(&self) -> usize {
        usize::from(self.alert <= self.signals)
    }

    /// Counts one sleeper as awake, so that it gets no second wake-up and does not end before the wake-up arrives.
    pub(crate) fn mark_woken(&mut self) {
        self.asleep -= 1;
        self.signals += 1;
    }

    /// Counts a thread that is about to start.
    pub(crate) fn count_start(&mut self) {
        self.alive += 1;
    }

    /// Counts a thread that ends or that the system refused to start.
    pub(crate) fn count_end(&mut self) {
        self.alive -= 1;
    }

    /// Counts the calling thread as asleep. An `alert` thread first polls for a while.
    pub(crate) fn fall_asleep(&mut self, alert: bool) {
        self.asleep += 1;
        self.alert += usize::from(alert);
    }

    /// Counts a poller as an ordinary sleeper.
    pub(crate) fn stop_polling(&mut self) {
        self.alert -= 1;
    }

    /// Takes a wake-up, if there is one. Its sender has already counted the sleeper as awake.
    pub(crate) fn take_signal(&mut self) -> bool {
        let woken = self.signals > 0;
        self.signals -= usize::from(woken);
        woken
    }

    /// Counts as awake a sleeper that no thread has woken, for example because its sleep has timed out.
    pub(crate) fn wake_by_itself(&mut self) {
        self.asleep -= 1;
    }

    /// Counts a sleeper as ended, unless a wake-up is on its way. Returns whether the sleeper ends.
    pub(crate) fn end_asleep(&mut self) -> bool {
        let ends = self.signals == 0;
        if ends {
            self.asleep -= 1;
            self.alive -= 1;
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_counts_its_sleeper_as_awake_before_the_sleeper_notices() {
        let mut threads = Threads::default();
        threads.count_start();
        threads.fall_asleep(false);
        assert_eq!((threads.looking(0), threads.sleepers_to_wake()), (0, 1));
        threads.mark_woken();
        assert!(threads.looking(0) == 1 && !threads.has_sleepers() && !threads.end_asleep());
        assert!(threads.take_signal() && !threads.take_signal());
    }

    #[test]
    fn a_poller_is_woken_without_the_system() {
        let mut threads = Threads::default();
        (0..2).for_each(|_| threads.count_start());
        threads.fall_asleep(true);
        threads.fall_asleep(false);
        assert_eq!(threads.sleepers_to_wake(), 0);
        threads.mark_woken();
        assert_eq!(threads.sleepers_to_wake(), 1, "the one poller is woken already");
    }
}
