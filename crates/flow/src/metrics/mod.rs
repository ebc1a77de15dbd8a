//! A flow's numbers as metrics, in the text formats of Prometheus and compatible scrapers.
//!
//! [`Snapshot::write_metrics`](crate::Snapshot::write_metrics) is a pure function of a snapshot. A program can serve or
//! store the text as it likes, and add its own families to the same [`Exposition`].
//!
//! ```
//! use millstream_flow::metrics::{Exposition, Format, Kind};
//! # use millstream_flow::Flow;
//! # let mut flow = Flow::builder::<()>("shout");
//! # let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
//! # flow.stage(work, |_, _| Ok(())).to(done);
//! # let control = flow.build(work).unwrap().control();
//!
//! let mut metrics = Exposition::new(String::new(), Format::OpenMetrics).label("run", "shout-4711");
//! control.snapshot().write_metrics(&mut metrics)?;
//! metrics.family("shout_volume", Kind::Gauge, "How loud it is.")?;
//! metrics.count(&[], 11)?;
//! let text = metrics.end()?;
//! assert!(text.contains("millstream_units_admitted_total{run=\"shout-4711\",flow=\"shout\"} 0\n"));
//! assert!(text.ends_with("shout_volume{run=\"shout-4711\"} 11\n# EOF\n"));
//! # Ok::<(), std::fmt::Error>(())
//! ```
//!
//! # Names and labels
//! Names begin with `millstream_`, units are seconds and bytes, and counters end in `_total`. The labels are `flow`,
//! `stage`, `resource` and `outcome`. Their values come from the flow's definition, so the number of series does not
//! depend on the number of units or keys. No label contains a key.
//!
//! Distributions are summaries. Their quantiles cover the whole run, each within 1 % of a recorded value; quantile 1 is
//! the largest value. Quantiles of several runs cannot be averaged, but sums and counts can be added.
//!
//! # Source
//! [OpenMetrics 1.0](https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md), and version 0.0.4 of the
//! [Prometheus text format](https://prometheus.io/docs/instrumenting/exposition_formats/).

mod exposition;
mod families;

pub use exposition::{Exposition, Format, Kind};
