//! Assigns a number to each value. Every operation of an unambiguous history needs one lookup of its value's number.
//!
//! The values of a test are usually consecutive integers, so the numbers are stored in an array that the values index.
//! Values used at nearby times then have neighbouring entries. In a hash table, their entries would be so far apart
//! that each lookup misses the caches. A hash table is used only if some value is not an integer, or if the array would
//! have too many unused entries.

use rustc_hash::FxHashMap;

use crate::value::Value;

/// The maximum number of array entries per value.
const SPARSEST: usize = 4;

/// The entry of an integer without a number.
const NONE: u32 = u32::MAX;

/// Numbers, below `u32::MAX`, of distinct values.
pub(super) enum Numbers {
    /// `numbers[i]` is the number of the integer `least + i`, or [`NONE`].
    Placed {
        least: i64,
        numbers: Vec<u32>,
    },
    Hashed(FxHashMap<u64, u32>),
}

impl Numbers {
    /// A table with space for the numbers of exactly these values.
    pub(super) fn of(values: impl Iterator<Item = Value>) -> Self {
        let mut count = 0;
        let (mut least, mut most) = (Value::INT_MAX, Value::INT_MIN);
        let mut are_integers = true;
        for value in values {
            count += 1;
            match value.as_int() {
                Some(int) => (least, most) = (least.min(int), most.max(int)),
                None => are_integers = false,
            }
        }
        // Integers have 63 bits, so the difference of two does not overflow. Without integers, the difference is
        // negative.
        match usize::try_from(most - least).ok() {
            Some(width) if are_integers && width / SPARSEST < count => {
                Numbers::Placed { least, numbers: vec![NONE; width + 1] }
            }
            _ => Numbers::Hashed(FxHashMap::with_capacity_and_hasher(count, rustc_hash::FxBuildHasher)),
        }
    }

    /// Gives the value a number; false if it has one already.
    ///
    /// # Panics
    /// May panic if the table has no space for the value.
    pub(super) fn insert(&mut self, value: Value, number: u32) -> bool {
        let before = match self {
            Numbers::Placed { least, numbers } => {
                let place = place(*least, value).expect("the table has space for every value");
                std::mem::replace(&mut numbers[place], number)
            }
            Numbers::Hashed(numbers) => numbers.insert(value.bits(), number).unwrap_or(NONE),
        };
        before == NONE
    }

    /// The value's number, if it has one.
    #[inline]
    pub(super) fn get(&self, value: Value) -> Option<u32> {
        match self {
            Numbers::Placed { least, numbers } => {
                numbers.get(place(*least, value)?).copied().filter(|&number| number != NONE)
            }
            Numbers::Hashed(numbers) => numbers.get(&value.bits()).copied(),
        }
    }
}

/// The index of an integer that is not below `least`.
#[inline]
fn place(least: i64, value: Value) -> Option<usize> {
    usize::try_from(value.as_int()? - least).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Values;

    fn numbered(values: &[Value]) -> Numbers {
        let mut numbers = Numbers::of(values.iter().copied());
        for (number, &value) in (0..).zip(values) {
            assert!(numbers.insert(value, number), "{value:?} is new");
        }
        for (number, &value) in (0..).zip(values) {
            assert_eq!(numbers.get(value), Some(number), "{value:?}");
        }
        for stranger in [-4, 6, 40, Value::INT_MIN, Value::INT_MAX].map(Value::int).into_iter().chain([Value::NULL]) {
            let known = values.iter().position(|&value| value == stranger);
            assert_eq!(numbers.get(stranger), known.map(|i| i as u32), "{stranger:?}");
        }
        if let Some(&first) = values.first() {
            assert!(!numbers.insert(first, 7), "the value has a number");
        }
        numbers
    }

    #[test]
    fn integers_close_together_have_places() {
        assert!(matches!(numbered(&[-3, 5, 2, 7].map(Value::int)), Numbers::Placed { least: -3, .. }));
        let ends = [Value::INT_MIN, Value::INT_MIN + 1].map(Value::int);
        assert!(matches!(numbered(&ends), Numbers::Placed { .. }));
    }

    #[test]
    fn other_values_are_hashed() {
        let text = Values::new().text("a");
        assert!(matches!(numbered(&[Value::int(1), text, Value::int(2)]), Numbers::Hashed(_)));
        assert!(matches!(numbered(&[1, 100].map(Value::int)), Numbers::Hashed(_)));
        assert!(matches!(numbered(&[Value::INT_MAX, Value::INT_MIN].map(Value::int)), Numbers::Hashed(_)));
        assert!(matches!(numbered(&[]), Numbers::Hashed(_)));
    }
}
