//! Shrinking a set of items that fails.

/// The maximum number of items in all calls of `fails` together. When it is exceeded, the items that remain are the
/// result.
const MAX_WORK: usize = 4_000_000;

/// Removes items that the failure does not need: first halves, then quarters, and so on down to single items.
///
/// All items together must fail, and removing an item must never turn success into failure, so that the failure of the
/// remaining items proves the failure of all. The result is minimal, unless [`MAX_WORK`] is exceeded or `fails` cannot
/// decide a subset.
pub(crate) fn shrink<T: Copy>(mut items: Vec<T>, mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut work = 0;
    let mut chunk = items.len().div_ceil(2);
    while chunk > 0 && work <= MAX_WORK {
        let before = items.len();
        let mut at = 0;
        while at < items.len() && work <= MAX_WORK {
            work += items.len();
            let mut fewer = items.clone();
            fewer.drain(at..(at + chunk).min(items.len()));
            if fails(&fewer) {
                items = fewer;
            } else {
                at += chunk;
            }
        }
        // Single items are tried again until none is superfluous.
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
    fn exactly_the_needed_items_remain() {
        let needed = [3, 700, 999];
        let left = shrink((0..1000).collect(), |items| needed.iter().all(|item| items.contains(item)));
        assert_eq!(left, needed);
    }

    #[test]
    fn one_of_equivalent_items_remains() {
        let left = shrink((0..64).collect(), |items| items.iter().filter(|&&item| item % 2 == 0).count() >= 2);
        assert_eq!(left.len(), 2);
    }
}
