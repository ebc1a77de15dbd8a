//! Means of bounded values: the verdict comes at the right trial, and is wrong as rarely as promised.

use millstream_csm::means::{MeanDriver, MeanSetup, Moments};
use millstream_csm::random::Random;
use millstream_csm::{Claim, Error, Progress, Verdict, report_due};
use millstream_verify_random::cases;
use proptest::prelude::*;

/// Distributions on [0, 1] with a mean of 1/2, and one with a mean of 1/11.
fn draw(kind: usize, random: &mut Random) -> f64 {
    match kind {
        0 => f64::from(u8::from(random.uniform() < 0.5)),
        1 => random.uniform(),
        2 => 0.45 + 0.1 * random.uniform(),
        _ => random.uniform().powi(10),
    }
}

const MEANS: [f64; 4] = [0.5, 0.5, 0.5, 1.0 / 11.0];

proptest! {
    #![proptest_config(cases(20))]

    #[test]
    fn a_driver_decides_after_the_same_value_as_its_sums(
        kind in 0usize..4,
        claim in prop_oneof![
            (-4.0..16.0f64).prop_map(Claim::AtLeast),
            (-4.0..16.0f64).prop_map(Claim::AtMost),
            (-4.0..8.0f64).prop_map(|low| Claim::Within { low, high: low + 7.0 }),
            (-4.0..12.0f64).prop_map(|low| Claim::Between { low, high: low + 2.0 }),
        ],
        seed: u64,
    ) {
        let setup = MeanSetup::new(claim, 0.02, -5.0, 17.0);
        let mut random = Random::seeded(seed);
        let mut driver = MeanDriver::new(&setup).unwrap();
        for _ in 0..400 {
            let verdict = driver.observe(-5.0 + 22.0 * draw(kind, &mut random)).unwrap();
            let looked = MeanDriver::resume(&setup, driver.state()).unwrap().progress();
            // The driver remembers a half of the claim that was proven earlier; a driver resumed from the sums does
            // not.
            let latched = matches!(claim, Claim::Within { .. }) && verdict == Some(Verdict::Holds);
            prop_assert!(latched || looked == driver.progress(), "{:?} {:?}", looked, driver.status());
            if verdict.is_some() {
                break;
            }
        }
    }

    #[test]
    fn the_unit_does_not_matter(seed: u64, low in -1e6..1e6f64, width in 1e-3..1e6f64) {
        let setup = MeanSetup::new(Claim::AtLeast(0.4), 0.01, 0.0, 1.0);
        let scaled = MeanSetup::new(Claim::AtLeast(low + 0.4 * width), 0.01, low, low + width);
        let (mut one, mut other) = (MeanDriver::new(&setup).unwrap(), MeanDriver::new(&scaled).unwrap());
        let mut random = Random::seeded(seed);
        for _ in 0..300 {
            let value = random.uniform();
            one.observe(value).unwrap();
            other.observe((low + value * width).min(low + width)).unwrap();
        }
        prop_assert!(one.status().trials.abs_diff(other.status().trials) <= 1);
        prop_assert_eq!(one.status().progress, other.status().progress);
    }
}

#[test]
fn the_verdict_and_the_interval_are_wrong_no_more_often_than_promised() {
    let (error, runs) = (0.6, 300);
    for (kind, mean) in MEANS.into_iter().enumerate() {
        let seed = 77 + kind as u64;
        let mut random = Random::seeded(seed);
        let (mut decided, mut missed) = (0u32, 0u32);
        for _ in 0..runs {
            let mut driver = MeanDriver::new(&MeanSetup::new(Claim::AtLeast(mean), error, 0.0, 1.0)).unwrap();
            let mut miss = false;
            for n in 1..=500 {
                driver.observe(draw(kind, &mut random)).unwrap();
                miss |= report_due(n) && !driver.status().interval.contains(mean);
            }
            decided += u32::from(driver.status().progress != Progress::Running);
            missed += u32::from(miss);
        }
        // The promised probability (two thirds or one third of the error) plus six standard deviations of the count.
        let most = |p: f64| f64::from(runs) * p + 6.0 * (f64::from(runs) * p * (1.0 - p)).sqrt();
        assert!(f64::from(decided) <= most(error * 2.0 / 3.0), "seed {seed}: {decided} decided");
        assert!(f64::from(missed) <= most(error / 3.0), "seed {seed}: {missed} missed");
    }
}

#[test]
fn values_that_hardly_differ_need_few_observations() {
    let trials = |kind, claim| {
        let mut driver = MeanDriver::new(&MeanSetup::new(claim, 1e-3, 0.0, 1.0)).unwrap();
        let mut random = Random::seeded(5);
        while driver.observe(draw(kind, &mut random)).unwrap().is_none() {}
        assert_eq!(driver.status().progress, Progress::Decided(Verdict::Holds));
        driver.status().trials
    };
    let (coins, narrow) = (trials(0, Claim::AtLeast(0.4)), trials(2, Claim::AtLeast(0.4)));
    assert!(narrow < 200 && 4 * narrow < coins, "{narrow} and {coins}");
    assert!(trials(3, Claim::AtMost(0.2)) < 600);
}

#[test]
fn the_interval_is_narrow_and_contains_the_mean() {
    let mut driver = MeanDriver::new(&MeanSetup::new(Claim::AtLeast(50.0), 0.05, 0.0, 100.0)).unwrap();
    let mut random = Random::seeded(9);
    for _ in 0..100_000 {
        driver.observe(100.0 * draw(2, &mut random)).unwrap();
    }
    // With a standard deviation of 2.9 and 1e5 values, that of the mean is 0.009.
    let status = driver.status();
    assert!(status.interval.contains(50.0) && status.interval.high - status.interval.low < 0.12, "{status:?}");
}

#[test]
fn senseless_questions_and_values_are_refused() {
    let new = |claim, low, high| MeanDriver::new(&MeanSetup::new(claim, 0.01, low, high)).map(drop).unwrap_err();
    let at_least = Claim::AtLeast(0.5);
    assert!(matches!(new(at_least, f64::NAN, 1.0), Error::NotFinite { .. }));
    assert!(matches!(new(at_least, 0.0, f64::INFINITY), Error::NotFinite { .. }));
    assert!(matches!(new(at_least, 1.0, 0.0), Error::NotInOrder { .. }));
    assert!(matches!(new(at_least, -1e308, 1e308), Error::OutOfRange { .. }));
    assert!(matches!(new(Claim::AtLeast(2.0), 0.0, 1.0), Error::NotInOrder { .. }));
    assert!(matches!(new(Claim::AtMost(0.0), 0.0, 1.0), Error::NotInOrder { .. }));
    assert!(matches!(new(Claim::Between { low: 0.6, high: 0.5 }, 0.0, 1.0), Error::NotInOrder { .. }));

    let setup = MeanSetup::new(at_least, 0.01, 0.0, 1.0);
    let mut driver = MeanDriver::new(&setup).unwrap();
    assert!(matches!(driver.observe(f64::NAN), Err(Error::NotFinite { .. })));
    assert!(matches!(driver.observe(1.5), Err(Error::OutOfRange { .. })));
    assert_eq!(driver.status().trials, 0);
    let interval = driver.status().interval;
    assert_eq!((interval.low, interval.high), (0.0, 1.0));
    let forged = Moments { trials: 10, sum: 11.0, sum_rest: 0.0, squares: 1.0 };
    assert!(matches!(MeanDriver::resume(&setup, forged), Err(Error::OutOfRange { .. })));
}
