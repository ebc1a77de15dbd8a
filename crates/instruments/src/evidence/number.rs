//! Reads numbers as scripts write them, and writes numbers so that a script reads back exactly the computed number.
//!
//! A decimal names the binary64 number nearest to it. If that is not precise enough (for a computed threshold, or a
//! probability at the end of the double range), C's hex floats (`0x1.f5c28f5c28f5cp-1`) name one number exactly.

use std::time::Duration;

use millstream_command::time;

/// A threshold or a value: a bare number, or a time, which is stored in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantity {
    /// The number or, for a time, its seconds.
    pub value: f64,
    /// Whether it was written with a unit of time.
    pub is_time: bool,
}

impl Quantity {
    /// Reads a number or a time.
    ///
    /// # Errors
    /// Returns a message with the problem and the expected forms.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Ok(value) = parse(text) {
            return Ok(Self { value, is_time: false });
        }
        match time::parse(text) {
            Ok(time) => Ok(Self { value: time.as_secs_f64(), is_time: true }),
            Err(_) => Err(format!("`{text}` is neither a number nor a time such as `50ms`")),
        }
    }

    /// Returns the quantity as a user would write it.
    pub fn show(self) -> String {
        if self.is_time { time::show(Duration::from_secs_f64(self.value)) } else { exact(self.value) }
    }
}

/// Reads a decimal, a percentage or a C hex float; the result is finite.
///
/// # Errors
/// Returns a message with the problem and the expected forms.
pub(crate) fn parse(text: &str) -> Result<f64, String> {
    let malformed =
        || format!("`{text}` is not a number: expected a decimal such as 0.99 or a hex float such as 0x1p-3");
    let (sign, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = if let Some(digits) = magnitude.strip_prefix("0x").or_else(|| magnitude.strip_prefix("0X")) {
        hex_float(digits).ok_or_else(malformed)?
    } else if magnitude.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        match magnitude.strip_suffix('%') {
            Some(percent) => percent.parse::<f64>().map_err(|_| malformed())? / 100.0,
            None => magnitude.parse().map_err(|_| malformed())?,
        }
    } else {
        return Err(malformed());
    };
    if value.is_finite() { Ok(sign * value) } else { Err(format!("`{text}` is beyond the range of a double")) }
}

/// Reads two quantities of the same kind with `..` or a comma between them, the smaller one first.
///
/// # Errors
/// Returns a message if either is malformed, if they differ in kind, or if the greater one comes first.
pub(crate) fn parse_pair(text: &str) -> Result<(Quantity, Quantity), String> {
    let (low, high) = text
        .split_once("..")
        .or_else(|| text.split_once(','))
        .ok_or_else(|| format!("`{text}` is not a pair: write the lower and the upper one, as in `0.96..0.98`"))?;
    let (low, high) = (Quantity::parse(low.trim())?, Quantity::parse(high.trim())?);
    if low.is_time != high.is_time {
        return Err(format!("`{text}`: one is a time and the other is not"));
    }
    if low.value >= high.value {
        return Err(format!("`{text}` is the wrong way round: the first must be less than the second"));
    }
    Ok((low, high))
}

/// Returns the number with 17 significant digits, without trailing zeros: reading it back gives the same double.
pub(crate) fn exact(value: f64) -> String {
    let scientific = format!("{value:.16e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        trimmed => trimmed,
    };
    let exponent: i32 = exponent.parse().expect("the exponent that was just written");
    let point = |head: &str, tail: &str| if tail.is_empty() { head.to_owned() } else { format!("{head}.{tail}") };
    let text = match usize::try_from(exponent) {
        Ok(whole) if whole < 17 => {
            let padded = format!("{digits:0<width$}", width = whole + 1);
            let (head, tail) = padded.split_at(whole + 1);
            point(head, tail)
        }
        Err(_) if exponent > -5 => format!("0.{}{digits}", "0".repeat(-(exponent + 1) as usize)),
        _ => format!("{}e{exponent}", point(&digits[..1], &digits[1..])),
    };
    format!("{sign}{text}")
}

