//! The metrics of a run: those of its flow, and those of the command.

pub(crate) mod file;
#[cfg(feature = "http")]
pub(crate) mod otlp;

use std::sync::Arc;

use millstream_flow::metrics::{Exposition, Format, Kind};
use millstream_flow::{Control, Snapshot};

use crate::causes::Causes;

/// The source of a run's metrics.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    run: String,
    control: Control,
    causes: Arc<Causes>,
}

impl Metrics {
    /// Creates the metrics of the run of this name.
    pub(crate) fn new(run: &str, control: Control, causes: Arc<Causes>) -> Self {
        Self { run: run.to_owned(), control, causes }
    }

    /// Returns the current metrics.
    pub(crate) fn text(&self, format: Format) -> String {
        self.written(&self.control.snapshot(), format).expect("a string takes all that is written to it")
    }

    fn written(&self, now: &Snapshot, format: Format) -> Result<String, std::fmt::Error> {
        let mut to = Exposition::new(String::new(), format).label("run", &self.run);
        now.write_metrics(&mut to)?;
        let counts = self.causes.counts();
        if !counts.is_empty() {
            to.family("millstream_dead_letters", Kind::Counter, "Units given up on, by stage and cause.")?;
            for (stage, cause, units) in &counts {
                to.count(&[("flow", &now.flow), ("stage", stage), ("cause", &cause.to_string())], *units)?;
            }
        }
        to.family("millstream_build", Kind::Info, "The version of the command.")?;
        to.count(&[("version", env!("CARGO_PKG_VERSION"))], 1)?;
        to.end()
    }
}
