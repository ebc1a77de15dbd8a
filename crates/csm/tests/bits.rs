//! The same bits on every machine: the digest of many results must not depend on the instruction set, a library or the
//! compiler.
//!
use millstream_csm::means::{MeanDriver, MeanSetup};
use millstream_csm::{Claim, Method, Setup, Side, Test, beta_bound, interval, log_choose, quantile, robbins};

/// A fixed sequence of numbers of all sizes.
struct Inputs(u64);

impl Inputs {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn count(&mut self) -> u64 {
        let bits = self.next() % 50;
        self.next() & ((1 << bits) - 1)
    }

    /// A rate: of an ordinary size in half of all cases, and of any size in the others.
    fn rate(&mut self) -> f64 {
        let random = self.next();
        if random.is_multiple_of(2) {
            (self.next() >> 11) as f64 / (1u64 << 53) as f64
        } else {
            f64::from_bits(self.next() % 0x3ff0_0000_0000_0000)
        }
    }
}

/// An FNV-1a hash of the bits of results.
struct Digest(u64);

impl Digest {
    fn add(&mut self, x: f64) {
        for byte in x.to_bits().to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[test]
fn results_are_the_same_bits_everywhere() {
    let mut inputs = Inputs(2018);
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    for _ in 0..5000 {
        let (s, f, rate, eps) = (inputs.count(), inputs.count(), inputs.rate(), inputs.rate());
        digest.add(robbins::stop(s + f, rate, s, -1.0).expect("a valid question").level);
        let choose = log_choose(s + f, s).expect("a valid question");
        digest.add(choose.low);
        digest.add(choose.high);
        // These shapes include fractions.
        let (a, b) = (s as f64 / 16.0 + 0.5, f as f64 / 16.0 + 0.5);
        let low = beta_bound(a, b, eps, Side::Low).expect("a valid question");
        digest.add(low.bound);
        digest.add(low.complement);
    }
    assert_eq!(digest.0, 0x3aab_0f11_43e8_7934, "{:#x}", digest.0);
}

#[test]
fn derived_results_are_the_same_bits_everywhere() {
    let mut inputs = Inputs(2026);
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    for threshold in [0.5, 0.98, 1e-3] {
        for method in Method::ALL {
            let test = match method {
                Method::Sprt | Method::Blend => Test::between(threshold, threshold * 1.01, -6.9, method).unwrap(),
                _ => Test::new(threshold, -6.9, method).unwrap(),
            };
            for _ in 0..200 {
                let n = inputs.count() % (1 << 40) + 1;
                let off = (inputs.next() % 4096) as f64 / 512.0 - 4.0;
                let s = (n as f64 * threshold + off * (n as f64 * threshold).sqrt()).clamp(0.0, n as f64) as u64;
                digest.add(test.stop(n, s).expect("a valid question").level);
            }
        }
    }
    for _ in 0..300 {
        let (s, f, error) = (inputs.count(), inputs.count(), (inputs.next() % 1000 + 1) as f64 / 1001.0);
        for kind in [interval::watched, interval::fixed, interval::credible] {
            let interval = kind(s + f, s, error).expect("a valid question");
            digest.add(interval.low);
            digest.add(interval.high);
        }
        let ranks = quantile::ranks(s, error, 0.01).expect("a valid question");
        digest.add(ranks.low as f64);
        digest.add(ranks.high as f64);
    }
    let mut means = MeanDriver::new(&MeanSetup::new(Claim::AtLeast(0.4), 1e-6, 0.0, 3.0)).expect("a valid question");
    for _ in 0..300 {
        means.observe(3.0 * (inputs.next() >> 11) as f64 / (1u64 << 53) as f64).expect("a value within the bounds");
        let interval = means.status().interval;
        digest.add(interval.low);
        digest.add(interval.high);
    }
    let plan = Setup::new(Claim::AtLeast(0.9), 1e-3).power(0.95, 2000).expect("a valid question");
    digest.add(plan.holds);
    digest.add(plan.mean_trials);
    assert_eq!(digest.0, 0x1230_5a2f_7c7e_df5f, "{:#x}", digest.0);
}
