//! Times of single operations and their quantiles.

/// The quantiles shown of a distribution: the box, then the tail.
pub const SHOWN: [(&str, f64); 6] =
    [("p25", 0.25), ("p50", 0.5), ("p75", 0.75), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// The times at the quantiles of [`SHOWN`].
pub type Quantiles = [f64; SHOWN.len()];

/// Times below this bound go into a histogram; the rarer longer times are stored individually.
const COUNTED: usize = 4096;

/// A set of times, in little memory that is written in advance.
#[derive(Debug)]
pub struct Times {
    counts: Vec<u64>,
    others: Vec<u64>,
}

impl Times {
    /// An empty set of times.
    #[must_use]
    pub fn new() -> Self {
        // Every page is written now, so that the measurement has no page faults.
        let (mut counts, mut others) = (vec![1; COUNTED], vec![1; 1 << 20]);
        counts.fill(0);
        others.clear();
        Times { counts, others }
    }

    /// Adds a time.
    #[inline(always)]
    pub fn record(&mut self, time: u64) {
        match self.counts.get_mut(time as usize) {
            Some(count) => *count += 1,
            None => self.others.push(time),
        }
    }

    /// The quantiles of the times in all sets together.
    ///
    /// # Panics
    /// Panics if the sets are empty.
    #[must_use]
    pub fn quantiles(all: &[Times]) -> Quantiles {
        let mut others: Vec<u64> = all.iter().flat_map(|times| &times.others).copied().collect();
        others.sort_unstable();
        let counts: Vec<u64> = (0..COUNTED).map(|time| all.iter().map(|times| times.counts[time]).sum()).collect();
        let counted: u64 = counts.iter().sum();
        let last = counted + others.len() as u64 - 1;
        SHOWN.map(|(_, share)| {
            let mut rank = (last as f64 * share) as u64;
            if rank >= counted {
                return others[(rank - counted) as usize] as f64;
            }
            let time = counts.iter().position(|&count| {
                let is_here = rank < count;
                rank = rank.saturating_sub(count);
                is_here
            });
            time.expect("a rank below the number of counted times falls into a bucket") as f64
        })
    }
}

impl Default for Times {
    fn default() -> Self {
        Self::new()
    }
}

/// A table row: the name, then the quantiles.
#[must_use]
pub fn row(name: &str, quantiles: Quantiles) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(quantiles.map(|time| format!("{time:.0}"))).collect()
}

/// The header of a table of [`row`]s.
#[must_use]
pub fn header() -> Vec<&'static str> {
    std::iter::once("").chain(SHOWN.map(|(name, _)| name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        let mut all = [Times::new(), Times::new()];
        // Nine in ten times are 0 to 899; the others are far out.
        for n in 0..1000 {
            all[n % 2].record(if n < 900 { n as u64 } else { 1_000_000 + n as u64 });
        }
        assert_eq!(Times::quantiles(&all), [249.0, 499.0, 749.0, 1_000_989.0, 1_000_998.0, 1_000_999.0]);
    }
}
