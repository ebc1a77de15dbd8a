//! Comparisons: the verdict agrees with the interval.

use millstream_csm::compare::{Paired, Smaller, fixed_samples, samples};
use millstream_csm::random::Random;
use millstream_csm::{Error, quantile};

/// A pair whose ratio has the median `ratio`. Some pairs have exactly this ratio.
fn pair(ratio: f64, random: &mut Random) -> (f64, f64) {
    let first = 1.0 + random.uniform();
    if random.uniform() < 0.1 {
        return (first, first);
    }
    (first, first * ratio * (0.5 + random.uniform()).powi(2))
}

#[test]
fn pairs_are_decided_when_their_interval_excludes_one() {
    for (seed, ratio) in [(1, 0.7), (2, 1.5), (3, 1.0), (4, 2.0), (5, 0.5)] {
        let mut random = Random::seeded(seed);
        let (mut paired, mut swapped) = (Paired::new(0.01, 1.0).unwrap(), Paired::new(0.01, 1.0).unwrap());
        for _ in 0..600 {
            let (first, second) = pair(ratio, &mut random);
            let verdict = paired.observe(first, second).unwrap();
            let opposite = swapped.observe(second, first).unwrap();
            let interval = paired.status().unwrap().interval;
            let expected = if interval.low > 1.0 {
                Some(Smaller::First)
            } else if interval.high < 1.0 {
                Some(Smaller::Second)
            } else {
                None
            };
            assert_eq!(verdict, expected, "seed {seed}: {interval:?}");
            assert_eq!(opposite.is_some(), verdict.is_some());
            assert!(opposite.is_none() || opposite != verdict);
            if verdict.is_some() {
                break;
            }
        }
        assert_eq!(paired.status().unwrap().smaller.is_some(), ratio != 1.0, "seed {seed}");
    }
}

#[test]
fn ties_decide_nothing() {
    let mut paired = Paired::new(0.05, 1.0).unwrap();
    for _ in 0..500 {
        assert_eq!(paired.observe(3.0, 3.0), Ok(None));
    }
    let status = paired.status().unwrap();
    assert_eq!((status.pairs, status.ratio, status.smaller), (500, Some(1.0), None));
}

#[test]
fn samples_without_a_difference_are_called_different_no_more_often_than_promised() {
    let (error, runs, mut wrong) = (0.2, 500u32, 0u32);
    let mut random = Random::seeded(21);
    for _ in 0..runs {
        let mut sample = |size: usize| -> Vec<f64> { (0..size).map(|_| 1.0 + random.uniform()).collect() };
        let comparison = samples(&sample(60), &sample(90), error).unwrap();
        wrong += u32::from(!comparison.interval.contains(1.0));
    }
    assert!(f64::from(wrong) <= f64::from(runs) * error, "{wrong} of {runs}");
}

#[test]
fn an_interval_contains_the_ratio_that_rounding_has_moved() {
    // The quotients 1/3 and 2/3 are a little larger than their nearest floats.
    for (first, second) in [(3.0, 1.0), (3.0, 2.0)] {
        let mut paired = Paired::new(0.05, 1.0).unwrap();
        for _ in 0..200 {
            paired.observe(first, second).unwrap();
        }
        let unpaired = samples(&[first; 200], &[second; 200], 0.05).unwrap();
        for interval in [paired.status().unwrap().interval, unpaired.interval] {
            assert!(interval.low < second / first && second / first < interval.high, "{interval:?}");
        }
    }
}

#[test]
fn each_of_two_samples_has_half_of_the_error() {
    let sorted = |scale: f64| -> Vec<f64> { (1..=500).map(|i| scale * f64::from(i)).collect() };
    let (first, second) = (sorted(1.0), sorted(3.0));
    let half = |sample: &[f64]| quantile::interval(sample, 0.5, 0.025).unwrap();
    let (a, b) = (half(&first), half(&second));
    let found = samples(&first, &second, 0.05).unwrap().interval;
    assert_eq!((found.low, found.high), ((b.low / a.high).next_down(), (b.high / a.low).next_up()));
}

#[test]
fn values_without_a_ratio_are_refused() {
    let mut paired = Paired::new(0.05, 1.0).unwrap();
    assert!(matches!(paired.observe(0.0, 1.0), Err(Error::OutOfRange { .. })));
    assert!(matches!(paired.observe(1.0, f64::NAN), Err(Error::NotFinite { .. })));
    assert_eq!(paired.status().unwrap().pairs, 0);
    assert_eq!(paired.status().unwrap().ratio, None);
    assert!(matches!(samples(&[], &[1.0], 0.05), Err(Error::TooFew { .. })));
    assert!(matches!(samples(&[1.0], &[-1.0], 0.05), Err(Error::OutOfRange { .. })));
}

