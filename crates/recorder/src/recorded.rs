//! Conversion of inputs and outputs to values of a history.

use millstream_history::{Value, Values};

/// A type that can be recorded as an operation's input or output.
///
/// `()` and `None` are recorded as null. There are also implementations for booleans, integers, text, pairs (the two values of a
/// compare-and-set) and [`Value`] itself. Implement the trait for a type of your own, or translate results with
/// [`Log::record_as`](crate::Log::record_as). `Result` has no implementation: whether `Err` means "empty", "full" or "failed
/// without effect" depends on the operation.
pub trait Recorded {
    /// Returns the value. Text, lists and integers of more than 63 bits are stored in the table `values`.
    fn value(&self, values: &mut Values) -> Value;
}

impl Recorded for () {
    #[inline]
    fn value(&self, _: &mut Values) -> Value {
        Value::NULL
    }
}

impl Recorded for bool {
    #[inline]
    fn value(&self, _: &mut Values) -> Value {
        Value::from(*self)
    }
}

impl Recorded for Value {
    #[inline]
    fn value(&self, _: &mut Values) -> Value {
        *self
    }
}

macro_rules! integers {
    ($($int:ty)+) => {$(
        impl Recorded for $int {
            #[inline]
            fn value(&self, values: &mut Values) -> Value {
                match i64::try_from(*self) {
                    Ok(int @ Value::INT_MIN..=Value::INT_MAX) => Value::int(int),
                    _ => values.int(*self as i128),
                }
            }
        }
    )+};
}

integers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

impl Recorded for str {
    fn value(&self, values: &mut Values) -> Value {
        values.text(self)
    }
}

impl Recorded for String {
    fn value(&self, values: &mut Values) -> Value {
        values.text(self)
    }
}

impl<T: Recorded> Recorded for Option<T> {
    #[inline]
    fn value(&self, values: &mut Values) -> Value {
        self.as_ref().map_or(Value::NULL, |some| some.value(values))
    }
}

impl<T: Recorded + ?Sized> Recorded for &T {
    #[inline]
    fn value(&self, values: &mut Values) -> Value {
        (**self).value(values)
    }
}

impl<A: Recorded, B: Recorded> Recorded for (A, B) {
    fn value(&self, values: &mut Values) -> Value {
        let pair = [self.0.value(values), self.1.value(values)];
        values.list(&pair)
    }
}

#[cfg(test)]
mod tests {
    use millstream_history::{Datum, Value, Values};

    use super::Recorded;

    #[test]
    fn values_keep_their_meaning() {
        let mut values = Values::new();
        assert_eq!(().value(&mut values), Value::NULL);
        assert_eq!(None::<u32>.value(&mut values), Value::NULL);
        assert_eq!(Some(7_u8).value(&mut values), Value::int(7));
        assert_eq!((-7_i64).value(&mut values), Value::int(-7));
        let large = u64::MAX.value(&mut values);
        assert_eq!(values.get(large), Datum::Int(u64::MAX.into()));
        let least = i64::MIN.value(&mut values);
        assert_eq!(values.get(least), Datum::Int(i64::MIN.into()));
        let pair = (1_u32, "x").value(&mut values);
        let text = values.text("x");
        assert_eq!(values.as_pair(pair), Some([Value::int(1), text]));
    }
}