/// Returns the number for display: rounded to six significant digits, without trailing zeros.
pub(crate) fn short(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().expect("a number that was just written");
    if rounded != 0.0 && (rounded.abs() < 1e-4 || rounded.abs() >= 1e15) {
        format!("{rounded:e}")
    } else {
        format!("{rounded}")
    }
}

/// Returns the lower end of an interval for display: rounded like [`short`], but never up.
pub(crate) fn short_low(value: f64) -> String {
    let shown = short(value);
    match shown.parse::<f64>() {
        Ok(rounded) if rounded > value => short(value - unit(value)),
        _ => shown,
    }
}

/// Returns the upper end of an interval for display: rounded like [`short`], but never down.
pub(crate) fn short_high(value: f64) -> String {
    let shown = short(value);
    match shown.parse::<f64>() {
        Ok(rounded) if rounded < value => short(value + unit(value)),
        _ => shown,
    }
}

/// Returns one unit in the sixth significant digit.
fn unit(value: f64) -> f64 {
    let exponent = format!("{value:e}").split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    10_f64.powi(exponent.unwrap_or(0) - 5)
}

/// Reads the digits after `0x`. Rounds to the nearest double, and a tie to the even one; `None` if the text is not a
/// hex float.
fn hex_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = match text.split_once(['p', 'P']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (mut bits, mut exponent) = (0_u64, exponent);
    for (place, digit) in whole.chars().map(|c| (false, c)).chain(fraction.chars().map(|c| (true, c))) {
        let digit = u64::from(digit.to_digit(16)?);
        if bits >> 60 == 0 {
            bits = bits << 4 | digit;
            exponent -= i64::from(place) * 4;
        } else {
            // This digit is beyond the last bit. For the rounding, it only matters whether the digit is zero.
            bits |= u64::from(digit != 0);
            exponent += i64::from(!place) * 4;
        }
    }
    Some(rounded(bits, exponent))
}

/// Reads an exponent, clamped to a range beyond which every mantissa of a reasonable length overflows or vanishes.
fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let magnitude = digits.parse::<i64>().unwrap_or(i64::MAX).min(1 << 32);
    Some(if text.starts_with('-') { -magnitude } else { magnitude })
}

