//! What the daemon may cost: a share of one processor, with some credit for bursts.

use std::time::Duration;

/// Processor time that may be used at once after a quiet while: some hundred barriers.
const BURST_NS: f64 = 5e6;
/// What may be owed: a tenth of a second of rests at the usual share.
const DEBT_NS: f64 = 1e6;
/// The longest rest at a time: as long as a client sleeps before it looks again. At the usual share it pays for 160 µs; a request that is
/// fulfilled at once takes some 50, another one 100.
const LONGEST: Duration = Duration::from_millis(20);

/// Processor time used against time gone by.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Of one processor, 0 to 1.
    share: f64,
    credit_ns: f64,
    last_ns: u64,
    last_used_ns: u64,
}

impl Budget {
    /// With both clocks as they are now.
    pub(crate) fn new(share: f64, now_ns: u64, used_ns: u64) -> Budget {
        Budget { share, credit_ns: BURST_NS, last_ns: now_ns, last_used_ns: used_ns }
    }

    /// How long to rest before the next request so that the share holds.
    pub(crate) fn rest(&mut self, now_ns: u64, used_ns: u64) -> Duration {
        let earned = now_ns.saturating_sub(self.last_ns) as f64 * self.share;
        let used = used_ns.saturating_sub(self.last_used_ns) as f64;
        (self.last_ns, self.last_used_ns) = (now_ns, used_ns);
        self.credit_ns = (self.credit_ns + earned - used).clamp(-DEBT_NS, BURST_NS);
        Duration::from_nanos((-self.credit_ns / self.share).max(0.0) as u64).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_within_the_share() {
        for request_ns in [20_000, 50_000, 110_000] {
            let mut budget = Budget::new(0.008, 0, 0);
            let (mut now, mut used) = (0, 0);
            for _ in 0..100_000 {
                now += request_ns;
                used += request_ns;
                now += budget.rest(now, used).as_nanos() as u64;
            }
            let share = (used as f64 - BURST_NS) / now as f64;
            assert!((0.0072..0.00801).contains(&share), "{share} with {request_ns} ns a request");
        }
    }

    #[test]
    fn a_seldom_user_never_makes_it_rest_and_no_rest_is_long() {
        let mut budget = Budget::new(0.01, 0, 0);
        for round in 1..1000 {
            assert_eq!(budget.rest(round * 10_000_000, round * 50_000), Duration::ZERO);
        }
        assert_eq!(budget.rest(10_000_000_000, 10_000_000_000), LONGEST);
    }
}
