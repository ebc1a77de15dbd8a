//! Sizes in bytes, as people write them: `64MiB`, `1.5 GB`, `4096`.

/// The units, largest first: a size is shown in the first unit that fits.
const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

/// Parses a size.
///
/// The units are powers of 1024 (`KiB`, `MiB`, `GiB`, `TiB`), powers of 1000 (`kB`, `MB`, `GB`, `TB`) and `B`. Their
/// case is ignored. A number without a unit is a number of bytes.
///
/// # Errors
/// A text that states the problem and the expected form.
pub fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, unit) = (text[..unit_at].replace('_', ""), text[unit_at..].trim());
    let factor = match UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
        Some((_, factor)) => *factor,
        None if unit.is_empty() => 1,
        None => return Err(format!("`{unit}` is not a unit of size: use B, KiB, MiB, GiB, TiB, kB, MB, GB or TB")),
    };
    let too_large = || format!("`{text}` is more bytes than 64 bits can count");
    // Whole numbers are computed exactly. Only a number with a fraction uses floating point.
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(too_large);
    }
    if number.chars().all(|c| c.is_ascii_digit()) && !number.is_empty() {
        return Err(too_large());
    }
    match number.parse::<f64>() {
        Ok(number) => {
            let bytes = number * factor as f64;
            if bytes < u64::MAX as f64 { Ok(bytes as u64) } else { Err(too_large()) }
        }
        Err(_) => Err(format!("`{text}` is not a size: a number and a unit, such as `64MiB` or `1.5GB`")),
    }
}

/// A size in the form that [`parse`] accepts, in the largest power of 1024 that is exact: 67108864 is `64MiB`.
pub fn show(bytes: u64) -> String {
    let exact = UNITS
        .iter()
        .filter(|(name, _)| name.len() != 2)
        .find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor));
    exact.map_or_else(|| format!("{bytes}B"), |(name, factor)| format!("{}{name}", bytes / factor))
}

#[cfg(test)]
mod tests {
    use super::{parse, show};

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64MiB", 64 << 20),
            ("64 mib", 64 << 20),
            ("1.5GiB", 3 << 29),
            ("2kB", 2000),
            ("1_000B", 1000),
            ("16777215TiB", 16_777_215 << 40),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "MiB", "64 Mib/s", "12x", "1.2.3MB", "-1", "99999999999999999999", "16777216TiB", "1e30"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_shown_size_is_read_back() {
        for bytes in [0, 1, 1023, 1024, 1536, 64 << 20, (64 << 20) + 1, u64::MAX] {
            assert_eq!(parse(&show(bytes)), Ok(bytes));
        }
        assert_eq!(show(64 << 20), "64MiB");
        assert_eq!(show(1536), "1536B");
    }
}
