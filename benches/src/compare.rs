//! Alternating rounds, and the conclusions that they support.
//!
//! Ratios are computed for each round, between adjacent runs, so a slow drift of the machine cancels. The smallest and
//! the largest of `n` such ratios enclose the true median ratio with a probability of at least 1 − 2^(1−n), whatever
//! the distribution. The reason is that each ratio is above or below the median with a probability of one half, and the
//! median is outside only if all ratios are on the same side.

use crate::error::Error;
use crate::table;

/// The role of a competitor in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Millstream.
    Ours,
    /// A competitor that does the same work. Ours is compared with the fastest peer.
    Peer,
    /// A competitor shown for scale, which does only a part of the work (no queues, or coarser items).
    Reference,
}

/// A competitor.
pub struct Competitor<'a> {
    /// The name in the report.
    pub name: String,
    /// Its role in the comparison.
    pub role: Role,
    /// Does the work once and returns its figure, a time.
    pub run: Box<dyn FnMut() -> Result<f64, Error> + 'a>,
}

impl<'a> Competitor<'a> {
    /// A competitor whose `run` does the work once and returns the time it took.
    pub fn new(name: impl Into<String>, role: Role, run: impl FnMut() -> Result<f64, Error> + 'a) -> Self {
        Self { name: name.into(), role, run: Box::new(run) }
    }
}

/// The figures of one competitor, one per round.
#[derive(Debug, Clone)]
pub struct Figures {
    /// The competitor's name.
    pub name: String,
    /// Its role in the comparison.
    pub role: Role,
    /// One figure per round, in the order of the rounds.
    pub rounds: Vec<f64>,
}

/// All figures of a workload.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The unit of a figure, e.g. `s` or `ns per unit`.
    pub unit: &'static str,
    /// One entry per competitor; all have the same number of rounds.
    pub figures: Vec<Figures>,
}

/// Runs each competitor in turn, for `rounds` rounds after `warmups` uncounted rounds.
///
/// # Errors
/// Returns the first error of a competitor, with its name.
pub fn alternate(
    unit: &'static str,
    warmups: u32,
    rounds: u32,
    mut competitors: Vec<Competitor<'_>>,
) -> Result<Comparison, Error> {
    let mut figures: Vec<Figures> =
        competitors.iter().map(|c| Figures { name: c.name.clone(), role: c.role, rounds: Vec::new() }).collect();
    for round in 0..warmups + rounds {
        for (competitor, figures) in competitors.iter_mut().zip(&mut figures) {
            let figure = (competitor.run)().map_err(|e| Error::new(format!("{}: {e}", competitor.name)))?;
            if round >= warmups {
                figures.rounds.push(figure);
            }
        }
    }
    Ok(Comparison { unit, figures })
}

impl Comparison {
    /// The peer with the smallest median.
    #[must_use]
    pub fn best_peer(&self) -> Option<&Figures> {
        let peers = self.figures.iter().filter(|f| f.role == Role::Peer);
        peers.min_by(|a, b| median(&a.rounds).total_cmp(&median(&b.rounds)))
    }

    /// The table and the verdict, ready to print.
    #[must_use]
    pub fn render(&self) -> String {
        let best = self.best_peer();
        let ratio_header = best.map_or("ratio".to_owned(), |best| format!("ratio to {}", best.name));
        let header = [String::new(), format!("median, {}", self.unit), "min".into(), "max".into(), ratio_header];
        let rows = self.figures.iter().map(|figures| {
            let (low, high) = range(&figures.rounds);
            let ratio = best.map_or(f64::NAN, |best| median(&ratios(figures, best)));
            let name = match figures.role {
                Role::Reference => format!("({})", figures.name),
                Role::Ours | Role::Peer => figures.name.clone(),
            };
            let [median, low, high] = [median(&figures.rounds), low, high].map(significant);
            [name, median, low, high, format!("{ratio:.2}")]
        });
        let mut text = table::render(header, rows);
        text.push('\n');
        for ours in self.figures.iter().filter(|f| f.role == Role::Ours) {
            if let Some(best) = best {
                text.push_str(&verdict(ours, best));
            }
        }
        if self.figures.iter().any(|f| f.role == Role::Reference) {
            text.push_str("\nIn brackets: shown for scale, not the same work.");
        }
        text
    }
}

