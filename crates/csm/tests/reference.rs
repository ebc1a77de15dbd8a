//! Comparison with a table of values of more than 50 digits: every bound is on the safe side and close.
//!
//! The first line of `reference.csv` names its columns. Floats are hexadecimal, and values are decimal.

mod exact {
    pub(crate) mod rational;
    pub(crate) mod size;
}

use exact::rational::{of, power};
use exact::size::at_least_one;
use millstream_csm::{Side, beta_bound, log_choose, robbins};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero;

const TABLE: &str = include_str!("reference.csv");

struct Row {
    fields: Vec<&'static str>,
}

impl Row {
    fn all(function: &'static str) -> impl Iterator<Item = Row> {
        TABLE
            .lines()
            .skip(1)
            .map(|line| Row { fields: line.split(',').collect() })
            .filter(move |row| row.fields[0] == function)
    }

    fn count(&self, column: usize) -> u64 {
        self.fields[column].parse().expect("a count")
    }

    fn name(&self) -> String {
        self.fields[..7].join(",")
    }
}

/// Parses a float in C's hexadecimal notation: `-0x1.8p+3`.
fn hex(text: &str) -> f64 {
    let (sign, text) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
    let (digits, exponent) = text.strip_prefix("0x").and_then(|text| text.split_once('p')).expect("a hex float");
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let significand = u64::from_str_radix(&format!("{whole}{fraction}"), 16).expect("hex digits");
    let exponent: i32 =
        exponent.parse::<i32>().expect("an exponent") - 4 * i32::try_from(fraction.len()).expect("few digits");
    // In two steps, because 2^exponent may be below the range of floats even if the product is not.
    let half = exponent / 2;
    sign * (significand as f64 * 2f64.powi(half) * 2f64.powi(exponent - half))
}

/// Parses a decimal such as `-1.5e-3` exactly.
fn decimal(text: &str) -> BigRational {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let number: BigInt = format!("{whole}{fraction}").parse().expect("a decimal");
    let exponent: i32 = exponent.parse().expect("an exponent");
    BigRational::from_integer(number) * power(10, exponent - i32::try_from(fraction.len()).expect("few digits"))
}

/// Asserts `value <= bound <= value + slack`.
#[track_caller]
fn check_above(name: &str, bound: f64, value: &BigRational, slack: &BigRational) {
    let excess = of(bound) - value;
    assert!(excess >= BigRational::zero(), "{name}: {bound:e} is below the truth");
    assert!(excess <= *slack, "{name}: {bound:e} is above the truth by more than allowed");
}

#[test]
fn levels_are_above_the_truth_by_no_more_than_promised() {
    let mut rows = 0;
    for row in Row::all("csm") {
        let (n, s, alpha, log_eps) = (row.count(1), row.count(2), hex(row.fields[3]), hex(row.fields[5]));
        let truth = decimal(row.fields[7]);
        let found = robbins::stop(n, alpha, s, log_eps).expect("a valid question");
        let slack = if n <= 1_000_000 { power(10, -12) } else { power(10, -9) * at_least_one(&truth).recip() };
        // The level is rounded to a float, so it may be off by a unit of its size.
        let unit = BigRational::from_float(found.level.abs() * f64::EPSILON).expect("a finite level");
        check_above(&row.name(), found.level, &truth, &((slack * at_least_one(&truth)).max(unit)));
        assert_eq!(found.stop.is_some(), row.fields[9] == "1", "{}", row.name());
        rows += 1;
    }
    assert!(rows > 30, "only {rows} rows read");
}

#[test]
fn binomial_coefficients_lie_between_near_bounds() {
    let mut rows = 0;
    for row in Row::all("log_choose") {
        let truth = decimal(row.fields[7]);
        let bounds = log_choose(row.count(1), row.count(2)).expect("a valid question");
        let slack = power(2, -50) * at_least_one(&truth);
        check_above(&row.name(), bounds.high, &truth, &slack);
        check_above(&row.name(), -bounds.low, &-truth, &slack);
        rows += 1;
    }
    assert!(rows > 10, "only {rows} rows read");
}

#[test]
fn beta_bounds_are_on_the_safe_side_and_near() {
    let mut rows = 0;
    for row in Row::all("beta_icdf") {
        let (a, b, eps) = (row.count(1) as f64, row.count(2) as f64, hex(row.fields[3]));
        let side = if row.fields[6] == "lo" { Side::Low } else { Side::High };
        let found = beta_bound(a, b, eps, side).expect("a valid question");
        let (truth, complement) = (decimal(row.fields[7]), decimal(row.fields[8]));
        let slack = power(10, -12);
        match side {
            Side::Low => {
                check_above(&row.name(), -found.bound, &-truth.clone(), &(truth * &slack));
                check_above(&row.name(), found.complement, &complement, &(&complement * &slack));
            }
            Side::High => {
                check_above(&row.name(), found.bound, &truth, &(&truth * &slack));
                check_above(&row.name(), -found.complement, &-complement.clone(), &(complement * &slack));
            }
        }
        rows += 1;
    }
    assert!(rows > 25, "only {rows} rows read");
}