/// Returns the double nearest to `bits` × 2^`exponent`, or infinity if there is none. The lowest of 61 or more bits may
/// represent all bits that were cut off below it.
fn rounded(bits: u64, exponent: i64) -> f64 {
    if bits == 0 {
        return 0.0;
    }
    let top = bits << bits.leading_zeros();
    let leading = exponent + 63 - i64::from(bits.leading_zeros());
    if leading > 1023 {
        return f64::INFINITY;
    }
    // Below 2^-1022 a double has fewer bits, down to none.
    let precision = 53 - (-1022 - leading).clamp(0, 54);
    if precision < 0 {
        return 0.0;
    }
    let wide = u128::from(top);
    let cut = 64 - precision as u32;
    let (kept, rest, half) = (wide >> cut, wide & ((1 << cut) - 1), 1_u128 << (cut - 1));
    let up = rest > half || (rest == half && kept & 1 == 1);
    let mantissa = kept as u64 + u64::from(up);
    // The leading bit adds one to the exponent field, and so does a carry out of the mantissa.
    let field = (leading + 1022).max(0) as u64;
    f64::from_bits((field << 52) + mantissa)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_floats_are_the_doubles_they_name() {
        for (text, value) in [
            ("0x1p0", 1.0),
            ("0x1.8p1", 3.0),
            ("-0x1.ba18a998fffa0p+2", -6.907_755_278_982_137),
            ("0x1.f5c28f5c28f5cp-1", 0.98),
            ("0x.8", 0.5),
            ("0xff", 255.0),
            ("0x0p9", 0.0),
            ("0x1p-1074", f64::from_bits(1)),
            ("0x1p-1022", f64::MIN_POSITIVE),
            ("0x0.fffffffffffffp-1022", f64::from_bits((1 << 52) - 1)),
            ("0x1.fffffffffffffp1023", f64::MAX),
            ("0x1p-1076", 0.0),
            ("0x1p-99999999999999999999", 0.0),
        ] {
            assert_eq!(parse(text).map(f64::to_bits), Ok(value.to_bits()), "{text}");
        }
    }

    #[test]
    fn hex_floats_round_to_even() {
        // Half an ulp above 1 is rounded down, to even. Any further bit, however small, makes the number round up.
        assert_eq!(parse("0x1.00000000000008p0"), Ok(1.0));
        assert_eq!(parse("0x1.000000000000080000000000001p0"), Ok(1.0 + f64::EPSILON));
        assert_eq!(parse("0x1.00000000000018p0"), Ok(1.0 + 2.0 * f64::EPSILON));
        assert_eq!(parse("0x1.fffffffffffff8p0"), Ok(2.0));
        assert_eq!(parse("0x1.8p-1075").map(f64::to_bits), Ok(1));
        assert_eq!(parse("0x1p-1075").map(f64::to_bits), Ok(0), "half of the least double goes to even");
        assert_eq!(parse("0x1.fffffffffffff8p-1023"), Ok(f64::MIN_POSITIVE));
        assert!(parse("0x1.fffffffffffff8p1023").is_err());
    }

    #[test]
    fn anything_but_a_finite_number_is_refused() {
        for text in
            ["", "x", "0x", "0xp1", "0x1p", "0x1p+", "0x1.2.3", "1e999", "inf", "nan", "NaN", "1,5", "--1", "0x1p2000"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse("99%"), Ok(0.99));
        assert_eq!(parse(".5"), Ok(0.5));
        assert_eq!(parse("1e-6"), Ok(1e-6));
    }

    #[test]
    fn exact_numbers_are_read_back() {
        let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let value = f64::from_bits(bits);
            if value.is_finite() {
                assert_eq!(exact(value).parse::<f64>().map(f64::to_bits), Ok(bits), "{}", exact(value));
            }
        }
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (1234.0, "1234"),
            (0.1, "0.10000000000000001"),
            (1e-5, "1.0000000000000001e-5"),
            (0.00015, "0.00014999999999999999"),
            (1e300, "1.0000000000000001e300"),
            (1e16, "10000000000000000"),
        ] {
            assert_eq!(exact(value).parse(), Ok(value), "{text}");
        }
        assert_eq!(exact(0.1), "0.10000000000000001");
        assert_eq!(exact(1234.0), "1234");
        assert_eq!(exact(-2.5), "-2.5");
    }

    #[test]
    fn the_ends_of_an_interval_are_rounded_outwards() {
        let mut bits = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..20_000 {
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            let value = (bits >> 11) as f64 / (1_u64 << 53) as f64 * 10_f64.powi((bits % 30) as i32 - 20);
            let (low, high): (f64, f64) = (short_low(value).parse().unwrap(), short_high(value).parse().unwrap());
            assert!(low <= value && value <= high, "{low} {value} {high}");
            assert!(high - low <= 3e-5 * value, "{low} {value} {high}");
        }
        assert_eq!((short_low(0.98), short_high(0.98)), ("0.98".to_owned(), "0.98".to_owned()));
        assert_eq!((short_low(0.999_999_7), short_high(0.999_999_7)), ("0.999999".to_owned(), "1".to_owned()));
    }

    #[test]
    fn pairs_are_in_order_and_of_one_kind() {
        let (low, high) = parse_pair("0.96..0.98").unwrap();
        assert_eq!((low.value, high.value), (0.96, 0.98));
        assert_eq!(parse_pair("1ms,1s").unwrap().1, Quantity { value: 1.0, is_time: true });
        for wrong in ["0.98..0.96", "1", "1..1", "1ms..2", "a..b"] {
            assert!(parse_pair(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn quantities_show_what_was_written() {
        for text in ["50ms", "1500ms", "0.5", "12"] {
            assert_eq!(Quantity::parse(text).unwrap().show(), text);
        }
    }
}
