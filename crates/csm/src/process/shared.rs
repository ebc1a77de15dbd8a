//! A cache of tests, for callers without a place to keep one.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Method, Test, Threshold};
use crate::Error;

/// The maximum number of tests kept.
const MAX_TESTS: usize = 64;

/// The tests requested most recently, the latest first.
static LATEST: Mutex<Vec<(Question, Arc<Test>)>> = Mutex::new(Vec::new());

/// The arguments that identify a test, to the last bit.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Question {
    threshold: u64,
    log_eps: u64,
    method: Method,
}

impl Test {
    /// As [`new`](Self::new), but a test with the same arguments is not built again: for functions that are called from
    /// elsewhere with all arguments each time. The latest 64 tests are kept, for the whole program.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Cost
    /// Some 50 ns under a lock, if the test is in the cache; callers that build different tests do not wait for one
    /// another.
    ///
    /// ```
    /// use millstream_csm::process::{Method, Test, Threshold};
    ///
    /// let test = || Test::shared(Threshold::new(0.98)?, 0.001f64.ln(), Method::Balanced);
    /// assert_eq!(test()?.stop(4000, 3972)?, test()?.stop(4000, 3972)?);
    /// # Ok::<(), millstream_csm::Error>(())
    /// ```
    pub fn shared(threshold: Threshold, log_eps: f64, method: Method) -> Result<Arc<Test>, Error> {
        let question = Question { threshold: threshold.value().to_bits(), log_eps: log_eps.to_bits(), method };
        if let Some(test) = asked_before(question) {
            return Ok(test);
        }
        let test = Arc::new(Test::new(threshold, log_eps, method)?);
        let mut latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
        latest.truncate(MAX_TESTS - 1);
        latest.insert(0, (question, Arc::clone(&test)));
        Ok(test)
    }
}

fn asked_before(question: Question) -> Option<Arc<Test>> {
    let mut latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
    let place = latest.iter().position(|(asked, _)| *asked == question)?;
    latest[..=place].rotate_right(1);
    Some(Arc::clone(&latest[0].1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_tests_are_kept_and_only_those() {
        let test = |log_eps: f64, method| Test::shared(Threshold::new(0.98).unwrap(), log_eps, method).unwrap();
        let first = test(-5.0, Method::Balanced);
        assert!(Arc::ptr_eq(&first, &test(-5.0, Method::Balanced)));
        for (other, n, s) in [(test(-5.5, Method::Balanced), 700, 700), (test(-5.0, Method::Robbins), 4000, 3972)] {
            assert!(!Arc::ptr_eq(&first, &other));
            assert_ne!(first.stop(n, s).unwrap(), other.stop(n, s).unwrap());
        }
        let alone = Test::new(Threshold::new(0.98).unwrap(), -5.0, Method::Balanced).unwrap();
        assert_eq!(first.stop(700, 699).unwrap(), alone.stop(700, 699).unwrap());
        // Requested repeatedly, it stays; otherwise 64 others evict it.
        for k in 0..100 {
            test(-6.0 - f64::from(k), Method::Robbins);
            assert!(k % 10 != 0 || Arc::ptr_eq(&first, &test(-5.0, Method::Balanced)));
        }
        assert!(LATEST.lock().unwrap().len() <= MAX_TESTS);
        (0..64).for_each(|k| drop(test(-200.0 - f64::from(k), Method::Robbins)));
        assert!(!Arc::ptr_eq(&first, &test(-5.0, Method::Balanced)));
        assert!(Test::shared(Threshold::new(0.5).unwrap(), 1.0, Method::Robbins).is_err());
    }
}
