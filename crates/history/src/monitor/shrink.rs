//! Fewer witnesses for the same verdict.

/// Items looked at before what is left is taken as it is.
const WORK_MOST: usize = 4_000_000;

/// Leaves out what `fails` does not need: halves, quarters and so on down to single items.
///
/// All items together are known to fail, and leaving one out never makes a history fail: then whatever is left still
/// stands for the whole. The result is minimal, unless that took more than [`WORK_MOST`] or `fails` could not tell.
pub(crate) fn shrink<T: Copy>(mut items: Vec<T>, mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut work = 0;
    let mut chunk = items.len().div_ceil(2);
    while chunk > 0 && work <= WORK_MOST {
        let before = items.len();
        let mut at = 0;
        while at < items.len() && work <= WORK_MOST {
            work += items.len();
            let mut fewer = items.clone();
            fewer.drain(at..(at + chunk).min(items.len()));
            if fails(&fewer) {
                items = fewer;
            } else {
                at += chunk;
            }
        }
        // Single items are tried again until none can be spared.
        if chunk > 1 || items.len() == before {
            chunk /= 2;
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_left_and_nothing_else() {
        let needed = [3, 700, 999];
        let left = shrink((0..1000).collect(), |items| needed.iter().all(|item| items.contains(item)));
        assert_eq!(left, needed);
    }

    #[test]
    fn items_that_stand_in_for_each_other_leave_one() {
        let left = shrink((0..64).collect(), |items| items.iter().filter(|&&item| item % 2 == 0).count() >= 2);
        assert_eq!(left.len(), 2);
    }
}
