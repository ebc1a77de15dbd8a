//! Smaller sets of witnesses for the same verdict.

/// The maximum number of items tried before the remaining ones are taken as they are.
const MAX_WORK: usize = 4_000_000;

/// Leaves out items that `fails` does not need: halves, quarters and so on down to single items.
///
/// All items together must fail, and leaving one out must never make a history fail: then the remaining items always
/// stand for the whole. The result is minimal, unless that would take more than [`MAX_WORK`] or `fails` is undecided.
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
