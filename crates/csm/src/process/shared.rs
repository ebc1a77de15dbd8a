//! A cache of tests, so that repeated requests with the same arguments build a test only once.

use std::sync::{Mutex, PoisonError};

use super::{Method, Test, Threshold};
use crate::Error;

/// The maximum number of cached tests.
const MAX_TESTS: usize = 64;

/// The tests requested most recently, the latest first.
static LATEST: Mutex<Vec<(Question, Test)>> = Mutex::new(Vec::new());

/// The arguments that identify a test, to the last bit.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Question {
    threshold: u64,
    log_eps: u64,
    method: Method,
}

impl Test {
    /// A test in both directions.
    ///
    /// # Errors
    /// The threshold is not between 0 and 1, `log_eps` is positive or not finite, or the method needs two thresholds.
    ///
    /// # Cost
    /// Methods that divide the error by computation take milliseconds, and up to a tenth of a second. The latest 64
    /// tests of the process are cached. A request with the arguments of a cached test takes about 50 ns under a lock;
    /// threads that build different tests do not wait for one another.
    pub fn new(threshold: f64, log_eps: f64, method: Method) -> Result<Self, Error> {
        let threshold = Threshold::new(threshold)?;
        let question = Question { threshold: threshold.value().to_bits(), log_eps: log_eps.to_bits(), method };
        if let Some(test) = asked_before(question) {
            return Ok(test);
        }
        let test = Test::compute(threshold, log_eps, method)?;
        let mut latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
        latest.truncate(MAX_TESTS - 1);
        latest.insert(0, (question, test.clone()));
        Ok(test)
    }
}

fn asked_before(question: Question) -> Option<Test> {
    let mut latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
    let place = latest.iter().position(|(asked, _)| *asked == question)?;
    latest[..=place].rotate_right(1);
    Some(latest[0].1.clone())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_latest_tests_are_kept_and_only_those() {
        let test = |log_eps: f64, method| Test::new(0.98, log_eps, method).unwrap();
        let first = test(-5.0, Method::Balanced);
        assert!(Arc::ptr_eq(&first.arms, &test(-5.0, Method::Balanced).arms));
        for (other, n, s) in [(test(-5.5, Method::Balanced), 700, 700), (test(-5.0, Method::Robbins), 4000, 3972)] {
            assert!(!Arc::ptr_eq(&first.arms, &other.arms));
            assert_ne!(first.stop(n, s).unwrap(), other.stop(n, s).unwrap());
        }
        let alone = Test::compute(Threshold::new(0.98).unwrap(), -5.0, Method::Balanced).unwrap();
        assert_eq!(first.stop(700, 699).unwrap(), alone.stop(700, 699).unwrap());
        // A test that is requested repeatedly remains cached; any other test is evicted by 64 new ones.
        for k in 0..100 {
            test(-6.0 - f64::from(k), Method::Robbins);
            assert!(k % 10 != 0 || Arc::ptr_eq(&first.arms, &test(-5.0, Method::Balanced).arms));
        }
        assert!(LATEST.lock().unwrap().len() <= MAX_TESTS);
        (0..64).for_each(|k| drop(test(-200.0 - f64::from(k), Method::Robbins)));
        assert!(!Arc::ptr_eq(&first.arms, &test(-5.0, Method::Balanced).arms));
        assert!(Test::new(0.5, 1.0, Method::Robbins).is_err());
    }
}
