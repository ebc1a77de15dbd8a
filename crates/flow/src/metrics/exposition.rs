//! The text formats of metrics: families, samples, labels and escapes.

use std::fmt::{self, Write};

use crate::snapshot::Quantiles;

/// The text format of an exposition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Version 0.0.4 of the Prometheus text format.
    Prometheus,
}

impl Format {
    /// Returns the media type for the `Content-Type` header.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The kind of a family of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A number that only rises. The family's samples end in `_total`.
    Counter,
    /// A number that rises and falls.
    Gauge,
    /// Quantiles, sum and count of a distribution.
    Summary,
    /// A constant 1 whose labels are the information. The family's sample ends in `_info`.
    Info,
}

/// A writer of metrics in a text format.
#[derive(Debug)]
pub struct Exposition<W> {
    to: W,
    format: Format,
    /// The labels of every sample in written form, each followed by a comma.
    constant: String,
    /// The sample name of the current family.
    sample: String,
}

impl<W: Write> Exposition<W> {
    /// Begins a text.
    pub fn new(to: W, format: Format) -> Self {
        Exposition { to, format, constant: String::new(), sample: String::new() }
    }

    /// Adds a label to every sample that follows.
    ///
    /// # Panics
    /// Panics if `name` is empty, begins with a digit, or has a character other than an ASCII letter, a digit or `_`.
    #[must_use]
    pub fn label(mut self, name: &str, value: &str) -> Self {
        let written = write_label(&mut self.constant, name, value).and_then(|()| self.constant.write_char(','));
        written.expect("a string takes all that is written to it");
        self
    }

    /// Begins a family. Each family may occur only once in a text.
    ///
    /// `name` must not have the suffixes that samples of a [`Kind`] get. A name that ends in `_seconds` or `_bytes`
    /// declares its unit.
    ///
    /// # Errors
    /// Returns the writer's errors.
    ///
    /// # Panics
    /// Panics if `name` is empty, begins with a digit, or has a character other than an ASCII letter, a digit or `_`.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) -> fmt::Result {
        assert!(is_name(name), "`{name}` is not a metric name");
        self.sample.clear();
        self.sample.push_str(name);
        self.sample.push_str(match kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Summary => "",
        });
        let open = self.format == Format::OpenMetrics;
        let family = if open { name } else { &self.sample };
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Summary => "summary",
            Kind::Info if open => "info",
            Kind::Gauge | Kind::Info => "gauge",
        };
        writeln!(self.to, "# TYPE {family} {kind}")?;
        if let Some(unit) = ["seconds", "bytes"].into_iter().find(|unit| open && name.ends_with(&format!("_{unit}"))) {
            writeln!(self.to, "# UNIT {family} {unit}")?;
        }
        write!(self.to, "# HELP {family} ")?;
        write_escaped(&mut self.to, help, open)?;
        self.to.write_char('\n')
    }

    /// Writes a sample of the current family with a whole number.
    ///
    /// # Errors
    /// Returns the writer's errors.
    ///
    /// # Panics
    /// Panics if a label has an invalid name (see [`label`](Self::label)).
    pub fn count(&mut self, labels: &[(&str, &str)], value: u64) -> fmt::Result {
        self.head("", labels, None)?;
        writeln!(self.to, " {value}")
    }

    /// Writes a sample of the current family with a number.
    ///
    /// # Errors
    /// Returns the writer's errors.
    ///
    /// # Panics
    /// Panics if a label has an invalid name (see [`label`](Self::label)).
    pub fn number(&mut self, labels: &[(&str, &str)], value: f64) -> fmt::Result {
        self.head("", labels, None)?;
        if value.is_infinite() {
            return writeln!(self.to, " {}Inf", if value > 0.0 { '+' } else { '-' });
        }
        writeln!(self.to, " {value}")
    }

    /// Writes a sample of the current family in seconds, exact to the nanosecond.
    ///
    /// # Errors
    /// Returns the writer's errors.
    ///
    /// # Panics
    /// Panics if a label has an invalid name (see [`label`](Self::label)).
    pub fn seconds(&mut self, labels: &[(&str, &str)], ns: u64) -> fmt::Result {
        self.head("", labels, None)?;
        self.time(ns)
    }

    /// Writes the samples of a summary in seconds. A distribution without values has no quantiles.
    ///
    /// # Errors
    /// Returns the writer's errors.
    ///
    /// # Panics
    /// Panics if a label has an invalid name (see [`label`](Self::label)).
    pub fn summary(&mut self, labels: &[(&str, &str)], times: &Quantiles) -> fmt::Result {
        let quantiles = [("0.5", times.p50), ("0.9", times.p90), ("0.99", times.p99), ("1.0", times.max)];
        for (quantile, ns) in quantiles.into_iter().filter(|_| times.count > 0) {
            self.head("", labels, Some(quantile))?;
            self.time(ns)?;
        }
        self.head("_sum", labels, None)?;
        self.time(times.total)?;
        self.head("_count", labels, None)?;
        writeln!(self.to, " {}", times.count)
    }

    /// Ends the text.
    ///
    /// # Errors
    /// Returns the writer's errors.
    pub fn end(mut self) -> Result<W, fmt::Error> {
        if self.format == Format::OpenMetrics {
            self.to.write_str("# EOF\n")?;
        }
        Ok(self.to)
    }

    /// Writes the name and labels of a sample.
    fn head(&mut self, ending: &str, labels: &[(&str, &str)], quantile: Option<&str>) -> fmt::Result {
        let quantile = quantile.map(|quantile| ("quantile", quantile));
        self.to.write_str(&self.sample)?;
        self.to.write_str(ending)?;
        if self.constant.is_empty() && labels.is_empty() && quantile.is_none() {
            return Ok(());
        }
        self.to.write_char('{')?;
        self.to.write_str(self.constant.strip_suffix(',').unwrap_or(""))?;
        let mut first = self.constant.is_empty();
        for (name, value) in labels.iter().copied().chain(quantile) {
            if !std::mem::take(&mut first) {
                self.to.write_char(',')?;
            }
            write_label(&mut self.to, name, value)?;
        }
        self.to.write_char('}')
    }

    fn time(&mut self, ns: u64) -> fmt::Result {
        writeln!(self.to, " {}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
    }
}

fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    name.bytes().next().is_some_and(is_letter) && name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

fn write_label(to: &mut impl Write, name: &str, value: &str) -> fmt::Result {
    assert!(is_name(name), "`{name}` is not a label name");
    write!(to, "{name}=\"")?;
    write_escaped(to, value, true)?;
    to.write_char('"')
}

/// Writes a text, and escapes its backslashes and line ends. Escapes quotes, too, if `quotes` is true.
fn write_escaped(to: &mut impl Write, text: &str, quotes: bool) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '\n', '"']) {
        let (plain, special) = rest.split_at(at);
        to.write_str(plain)?;
        match special.as_bytes()[0] {
            b'\n' => to.write_str("\\n")?,
            b'"' if !quotes => to.write_char('"')?,
            byte => {
                to.write_char('\\')?;
                to.write_char(char::from(byte))?;
            }
        }
        rest = &special[1..];
    }
    to.write_str(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(format: Format, write: impl FnOnce(&mut Exposition<String>) -> fmt::Result) -> String {
        let mut metrics = Exposition::new(String::new(), format);
        write(&mut metrics).unwrap();
        metrics.end().unwrap()
    }

    #[test]
    fn the_formats_name_counters_and_info_differently() {
        let write = |metrics: &mut Exposition<String>| {
            metrics.family("waited_seconds", Kind::Counter, "Waits: \"long\" ones.")?;
            metrics.seconds(&[], 1_500_000_001)?;
            metrics.family("build", Kind::Info, "The build.")?;
            metrics.count(&[("version", "1")], 1)
        };
        assert_eq!(
            text(Format::OpenMetrics, write),
            "# TYPE waited_seconds counter\n# UNIT waited_seconds seconds\n# HELP waited_seconds Waits: \\\"long\\\" ones.\n\
             waited_seconds_total 1.500000001\n\
             # TYPE build info\n# HELP build The build.\nbuild_info{version=\"1\"} 1\n# EOF\n"
        );
        assert_eq!(
            text(Format::Prometheus, write),
            "# TYPE waited_seconds_total counter\n# HELP waited_seconds_total Waits: \"long\" ones.\n\
             waited_seconds_total 1.500000001\n\
             # TYPE build_info gauge\n# HELP build_info The build.\nbuild_info{version=\"1\"} 1\n"
        );
    }

    #[test]
    fn a_distribution_without_values_has_no_quantiles() {
        let of = |times: Quantiles| {
            let text = text(Format::Prometheus, |metrics| {
                metrics.family("wait_seconds", Kind::Summary, "Waits.")?;
                metrics.summary(&[("stage", "a")], &times)
            });
            text.lines().skip(2).map(str::to_owned).collect::<Vec<_>>()
        };
        let empty = ["wait_seconds_sum{stage=\"a\"} 0.000000000", "wait_seconds_count{stage=\"a\"} 0"];
        assert_eq!(of(Quantiles::default()), empty);
        let times = Quantiles { p50: 1, p90: 2, p99: 3, max: 4, mean: 2, count: 5, total: 11 };
        assert_eq!(of(times).len(), 6);
        assert_eq!(of(times)[3], "wait_seconds{stage=\"a\",quantile=\"1.0\"} 0.000000004");
    }

    #[test]
    fn extreme_numbers_are_written_as_the_formats_require() {
        let written = text(Format::Prometheus, |metrics| {
            metrics.family("n", Kind::Gauge, "")?;
            metrics.number(&[], f64::INFINITY)?;
            metrics.number(&[], f64::NEG_INFINITY)?;
            metrics.number(&[], f64::NAN)?;
            metrics.number(&[], 0.25)?;
            metrics.count(&[], u64::MAX)?;
            metrics.seconds(&[], u64::MAX)
        });
        let values: Vec<_> = written.lines().skip(2).collect();
        assert_eq!(
            values,
            ["n +Inf", "n -Inf", "n NaN", "n 0.25", "n 18446744073709551615", "n 18446744073.709551615"]
        );
    }

    #[test]
    fn label_values_are_escaped() {
        let mut metrics = Exposition::new(String::new(), Format::Prometheus).label("run", "a\"b");
        metrics.family("n", Kind::Gauge, "").unwrap();
        metrics.count(&[("stage", "\\n\n\",x=\"ü")], 1).unwrap();
        let text = metrics.end().unwrap();
        assert_eq!(text.lines().nth(2), Some(r#"n{run="a\"b",stage="\\n\n\",x=\"ü"} 1"#));
    }
}
