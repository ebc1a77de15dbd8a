//! The driver: collects outcomes until they decide the claim.

use super::schedule::next_report;
use super::{Claim, Setup, Tests, Verdict};
use crate::interval::{self, Interval};
use crate::process::{Watch, check_counts, count};
use crate::{Direction, Error};

/// Decides a claim trial by trial, with an interval for the rate that may be examined at any time.
///
/// **Error.** The probability that the verdict or any interval is wrong is at most `setup.error`, whatever the rate, if
/// the outcomes are independent and each is a success with the same probability. The limit, the times of examination
/// and an early stop do not matter. With [`Method::Mixture`](crate::Method::Mixture), the test of a threshold gets the
/// whole error, and the interval costs nothing. At any rate other than the threshold, only one of the two verdicts is
/// wrong, and the interval gets the part of the error that this verdict does not use. With the other methods, the tests
/// get two thirds of the error and the interval a third.
///
/// The interval agrees with the verdict. While the claim is undecided, the interval contains the threshold. Once the
/// claim is decided, the interval ends at the threshold or before it.
///
/// ```
/// use millstream_csm::{Claim, Driver, Progress, Setup, Verdict};
///
/// let mut driver = Driver::new(&Setup::new(Claim::AtLeast(0.9), 1e-6).limit(10_000))?;
/// let mut n = 0;
/// let status = driver.run(|| { n += 1; n % 50 != 0 }, |_progress| ());
/// assert_eq!(status.progress, Progress::Decided(Verdict::Holds));
/// assert!(status.interval.contains(0.98) && status.trials < 500);
/// # Ok::<(), millstream_csm::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Driver {
    tests: Tests,
    floor: Option<Watch>,
    ceiling: Option<Watch>,
    claim: Claim,
    limit: u64,
    trials: u64,
    successes: u64,
    verdict: Option<Verdict>,
}

/// The progress of a [`Driver`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The driver needs more trials.
    Running,
    /// The claim is decided.
    Decided(Verdict),
    /// The driver has reached its limit without a verdict.
    AtLimit,
}

/// The state of a [`Driver`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Status {
    /// Trials so far.
    pub trials: u64,
    /// Successes among them.
    pub successes: u64,
    /// The observed success rate, if there are trials.
    pub rate: Option<f64>,
    /// The rates that are not ruled out: a confidence sequence, valid for all numbers of trials simultaneously, that
    /// agrees with the verdict.
    pub interval: Interval,
    /// The level of the test that is closest to stopping.
    pub level: f64,
    /// The limit below which this level must fall.
    pub log_eps: f64,
    /// The progress.
    pub progress: Progress,
}

impl Driver {
    /// A driver without trials.
    ///
    /// # Errors
    /// A threshold or the error is not between 0 and 1, thresholds are not in order, the method needs two thresholds, or
    /// the limit is zero.
    pub fn new(setup: &Setup) -> Result<Self, Error> {
        let tests = setup.tests()?;
        Ok(Driver {
            floor: tests.floor.clone().map(Watch::new),
            ceiling: tests.ceiling.clone().map(Watch::new),
            tests,
            claim: setup.claim,
            limit: setup.limit.unwrap_or(crate::MAX_TRIALS),
            trials: 0,
            successes: 0,
            verdict: None,
        })
    }

    /// A driver that continues after these trials. The counts are all the evidence, so only the set-up and the counts
    /// need to be stored between runs. If the counts decide the claim, the claim is decided immediately. (For
    /// [`Claim::Within`], earlier counts may have proven a side that these counts no longer prove. Without
    /// [`with_proven_sides`](Self::with_proven_sides), that side is forgotten, which costs trials but is safe.)
    ///
    /// [`Claim::Within`]: super::Claim::Within
    ///
    /// # Errors
    /// The errors of [`new`](Self::new); also more successes than trials, or too many trials.
    pub fn resume(setup: &Setup, trials: u64, successes: u64) -> Result<Self, Error> {
        let mut driver = Driver::new(setup)?;
        driver.observe_set(trials, successes)?;
        Ok(driver)
    }

    /// The proven sides of the claim's lower and upper threshold. With [`Claim::Within`], the counts may no longer show
    /// what earlier counts have proven, so a driver should be restored with its proven sides.
    ///
    /// [`Claim::Within`]: super::Claim::Within
    #[must_use]
    pub fn proven_sides(&self) -> [Option<Direction>; 2] {
        let (floor, ceiling) = self.proven();
        [floor, ceiling]
    }

    /// Adds the [`proven_sides`](Self::proven_sides) of another driver with the same set-up and counts. Sides of
    /// thresholds that the claim does not have are ignored.
    ///
    /// ```
    /// use millstream_csm::{Claim, Driver, Setup};
    ///
    /// let setup = Setup::new(Claim::Within { low: 0.1, high: 0.9 }, 1e-3);
    /// let mut driver = Driver::new(&setup)?;
    /// driver.observe_slice(&[true; 30]);
    /// let (trials, successes) = driver.counts();
    /// let restored = Driver::resume(&setup, trials, successes)?.with_proven_sides(driver.proven_sides());
    /// assert_eq!(restored.proven_sides(), driver.proven_sides());
    /// # Ok::<(), millstream_csm::Error>(())
    /// ```
    #[must_use]
    pub fn with_proven_sides(mut self, sides: [Option<Direction>; 2]) -> Self {
        for (watch, side) in [&mut self.floor, &mut self.ceiling].into_iter().zip(sides) {
            if let (Some(watch), Some(side)) = (watch, side) {
                watch.stop(side);
            }
        }
        self.conclude();
        self
    }

