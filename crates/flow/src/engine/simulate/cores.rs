//! Cores: computing jobs share them evenly, like threads of equal priority.
//!
//! With `n` jobs on `c` cores, each job runs at the speed `min(1, c / n)`, less a loss. The loss models two effects:
//! the operating system does not move a job to an idle core at once, and other programs use the cores, too. A single
//! job loses nothing. The loss grows linearly with the number of jobs, and is largest when each core has a job.
//!
//! All jobs run at the same speed, so one counter of work done is enough: a job that needs `w` more work ends when the
//! counter has grown by `w`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The computing jobs.
pub(crate) struct Cores {
    cores: f64,
    /// The part of the speed that is lost when every core has a job.
    loss: f64,
    /// The work, in nanoseconds, that a job would have done by `at_ns` if it had run since time 0.
    done: f64,
    at_ns: u64,
    /// The jobs, each with the value of `done` at which it ends.
    jobs: BinaryHeap<Reverse<(Work, u64)>>,
}

/// An amount of work; never NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Work(f64);

impl Eq for Work {}

impl PartialOrd for Work {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Work {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Cores {
    pub(crate) fn new(cores: usize, loss: f64) -> Self {
        Cores { cores: cores.max(1) as f64, loss, done: 0.0, at_ns: 0, jobs: BinaryHeap::new() }
    }

    fn speed(&self) -> f64 {
        let jobs = self.jobs.len() as f64;
        let busy = ((jobs - 1.0) / (self.cores - 1.0).max(1.0)).clamp(0.0, 1.0);
        (self.cores / jobs).min(1.0) * (1.0 - self.loss * busy)
    }

    fn advance(&mut self, now: u64) {
        self.done += (now - self.at_ns) as f64 * self.speed();
        self.at_ns = now;
    }

    /// Adds a job that needs a core for `cpu_ns` if it has the core to itself.
    pub(crate) fn add(&mut self, job: u64, cpu_ns: u64, now: u64) {
        self.advance(now);
        self.jobs.push(Reverse((Work(self.done + cpu_ns as f64), job)));
    }

    /// Returns the time at which the next job ends, if no job is added before then; `u64::MAX` if there is no job.
    pub(crate) fn next_end(&self) -> u64 {
        let Some(Reverse((Work(end), _))) = self.jobs.peek() else { return u64::MAX };
        let left = ((end - self.done) / self.speed()).max(0.0).ceil();
        self.at_ns.saturating_add(left as u64)
    }

    /// Removes and returns the next job, if it has ended by `now`.
    pub(crate) fn take_ended(&mut self, now: u64) -> Option<u64> {
        if self.next_end() > now {
            return None;
        }
        self.advance(now);
        self.jobs.pop().map(|Reverse((_, job))| job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_on_cores_of_their_own_take_their_time() {
        let mut cores = Cores::new(2, 0.0);
        cores.add(1, 100, 0);
        cores.add(2, 50, 10);
        assert_eq!(cores.next_end(), 60);
        assert_eq!((cores.take_ended(59), cores.take_ended(60), cores.next_end()), (None, Some(2), 100));
    }

    #[test]
    fn more_jobs_than_cores_share_them_evenly() {
        let mut cores = Cores::new(1, 0.0);
        cores.add(1, 100, 0);
        cores.add(2, 100, 50);
        // The first job has 50 left, and both run at half speed. So the first job ends at 150, when the second has 50
        // left, and the second ends at 200.
        assert_eq!((cores.next_end(), cores.take_ended(150)), (150, Some(1)));
        assert_eq!((cores.next_end(), cores.take_ended(200), cores.next_end()), (200, Some(2), u64::MAX));
    }

    #[test]
    fn jobs_lose_speed_to_each_other_as_cores_fill_up() {
        let mut cores = Cores::new(3, 0.5);
        cores.add(1, 100, 0);
        assert_eq!(cores.next_end(), 100, "a job alone loses nothing");
        cores.add(2, 100, 0);
        // Both run at three quarters of the speed.
        assert_eq!(cores.next_end(), 134);
        cores.add(3, 100, 0);
        assert_eq!(cores.next_end(), 200);
    }

    #[test]
    fn the_work_done_equals_the_cores_times_the_time() {
        let mut cores = Cores::new(3, 0.0);
        (0..7).for_each(|job| cores.add(job, 300, 0));
        let mut ended = 0;
        while cores.next_end() != u64::MAX {
            let now = cores.next_end();
            cores.take_ended(now);
            ended = now;
        }
        assert_eq!(ended, 700);
    }
}
