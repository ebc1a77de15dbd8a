//! Increments that wake a sleeper.

use millstream_sync::eventcount::parameters::{InPlace, Many, TwoWord};

use super::clock;
use super::sleeper::{BareFutex, Counted, Wakes, wakes};
use crate::args::Args;
use crate::compare::{Comparison, Figures, Role};
use crate::error::Error;

const WAKES: u64 = 2000;
const QUICK_WAKES: u64 = 50;

/// Wakes a sleeper `times` times.
type Work = fn(times: u64) -> Wakes;

/// Selects the times that a table shows.
type TimesOf = fn(&Wakes) -> &[u64];

const BEDS: [(&str, Role, Work); 5] = [
    ("EventCount, 32 bits", Role::Ours, wakes::<Counted<Many<u32>>>),
    ("EventCount, 64 bits", Role::Ours, wakes::<Counted<Many<u64>>>),
    ("SpEventCount, 64 bits", Role::Ours, wakes::<Counted<TwoWord<u64>>>),
    ("InPlaceEventCount64", Role::Ours, wakes::<Counted<InPlace<u64>>>),
    ("bare futex", Role::Peer, wakes::<BareFutex>),
];

/// Prints the tables: the waker's time, and the sleeper's.
///
/// # Errors
/// Never fails.
pub fn run(args: &Args) -> Result<(), Error> {
    let times = if args.quick { QUICK_WAKES } else { WAKES };
    let rounds: Vec<[Wakes; BEDS.len()]> = (0..args.rounds).map(|_| BEDS.map(|(_, _, wakes)| wakes(times))).collect();
    let tables: [(&str, TimesOf, f64); 3] = [
        ("Duration of an increment with a sleeper, median", |wakes| &wakes.calls, 0.5),
        ("From the increment to the sleeper running, median", |wakes| &wakes.latencies, 0.5),
        ("From the increment to the sleeper running, 99th percentile", |wakes| &wakes.latencies, 0.99),
    ];
    for (title, times_of, quantile) in tables {
        println!("### {title} of {times}\n");
        let figures = BEDS.iter().enumerate().map(|(bed, &(name, role, _))| Figures {
            name: name.to_owned(),
            role,
            rounds: rounds.iter().map(|round| at_quantile(times_of(&round[bed]), quantile)).collect(),
        });
        println!("{}\n", Comparison { unit: clock::UNIT, figures: figures.collect() }.render());
    }
    Ok(())
}

/// The time at a quantile: the shortest time that is at least as long as this share of the times.
fn at_quantile(times: &[u64], quantile: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1] as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_occurred() {
        let times: Vec<u64> = (1..=200).rev().collect();
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|quantile| at_quantile(&times, quantile)), [1.0, 100.0, 198.0, 200.0]);
    }
}