fn verdict(ours: &Figures, best: &Figures) -> String {
    let ratios = ratios(ours, best);
    let (low, high) = range(&ratios);
    let rounds = ratios.len();
    let mut text = format!("\n{} / {}: {:.3}", ours.name, best.name, median(&ratios));
    if rounds > 1 {
        let confidence = 100.0 * (1.0 - 0.5f64.powi(rounds as i32 - 1));
        text.push_str(&format!(
            ", {low:.3} to {high:.3} over {rounds} rounds (holds the true median with {confidence:.1} % confidence)"
        ));
    }
    text
}

/// The figures of `a` divided by those of `b`, for each round.
fn ratios(a: &Figures, b: &Figures) -> Vec<f64> {
    a.rounds.iter().zip(&b.rounds).map(|(a, b)| a / b).collect()
}

/// The median. For an even number of figures, it is the mean of the middle two.
///
/// # Panics
/// Panics on an empty slice.
#[must_use]
pub fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.len() / 2;
    let lower = (sorted.len() - 1) / 2;
    f64::midpoint(sorted[lower], sorted[upper])
}

fn range(figures: &[f64]) -> (f64, f64) {
    let low = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let high = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (low, high)
}

/// Formats three significant digits, or all digits before the decimal point.
fn significant(x: f64) -> String {
    let decimals = if x >= 100.0 {
        0
    } else if x >= 10.0 {
        1
    } else if x >= 1.0 {
        2
    } else {
        3
    };
    format!("{x:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn figures(name: &str, role: Role, rounds: &[f64]) -> Figures {
        Figures { name: name.to_owned(), role, rounds: rounds.to_vec() }
    }

    #[test]
    fn competitors_take_turns_and_warm_ups_are_not_counted() {
        let order = RefCell::new(String::new());
        let competitor = |name: &'static str| {
            let order = &order;
            Competitor::new(name, Role::Peer, move || {
                order.borrow_mut().push_str(name);
                Ok(order.borrow().len() as f64)
            })
        };
        let comparison = alternate("s", 1, 2, vec![competitor("A"), competitor("B")]).unwrap();
        assert_eq!(*order.borrow(), "ABABAB");
        assert_eq!(comparison.figures[0].rounds, [3.0, 5.0]);
        assert_eq!(comparison.figures[1].rounds, [4.0, 6.0]);
    }

    #[test]
    fn an_error_names_the_competitor() {
        let failing = Competitor::new("rayon", Role::Peer, || Err(Error::new("3 files missing")));
        let error = alternate("s", 0, 1, vec![failing]).unwrap_err().to_string();
        assert_eq!(error, "rayon: 3 files missing");
    }

    #[test]
    fn a_reference_is_never_the_best_peer() {
        let comparison = Comparison {
            unit: "ns",
            figures: vec![
                figures("ours", Role::Ours, &[4.0, 5.0, 6.0]),
                figures("slow", Role::Peer, &[10.0, 10.0, 10.0]),
                figures("fast", Role::Peer, &[8.0, 8.0, 8.0]),
                figures("less work", Role::Reference, &[1.0, 1.0, 1.0]),
            ],
        };
        assert_eq!(comparison.best_peer().unwrap().name, "fast");
        let text = comparison.render();
        assert!(text.contains("ours / fast: 0.625, 0.500 to 0.750 over 3 rounds"), "{text}");
        assert!(text.contains("75.0 % confidence"), "{text}");
        assert!(text.contains("(less work)"), "{text}");
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine's speed halves after the first round, and the ratio does not change.
        let ours = figures("ours", Role::Ours, &[1.0, 2.0, 2.0]);
        let peer = figures("peer", Role::Peer, &[2.0, 4.0, 4.0]);
        assert_eq!(ratios(&ours, &peer), [0.5, 0.5, 0.5]);
    }

    #[test]
    fn the_median_of_an_even_count_is_midway_between_the_middle_two() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(&[9.0, 1.0, 3.0]), 3.0);
    }
}