#[test]
fn few_values_bound_a_quantile_on_no_side_and_many_do_on_both() {
    let few = quantile::interval(&[1.0, 2.0, 3.0], 0.5, 0.05).unwrap();
    assert_eq!((few.low, few.high), (f64::NEG_INFINITY, f64::INFINITY));
    // It is improbable that all three values are above the 99 % quantile, and even that two of them are.
    let low_only = quantile::interval(&[1.0, 2.0, 3.0], 0.99, 0.05).unwrap();
    assert_eq!((low_only.low, low_only.high), (2.0, f64::INFINITY));
    let many: Vec<f64> = (1..=20_000).map(f64::from).collect();
    let interval = quantile::interval(&many, 0.99, 0.05).unwrap();
    assert!(interval.contains(19_800.0) && interval.high - interval.low < 250.0, "{interval:?}");
    assert!(matches!(quantile::interval(&[2.0, 1.0], 0.5, 0.05), Err(Error::NotSorted { index: 1, .. })));
    assert!(matches!(quantile::interval(&[f64::NAN], 0.5, 0.05), Err(Error::NotFinite { .. })));
    let none = quantile::interval(&[], 0.5, 0.05).unwrap();
    assert_eq!((none.low, none.high), (f64::NEG_INFINITY, f64::INFINITY));
}

/// Roughly lognormal values around a scale, with a spread of a third.
fn values(scale: f64, size: usize, random: &mut Random) -> Vec<f64> {
    let normal = |random: &mut Random| (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0;
    (0..size).map(|_| scale * (normal(random) / 3.0).exp()).collect()
}

#[test]
fn fixed_samples_detect_a_fifth_with_three_hundred_values() {
    let mut random = Random::seeded(5);
    let (mut fixed, mut watched) = (0, 0);
    for _ in 0..60 {
        let (first, second) = (values(1.0, 300, &mut random), values(1.2, 300, &mut random));
        let found = fixed_samples(&first, &second, 1e-6).unwrap();
        fixed += u32::from(found.smaller == Some(Smaller::First));
        watched += u32::from(samples(&first, &second, 1e-6).unwrap().smaller.is_some());
        assert!(found.interval.contains(1.2), "{found:?}");
    }
    assert!(fixed >= 48 && watched < 10, "{fixed} and {watched} of 60");
}

#[test]
fn equal_distributions_are_called_different_no_more_often_than_promised() {
    let (error, runs) = (0.2, 600);
    let mut random = Random::seeded(6);
    // Values rounded to multiples of 1/4 have ties; multiples of 1e-9 have none.
    for digits in [4.0, 1e9] {
        let mut wrong = 0u32;
        for _ in 0..runs {
            let mut sample = |size: usize| -> Vec<f64> {
                values(3.0, size, &mut random).iter().map(|x| (x * digits).ceil() / digits).collect()
            };
            wrong += u32::from(!fixed_samples(&sample(20), &sample(35), error).unwrap().interval.contains(1.0));
        }
        assert!(f64::from(wrong) <= f64::from(runs) * error * 1.1, "{wrong} of {runs}");
        assert!(digits < 10.0 || f64::from(wrong) > f64::from(runs) * error * 0.5, "{wrong} of {runs}");
    }
}

#[test]
fn small_samples_of_fixed_sizes_decide_nothing() {
    let found = fixed_samples(&[1.0, 2.0], &[30.0, 40.0], 1e-3).unwrap();
    assert_eq!((found.smaller, found.interval.low, found.interval.high), (None, 0.0, f64::INFINITY));
    assert!(matches!(fixed_samples(&[], &[1.0], 0.05), Err(Error::TooFew { .. })));
    assert!(matches!(fixed_samples(&[1.0], &[0.0], 0.05), Err(Error::OutOfRange { .. })));
}

#[test]
fn equals_are_soon_within_five_per_cent() {
    let mut random = Random::seeded(7);
    let mut paired = Paired::new(1e-6, 1.05).unwrap();
    let mut pairs = 0;
    let verdict = loop {
        pairs += 1;
        let mut time = || 10.0 + 0.2 * random.uniform();
        if let Some(verdict) = paired.observe(time(), time()).unwrap() {
            break verdict;
        }
    };
    assert_eq!(verdict, Smaller::Second);
    assert!(pairs < 100, "{pairs}");
    let status = paired.status().unwrap();
    assert!(status.interval.high <= 1.05 && status.smaller == Some(Smaller::Second), "{status:?}");
}
