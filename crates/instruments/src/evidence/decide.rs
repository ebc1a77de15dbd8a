//! The weighing of outcomes and of numbers, behind one interface.

use millstream_csm::Interval;
use millstream_csm::means::{MeanDriver, MeanSetup};
use millstream_csm::{Driver, Error, Progress, Setup, Verdict};

/// One observation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Observation {
    /// Whether it was a success.
    Outcome(bool),
    /// A value; the claim is about the mean of such values.
    Value(f64),
}

/// The question.
#[derive(Debug, Clone)]
pub(super) enum Question {
    Rate(Setup),
    Mean(MeanSetup),
}

/// Weighs the evidence.
#[derive(Debug)]
pub(super) enum Decider {
    Rate(Box<Driver>),
    Mean(Box<MeanDriver>),
}

/// The state of the evidence.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) trials: u64,
    /// The number of successes, if the observations are outcomes.
    pub(super) successes: Option<u64>,
    /// The rate or the mean that was observed.
    pub(super) estimate: Option<f64>,
    /// The interval of the true rate or mean, valid simultaneously for all numbers of observations.
    pub(super) interval: Interval,
    /// The standard error of the mean in units of the values' range, if the observations are values.
    pub(super) spread: Option<f64>,
    pub(super) progress: Progress,
    /// The level of the evidence against the nearest alternative, and the threshold below which this level must fall
    /// for a decision. Both are logarithms.
    pub(super) level: Option<(f64, f64)>,
}

impl View {
    pub(super) fn verdict(&self) -> Option<Verdict> {
        match self.progress {
            Progress::Decided(verdict) => Some(verdict),
            Progress::Running | Progress::AtLimit => None,
        }
    }
}

impl Question {
    /// Begins without evidence.
    pub(super) fn open(&self) -> Result<Decider, Error> {
        Ok(match self {
            Self::Rate(setup) => Decider::Rate(Box::new(Driver::new(setup)?)),
            Self::Mean(setup) => Decider::Mean(Box::new(MeanDriver::new(setup)?)),
        })
    }
}

impl Decider {
    /// Weighs one more observation; returns whether the claim is decided now.
    pub(super) fn observe(&mut self, observation: Observation) -> Result<bool, Error> {
        match (self, observation) {
            (Self::Rate(driver), Observation::Outcome(success)) => Ok(driver.observe(success).is_some()),
            (Self::Mean(driver), Observation::Value(value)) => Ok(driver.observe(value)?.is_some()),
            (Self::Rate(_), Observation::Value(_)) | (Self::Mean(_), Observation::Outcome(_)) => {
                unreachable!("a source gives what its question is about")
            }
        }
    }

    /// Returns the state of the evidence.
    pub(super) fn view(&self) -> View {
        match self {
            Self::Rate(driver) => {
                let status = driver.status();
                View {
                    trials: status.trials,
                    successes: Some(status.successes),
                    estimate: status.rate,
                    interval: status.interval,
                    spread: None,
                    progress: status.progress,
                    level: Some((status.level, status.log_eps)),
                }
            }
            Self::Mean(driver) => {
                let status = driver.status();
                let n = status.trials as f64;
                View {
                    trials: status.trials,
                    successes: None,
                    estimate: status.mean,
                    interval: status.interval,
                    spread: (status.trials > 0).then(|| driver.state().squares.sqrt() / n),
                    progress: status.progress,
                    level: None,
                }
            }
        }
    }
}
