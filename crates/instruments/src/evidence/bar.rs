//! Progress: the interval as it narrows around the true value, and the share of the required evidence that has been
//! gathered.

use std::io::Stderr;
use std::time::{Duration, Instant};

use millstream_command::screen::line::Line;
use millstream_command::screen::look::{Look, Paint};
use millstream_command::screen::terminal::Terminal;
use millstream_command::screen::{out, text};

use super::answer::Subject;
use super::claim::Stated;
use super::decide::View;

/// The time between two redraws of a terminal.
const LIVE_EVERY: Duration = Duration::from_millis(100);
/// The pause before the first line if there is no terminal; each later pause is 1.5 times as long as the previous
/// one.
const PLAIN_FIRST: Duration = Duration::from_secs(2);
const MAX_PLAIN_PAUSE: Duration = Duration::from_secs(60);

/// Shows progress on standard error.
pub(super) struct Bar {
    mode: Mode,
    start: Instant,
    next: Instant,
    pause: Duration,
}

enum Mode {
    Live(Terminal<Stderr>),
    Plain,
    Quiet,
}

impl Bar {
    pub(super) fn open(quiet: bool) -> Self {
        let mode = if quiet {
            Mode::Quiet
        } else if Look::of_stderr().is_some() {
            Mode::Live(Terminal::of_stderr())
        } else {
            Mode::Plain
        };
        let pause = if matches!(mode, Mode::Live(_)) { LIVE_EVERY } else { PLAIN_FIRST };
        let start = Instant::now();
        Self { mode, start, next: start + pause, pause }
    }

    /// Shows the state of the evidence, if it is time for the next picture.
    pub(super) fn show(&mut self, lines: impl FnOnce(Duration, Look) -> Vec<String>) {
        let now = Instant::now();
        if now < self.next || matches!(self.mode, Mode::Quiet) {
            return;
        }
        let shown = match &mut self.mode {
            Mode::Quiet => Ok(()),
            Mode::Plain => {
                self.pause = (self.pause * 3 / 2).min(MAX_PLAIN_PAUSE);
                out::try_complain(&lines(now - self.start, Look::FILE)[0])
            }
            Mode::Live(terminal) => match Look::of_stderr() {
                Some(look) => terminal.draw(&lines(now - self.start, look), look.columns),
                None => Ok(()),
            },
        };
        self.next = now + self.pause;
        if shown.is_err() {
            // Standard error no longer has a reader; the decision continues without progress reports.
            self.mode = Mode::Quiet;
        }
    }

    /// Removes the picture, so that the answer can follow.
    pub(super) fn clear(&mut self) {
        if let Mode::Live(terminal) = &mut self.mode {
            let columns = Look::of_stderr().map_or(80, |look| look.columns);
            let _ = terminal.clear(columns);
        }
    }
}

/// Returns the lines of a question about an objective: the figures, and the interval as a picture.
pub(super) fn lines(
    stated: &Stated,
    subject: &Subject,
    range: Option<(f64, f64)>,
    view: &View,
    clock: Duration,
    look: Look,
) -> Vec<String> {
    let mut figures = Line::new(look.columns, look);
    figures.part(Some(Paint::Strong), &stated.words());
    figures.part(None, &text::counted(view.trials, subject.noun));
    if let Some(estimate) = view.estimate {
        figures.part(None, &stated.show(estimate));
    }
    figures.part(None, &format!("in {}", stated.show_interval(view.interval)));
    let share = view.level.map(|(level, log_eps)| (level / log_eps).clamp(0.0, 1.0));
    if let Some(share) = share {
        figures.part(None, &format!("evidence {}", text::percent(share)));
    }
    figures.part(Some(Paint::Faint), &text::clock(clock.as_nanos() as u64));
    let columns = look.columns.min(72);
    vec![figures.done(), ruler(&stated.thresholds(), range, view, columns, look)]
}

/// Draws the interval on a scale with the thresholds in its middle. Rates have a logarithmic scale of odds, on which
/// 0.99 and 0.999 are about as far apart as 0.9 and 0.99.
fn ruler(thresholds: &[f64], range: Option<(f64, f64)>, view: &View, columns: usize, look: Look) -> String {
    /// The scale reaches from a 400th of the thresholds' odds to 400 times these odds. This is the logarithm of that
    /// factor.
    const SIDE: f64 = 6.0;
    let logit = |p: f64| (p / (1.0 - p)).ln();
    let middle = thresholds.iter().copied().map(logit).sum::<f64>() / thresholds.len() as f64;
    let share = |value: f64| match range {
        Some((low, high)) => (value - low) / (high - low),
        None => (logit(value.clamp(0.0, 1.0)) - middle) / (2.0 * SIDE) + 0.5,
    };
    let column = |value: f64| (share(value).clamp(0.0, 1.0) * (columns - 1) as f64).round() as usize;
    let (from, to) = (column(view.interval.low), column(view.interval.high));
    let marks: Vec<usize> = thresholds.iter().map(|threshold| column(*threshold)).collect();
    let estimate = view.estimate.map(column);
    let [inside, outside, mark, dot] = if look.unicode { ['━', '·', '│', '●'] } else { ['=', '.', '|', 'o'] };
    (0..columns)
        .map(|place| match place {
            _ if estimate == Some(place) => dot,
            _ if marks.contains(&place) => mark,
            _ if (from..=to).contains(&place) => inside,
            _ => outside,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use millstream_csm::Interval;

    use super::super::report::sample;
    use super::*;

    #[test]
    fn the_interval_narrows_around_the_threshold() {
        let answer = sample::answer(sample::HOLDS);
        let shown = |low: f64, high: f64| {
            let mut view = answer.view.clone();
            view.interval = Interval { low, high };
            lines(&answer.stated, &answer.subject, None, &view, Duration::from_secs(7), Look::FILE)
        };
        let wide = shown(0.0, 1.0);
        let narrow = shown(0.985, 0.997);
        let filled = |lines: &[String]| lines[1].matches('━').count();
        assert!(filled(&wide) > 3 * filled(&narrow) && filled(&narrow) > 0, "{wide:#?} {narrow:#?}");
        assert_eq!(wide[1].chars().count(), 72);
        assert_eq!(wide[1].matches('│').count(), 1);
        assert!(wide[0].contains("4,000 runs") && wide[0].contains("0:07"), "{wide:?}");
    }

    #[test]
    fn a_plain_terminal_gets_plain_characters() {
        let answer = sample::answer(sample::HOLDS);
        let look = Look { unicode: false, columns: 40, ..Look::FILE };
        let lines = lines(&answer.stated, &answer.subject, Some((0.0, 2.0)), &answer.view, Duration::ZERO, look);
        assert!(lines.iter().all(|line| line.is_ascii() && line.len() <= 40), "{lines:?}");
    }
}
