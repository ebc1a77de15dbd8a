//! `--with`: a second run, which shows how a stage's time depends on the capacity of a resource.
//!
//! The two runs differ only in the number of tokens of one resource. It is assumed that each additional token changes
//! the mean time of a stage that needs the resource by the same amount. While the resource is scarce, all its tokens
//! are in use. So the number of tokens tells how many units load the real resource at once.

use std::time::Duration;

use millstream_command::screen::text;
use millstream_flow::{Trace, WhatIf};
use serde::Serialize;

/// The dependence that was derived from two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Slope {
    pub(super) resource: String,
    /// The number of tokens in the first run and in the other run.
    pub(super) tokens: (u64, u64),
    pub(super) stages: Vec<Line>,
}

/// The dependence of one stage's time on the tokens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Line {
    pub(super) stage: String,
    /// The mean time in the first run and in the other run.
    pub(super) mean_s: (f64, f64),
    /// The increase for each additional token, as a share of the mean time in the first run.
    pub(super) per_token: f64,
}

impl Slope {
    /// Compares two runs.
    ///
    /// # Errors
    /// The traces are of different flows, or the difference is not just the tokens of one resource.
    pub(super) fn between(trace: &Trace, other: &Trace) -> Result<Self, String> {
        if trace.flow() != other.flow() || !trace.stages().eq(other.stages()) {
            let (one, two) = (text::printable(trace.flow()), text::printable(other.flow()));
            return Err(format!("it is the trace of another flow: `{two}`, and not `{one}`, or its stages differ"));
        }
        let (ours, theirs) = (trace.resources(), other.resources());
        let mut differ =
            ours.iter().zip(&theirs).filter(|(a, b)| a.capacity != b.capacity || a.rate_per_s != b.rate_per_s);
        let (a, b) = match (differ.next(), differ.next()) {
            (Some((a, b)), None) if a.rate_per_s.is_none() && b.rate_per_s.is_none() => (a, b),
            (None, _) => {
                return Err("both runs had the same resources: run one with --set resource.NAME=N".to_owned());
            }
            _ => return Err("the runs differ in more than the tokens of one resource".to_owned()),
        };
        let line = |stage: &str| {
            let (mean, theirs) = (trace.service_time(stage)?, other.service_time(stage)?);
            let relative = |time: Duration| time.as_secs_f64() / mean.as_secs_f64().max(1e-9);
            let per_token = (relative(theirs) - 1.0) / (b.capacity as f64 - a.capacity as f64);
            let mean_s = (mean.as_secs_f64(), theirs.as_secs_f64());
            Some(Line { stage: stage.to_owned(), mean_s, per_token })
        };
        let stages = trace.stages_that_need(&a.name).into_iter().filter_map(line).collect();
        Ok(Slope { resource: a.name.clone(), tokens: (a.capacity, b.capacity), stages })
    }

    /// Adds the dependence to `what_if`.
    pub(super) fn apply(&self, what_if: WhatIf) -> WhatIf {
        self.stages
            .iter()
            .fold(what_if, |what_if, line| what_if.service_by_capacity(&line.stage, &self.resource, line.per_token))
    }

    /// The lines that describe the dependence.
    pub(super) fn page(&self) -> String {
        let (ours, theirs) = self.tokens;
        let resource = text::printable(&self.resource);
        let mut page = format!("with the other run: {resource}={theirs} beside {resource}={ours} here\n");
        for Line { stage, mean_s: (mean, other), per_token } in &self.stages {
            page += &format!(
                "  `{}` takes {} here and {} there: {}{:.1} % for each further token\n",
                text::printable(stage),
                text::seconds(*mean),
                text::seconds(*other),
                if *per_token < 0.0 { "−" } else { "+" },
                per_token.abs() * 100.0
            );
        }
        page
    }
}
