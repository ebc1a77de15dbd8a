//! The schedule of progress reports.

/// Whether a progress report is due after this number of trials: after 1, 10, 20, ... 100, 200, ... 1000, 2000, and so
/// on.
#[must_use]
pub fn report_due(trials: u64) -> bool {
    trials != 0 && trials.is_multiple_of(10u64.pow(trials.ilog10())) && (trials == 1 || trials >= 10)
}

/// The next larger number of trials after which a report is due.
pub(super) fn next_report(trials: u64) -> u64 {
    if trials == 0 {
        return 1;
    }
    let unit = 10u64.pow(trials.ilog10()).max(10);
    (trials / unit + 1).saturating_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_report_is_the_next_due_one() {
        let due: Vec<u64> = (0..=30_000).filter(|&n| report_due(n)).collect();
        assert_eq!(due[..13], [1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 200, 300]);
        for trials in 0..20_000 {
            let next = due[due.partition_point(|&n| n <= trials)];
            assert_eq!(next_report(trials), next, "after {trials}");
        }
    }
}
