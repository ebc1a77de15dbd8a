//! `millstream slo plan`: the expected number of observations of a decision, before any is made.

use std::process::ExitCode;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use millstream_command::screen::text;
use millstream_csm::Power;

use super::args::SloPlanArgs;
use super::claim::Stated;
use super::error::{EvidenceError, HOLDS};
use super::functions::power_object;
use super::json::Object;
use super::{ended, number, print};

/// The rates that are assumed if the command line gives none. Each number is a multiple of the failure rate at a
/// threshold, or of the success rate if the threshold is below 1/2.
const TIMES: [f64; 8] = [0.01, 0.1, 0.3, 0.6, 1.0, 1.5, 3.0, 10.0];

/// Shows the expected number of observations of a decision for several true rates.
pub(crate) fn plan(args: &SloPlanArgs) -> ExitCode {
    ended(try_plan(args).and_then(|text| print(&text)).map(|()| HOLDS))
}

fn try_plan(args: &SloPlanArgs) -> Result<String, EvidenceError> {
    let stated = Stated::new(&args.claim)?;
    let setup = stated.rate()?;
    let rates = if args.rate.is_empty() { supposed(&stated.thresholds()) } else { args.rate.clone() };
    let mut rows = Vec::new();
    for rate in rates {
        rows.push((rate, setup.power(rate, args.limit).map_err(EvidenceError::Question)?));
    }
    if args.json {
        let rows: Vec<_> =
            rows.iter().map(|(rate, found)| power_object(Object::new().number("rate", *rate), found)).collect();
        let object = Object::new()
            .text("claim", stated.words().as_str())
            .number("error", stated.error)
            .text("method", setup.method.to_string().as_str())
            .count("limit", args.limit)
            .list("rates", &rows);
        return Ok(format!("{}\n", object.done()));
    }
    let mut out = format!(
        "claim   the rate of success is {}\nwrong   with a probability of at most {}\nmethod  {}\nlimit   {}\n\n",
        stated.words(),
        number::short(stated.error),
        setup.method,
        text::counted(args.limit, "observation"),
    );
    out += &table(&rows);
    out +=
        "\nIn the mean, a test that ends at the limit counts as the limit. Probabilities are exact, not simulated.\n";
    Ok(out)
}

/// Returns the rates to assume: on either side of the thresholds, at the thresholds, and between two thresholds.
fn supposed(thresholds: &[f64]) -> Vec<f64> {
    let (low, high) = (thresholds[0], thresholds[thresholds.len() - 1]);
    let mut rates: Vec<f64> = thresholds.to_vec();
    if low < high {
        rates.push(low.midpoint(high));
    }
    for times in TIMES {
        let rate = |threshold: f64| if threshold < 0.5 { threshold * times } else { 1.0 - (1.0 - threshold) * times };
        // The rates between two thresholds are in the list already.
        rates.extend([rate(low), rate(high)].into_iter().filter(|rate| (*rate < low || *rate > high) && *rate > 0.0));
    }
    let round = |rate: f64| format!("{rate:.12e}").parse().unwrap_or(rate);
    for rate in rates.iter_mut().filter(|rate| !thresholds.contains(rate)) {
        *rate = round(*rate);
    }
    rates.retain(|rate| *rate > 0.0 && *rate < 1.0);
    rates.sort_by(|a, b| b.total_cmp(a));
    // Nearly equal rates would give the same row twice.
    rates.dedup_by(|a, b| (*a - *b).abs() <= 1e-9 * b.min(1.0 - *b) && !thresholds.contains(a));
    rates
}

fn table(rows: &[(f64, Power)]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(["if the rate is", "it holds", "it fails", "undecided", "mean", "median", "90 % within"]);
    let count = |count: Option<u64>| count.map_or_else(|| "–".to_owned(), text::count);
    for (rate, power) in rows {
        table.add_row([
            number::short(*rate),
            probability(power.holds),
            probability(power.fails),
            probability(power.undecided),
            text::count(power.mean_trials.round() as u64),
            count(power.median_trials),
            count(power.p90_trials),
        ]);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Formats a probability with four digits. Only an exact 0 or 1 is shown as 0 or 1.
fn probability(p: f64) -> String {
    match p {
        p if p <= 0.0 => "0".to_owned(),
        p if p < 1e-12 => "<1e-12".to_owned(),
        p if p < 1e-3 => format!("{p:.1e}"),
        p if p >= 1.0 => "1".to_owned(),
        p if p > 0.9999 => ">0.9999".to_owned(),
        p => format!("{p:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_lie_on_both_sides_of_the_thresholds() {
        for thresholds in [&[0.99][..], &[0.96, 0.98], &[1e-9]] {
            let rates = supposed(thresholds);
            assert!(rates.iter().all(|rate| *rate > 0.0 && *rate < 1.0), "{rates:?}");
            assert!(rates.windows(2).all(|pair| pair[0] > pair[1]), "{rates:?}");
            assert!(thresholds.iter().all(|threshold| rates.contains(threshold)), "{rates:?}");
        }
    }

    #[test]
    fn what_is_not_certain_does_not_look_so() {
        for (p, text) in
            [(1.0, "1"), (0.99999, ">0.9999"), (0.5, "0.5000"), (1e-6, "1.0e-6"), (1e-30, "<1e-12"), (0.0, "0")]
        {
            assert_eq!(probability(p), text);
        }
    }
}