    /// Adds a trial, and returns the verdict, if there is one. After the verdict and at the limit, trials are ignored.
    ///
    /// Cost: about three nanoseconds.
    #[inline]
    pub fn observe(&mut self, success: bool) -> Option<Verdict> {
        if self.verdict.is_some() || self.trials >= self.limit {
            return self.verdict;
        }
        self.trials += 1;
        self.successes += u64::from(success);
        let before = self.proven();
        if let Some(floor) = &mut self.floor {
            floor.observe(success);
        }
        if let Some(ceiling) = &mut self.ceiling {
            ceiling.observe(success);
        }
        if self.proven() != before {
            self.conclude();
        }
        self.verdict
    }

    /// Adds trials in order. Returns the number of trials used, and the verdict. Not all trials are used if the claim
    /// is decided or the limit is reached. The verdict comes at the same trial as with [`observe`](Self::observe).
    pub fn observe_slice(&mut self, outcomes: &[bool]) -> (usize, Option<Verdict>) {
        let mut used = 0;
        while used < outcomes.len() && self.verdict.is_none() && self.trials < self.limit {
            let room = usize::try_from(self.limit - self.trials).unwrap_or(usize::MAX).min(outcomes.len() - used);
            let next_look = [&self.floor, &self.ceiling].into_iter().flatten().map(|watch| watch.until_look(room));
            let chunk = &outcomes[used..][..next_look.min().unwrap_or(room)];
            used += chunk.len();
            self.add(chunk.len() as u64, count(chunk));
        }
        (used, self.verdict)
    }

    /// Adds a set of trials, and evaluates the evidence once, after the last trial. Use it for outcomes that are
    /// identically distributed only as sets, such as a shuffled sample of production requests, or that come from
    /// several machines at once. After the verdict and at the limit, sets are ignored; the last set may exceed the
    /// limit.
    ///
    /// # Errors
    /// More successes than trials, or more than [`MAX_TRIALS`](crate::MAX_TRIALS) in all.
    pub fn observe_set(&mut self, trials: u64, successes: u64) -> Result<Option<Verdict>, Error> {
        if self.verdict.is_some() || self.trials >= self.limit {
            return Ok(self.verdict);
        }
        check_counts(trials, successes)?;
        check_counts(self.trials + trials, self.successes + successes)?;
        self.add(trials, successes);
        Ok(self.verdict)
    }

    /// The state. Computes the interval, which takes about 20 microseconds, or two to three times as long if the error
    /// of the interval depends on the rate.
    #[must_use]
    pub fn status(&self) -> Status {
        let tests = [&self.tests.floor, &self.tests.ceiling].into_iter().flatten();
        let looks = tests.map(|test| (test.look(self.trials, self.successes).level, test.log_eps()));
        let nearest = looks.min_by(|x, y| (x.0 - x.1).total_cmp(&(y.0 - y.1)));
        let (level, log_eps) = nearest.expect("a claim has a test");
        let rate = (self.trials > 0).then(|| self.successes as f64 / self.trials as f64);
        let interval = interval::invert_by_regions(self.trials, self.successes, &self.tests.interval);
        Status {
            trials: self.trials,
            successes: self.successes,
            rate,
            interval: self.claim.agreeing(interval, self.verdict, rate.unwrap_or(0.5)),
            level,
            log_eps,
            progress: self.progress(),
        }
    }

    /// The trials so far, and the successes among them. With the set-up, this is all that needs to be stored between
    /// runs.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.trials, self.successes)
    }

    /// The progress. Unlike [`status`](Self::status), this computes nothing.
    #[must_use]
    pub fn progress(&self) -> Progress {
        match self.verdict {
            Some(verdict) => Progress::Decided(verdict),
            None if self.trials >= self.limit => Progress::AtLimit,
            None => Progress::Running,
        }
    }

    /// Runs trials until the claim is decided or the limit is reached. Reports progress
    /// [occasionally](super::report_due) and at the end.
    pub fn run(&mut self, mut trial: impl FnMut() -> bool, mut progress: impl FnMut(&Status)) -> Status {
        let mut due = next_report(self.trials);
        while self.verdict.is_none() && self.trials < self.limit {
            self.observe(trial());
            if self.trials == due && self.verdict.is_none() && self.trials < self.limit {
                progress(&self.status());
                due = next_report(due);
            }
        }
        let status = self.status();
        progress(&status);
        status
    }

    fn add(&mut self, trials: u64, successes: u64) {
        self.trials += trials;
        self.successes += successes;
        for watch in [&mut self.floor, &mut self.ceiling].into_iter().flatten() {
            watch.observe_set(trials, successes);
        }
        self.conclude();
    }

    fn proven(&self) -> (Option<Direction>, Option<Direction>) {
        let stopped = |watch: &Option<Watch>| watch.as_ref().and_then(Watch::stopped);
        (stopped(&self.floor), stopped(&self.ceiling))
    }

    fn conclude(&mut self) {
        let (floor, ceiling) = self.proven();
        self.verdict = self.tests.verdict(floor, ceiling);
    }
}
