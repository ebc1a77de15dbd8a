//! Times and rates, as people write them: `5s`, `100ms..5s`, `50/s`.

use std::ops::Range;
use std::time::Duration;

/// The units and their lengths in seconds, in the order in which an error lists them.
const UNITS: [(&str, f64); 6] = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// The maximum time, a year. A longer time is probably a typing error.
const MAX_TIME: Duration = Duration::from_secs(365 * 24 * 3600);

/// Parses a time such as `250ms`, `1.5s` or `2h`.
///
/// # Errors
/// A text that states the problem and the expected form.
pub fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = (&text[..unit_at], text[unit_at..].trim());
    let malformed = || format!("`{text}` is not a time: a number and a unit, such as `250ms` or `1.5s`");
    if unit.is_empty() && !number.is_empty() {
        return Err(format!("`{text}` has no unit: write `{text}s` for seconds or `{text}ms` for milliseconds"));
    }
    let number: f64 = number.parse().map_err(|_| malformed())?;
    let Some((_, seconds)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("`{unit}` is not a unit of time: use ns, us, ms, s, m or h"));
    };
    Duration::try_from_secs_f64(number * seconds)
        .ok()
        .filter(|time| *time <= MAX_TIME)
        .ok_or_else(|| format!("`{text}` is longer than a year"))
}

/// Parses a range such as `100ms..5s`. A single time is a range whose ends are equal.
///
/// # Errors
/// A text that states the mistake in one of the ends, or that the first end is greater than the second.
pub fn parse_range(text: &str) -> Result<Range<Duration>, String> {
    let Some((from, to)) = text.split_once("..") else {
        let fixed = parse(text)?;
        return Ok(fixed..fixed);
    };
    let range = parse(from)?..parse(to)?;
    if range.start > range.end {
        return Err(format!("the range is the wrong way round: write `{}..{}`", to.trim(), from.trim()));
    }
    Ok(range)
}

/// Parses a rate such as `50/s`, `0.5/s` or `600/m`. Returns the rate per second.
///
/// # Errors
/// A text that states the problem and the expected form.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    let malformed = || format!("`{text}` is not a rate: a number and a time, such as `50/s` or `600/m`");
    let (number, unit) = text.split_once('/').ok_or_else(malformed)?;
    let number: f64 = number.trim().parse().map_err(|_| malformed())?;
    let Some((_, seconds)) = UNITS.iter().find(|(name, _)| *name == unit.trim()) else {
        return Err(format!("`{}` is not a unit of time: use ns, us, ms, s, m or h", unit.trim()));
    };
    let per_second = number / seconds;
    if per_second.is_nan() || per_second <= 0.0 {
        return Err(format!("`{text}` would never grant anything: a rate is more than zero"));
    }
    if per_second > 1e9 {
        return Err(format!("`{text}` is more than a thousand million a second, which is too large for a rate"));
    }
    Ok(per_second)
}

/// A time in the form that [`parse`] accepts, in the largest unit that is exact: 1500 ms is `1500ms`, 5000 ms is `5s`.
pub fn show(time: Duration) -> String {
    let ns = time.as_nanos();
    let units: [(&str, u128); 6] = [
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    let exact = units.iter().find(|(_, factor)| ns >= *factor && ns.is_multiple_of(*factor));
    exact.map_or_else(|| "0s".to_owned(), |(name, factor)| format!("{}{name}", ns / factor))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{parse, parse_range, parse_rate, show};

    #[test]
    fn times_are_read() {
        for (text, ms) in [("100ms", 100), ("5s", 5000), ("1.5s", 1500), ("2m", 120_000), ("1h", 3_600_000), ("0s", 0)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "5", "s", "-1s", "5 parsecs", "1..2s", "9999999h", "1e400s", "NaNs"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("5").unwrap_err().contains("`5s`"));
    }

    #[test]
    fn ranges_are_in_order() {
        assert_eq!(parse_range("100ms..5s"), Ok(Duration::from_millis(100)..Duration::from_secs(5)));
        assert_eq!(parse_range("1s"), Ok(Duration::from_secs(1)..Duration::from_secs(1)));
        assert!(parse_range("5s..100ms").unwrap_err().contains("`100ms..5s`"));
    }

    #[test]
    fn rates_are_per_second() {
        assert_eq!(parse_rate("50/s"), Ok(50.0));
        assert_eq!(parse_rate("600/m"), Ok(10.0));
        for text in ["50", "0/s", "-1/s", "x/s", "5/y", "nan/s", "inf/s", "1/", "/s"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_shown_time_is_read_back() {
        for ms in [0, 1, 1500, 5000, 90_000, 3_600_000] {
            let time = Duration::from_millis(ms);
            assert_eq!(parse(&show(time)), Ok(time));
        }
    }
}
