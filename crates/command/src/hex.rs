//! Bytes in hexadecimal.

use thiserror::Error;

/// The reason why a text is not bytes in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HexError {
    /// The number of digits is odd, but each byte has two digits.
    #[error("expected an even number of digits, found {found}")]
    Odd {
        /// The number of digits.
        found: usize,
    },
    /// A character is not a hexadecimal digit (0 to 9, a to f, A to F).
    #[error("expected a hexadecimal digit at byte {at}, found {found:?}")]
    Digit {
        /// The offset of the wrong character, counted from 0.
        at: usize,
        /// The wrong character.
        found: char,
    },
}

/// The bytes in hexadecimal, with two lower-case digits for each byte.
#[must_use]
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    bytes.as_ref().iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The bytes of a hexadecimal text. Digits may be in lower or upper case.
///
/// # Errors
/// The number of digits is odd, or a character is not a digit.
pub fn decode(digits: impl AsRef<[u8]>) -> Result<Vec<u8>, HexError> {
    let digits = digits.as_ref();
    if !digits.len().is_multiple_of(2) {
        return Err(HexError::Odd { found: digits.len() });
    }
    let value = |at: usize| {
        let found = char::from(digits[at]);
        // The value is below 16, so it fits into a byte.
        found.to_digit(16).map(|value| value as u8).ok_or(HexError::Digit { at, found })
    };
    (0..digits.len()).step_by(2).map(|at| Ok(value(at)? << 4 | value(at + 1)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        let digits = encode(&bytes);
        assert!(digits.starts_with("000102") && digits.ends_with("fdfeff"), "{digits}");
        assert_eq!(decode(&digits), Ok(bytes.clone()));
        assert_eq!(decode(digits.to_uppercase()), Ok(bytes));
        assert_eq!((encode([]), decode("")), (String::new(), Ok(Vec::new())));
    }

    #[test]
    fn what_is_no_hexadecimal_is_refused_with_its_place() {
        assert_eq!(decode("abc"), Err(HexError::Odd { found: 3 }));
        for (digits, at, found) in [("0g", 1, 'g'), ("+1", 0, '+'), ("00é", 2, '\u{c3}'), ("0 ", 1, ' ')] {
            assert_eq!(decode(digits), Err(HexError::Digit { at, found }), "{digits}");
        }
        assert_eq!(decode("0g").unwrap_err().to_string(), "expected a hexadecimal digit at byte 1, found 'g'");
    }
}
