//! The beta-binomial mixture of Howard, Ramdas, McAuliffe and Sekhon, as in the library confseq, in floats.

/// A beta-binomial mixture: likelihood ratios averaged over a Beta distribution with its mean at the threshold.
struct BetaBinomial {
    threshold: f64,
    weight: f64,
    error: f64,
}

/// The logarithm of the Gamma function: Stirling's series, after the recurrence has increased a small `x`.
fn ln_gamma(x: f64) -> f64 {
    let steps = (12.0 - x).ceil().max(0.0);
    let down: f64 = (0..steps as u32).map(|step| (x + f64::from(step)).ln()).sum();
    let x = x + steps;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) - down
}

fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

impl BetaBinomial {
    /// Whether the evidence against the threshold is enough.
    fn stops(&self, trials: u64, successes: u64) -> bool {
        let (s, f, p) = (successes as f64, (trials - successes) as f64, self.threshold);
        let (a, b) = (self.weight * p, self.weight * (1.0 - p));
        s * p.ln() + f * (1.0 - p).ln() - ln_beta(a + s, b + f) + ln_beta(a, b) < self.error.ln()
    }

    /// The mean number of trials at this rate, up to a limit: the sum, over all trials, of the probability that the
    /// test is still undecided before the trial.
    fn mean_trials(&self, rate: f64, limit: u64) -> f64 {
        // The probabilities of `first`, `first + 1`, ... successes without a decision.
        let (mut first, mut alive, mut mean) = (0, vec![1.0], 0.0);
        for trials in 1..=limit {
            mean += alive.iter().sum::<f64>();
            let failed = alive.iter().map(|mass| mass * (1.0 - rate)).chain([0.0]);
            let succeeded = [0.0].into_iter().chain(alive.iter().map(|mass| mass * rate));
            alive = failed.zip(succeeded).map(|(failed, succeeded)| failed + succeeded).collect();
            // The counts that stop, and those of negligible probability, are at the two ends.
            let is_over = |mass: f64, successes| mass < 1e-20 || self.stops(trials, successes);
            while alive.last().is_some_and(|&mass| is_over(mass, first + alive.len() as u64 - 1)) {
                alive.pop();
            }
            let over = alive.iter().zip(first..).take_while(|&(&mass, successes)| is_over(mass, successes)).count();
            alive.drain(..over);
            first += over as u64;
        }
        mean
    }
}

/// The mean number of trials of a tuned beta-binomial mixture. As its authors advise, it is tuned to the error and to
/// its own number of trials: the weight of its distribution is `trials / (l + ln(1 + l)) - 1`, where `l = -2
/// ln(error)`.
pub(crate) fn tuned_trials(threshold: f64, rate: f64, error: f64, limit: u64) -> f64 {
    let l = -2.0 * error.ln();
    let (mut weight, mut mean) = (50.0f64, 0.0);
    for _ in 0..5 {
        mean = BetaBinomial { threshold, weight, error }.mean_trials(rate, limit);
        weight = (mean / (l + l.ln_1p()) - 1.0).max(1e-3);
    }
    mean
}
