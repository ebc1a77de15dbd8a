//! Byte strings as JSON strings, without loss.
//!
//! JSON strings are Unicode, but paths are bytes. Bytes in UTF-8 are written as they are, with control characters, `"`
//! and `\` escaped. Any other byte is written as a lone surrogate, `\udc80`–`\udcff`. This is the convention of
//! Python's `surrogateescape`, so both `os.fsencode(json.loads(text))` and [`JsonBytes`] restore the bytes. Valid text
//! never contains a lone surrogate, so such a byte cannot be mistaken for text.

/// Appends `bytes` to `out` as a JSON string, quotes included.
pub fn write_string(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => out.extend(b"\\\""),
                '\\' => out.extend(b"\\\\"),
                '\n' => out.extend(b"\\n"),
                '\r' => out.extend(b"\\r"),
                '\t' => out.extend(b"\\t"),
                '\0'..='\x1f' | '\x7f' => out.extend(format!("\\u{:04x}", u32::from(character)).bytes()),
                _ => out.extend(character.encode_utf8(&mut [0; 4]).bytes()),
            }
        }
        for byte in chunk.invalid() {
            out.extend(format!("\\udc{byte:02x}").bytes());
        }
    }
    out.push(b'"');
}

/// The bytes of a JSON string, whether [`write_string`] wrote it or not. Use with `serde_json`:
/// `serde_json::from_str::<JsonBytes>(text)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonBytes(pub Vec<u8>);

impl<'de> serde::Deserialize<'de> for JsonBytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Vec<u8>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
            fn visit_str<E>(self, text: &str) -> Result<Vec<u8>, E> {
                Ok(text.as_bytes().to_vec())
            }
        }
        // When bytes are requested, `serde_json` passes lone surrogates through in their three-byte form instead of
        // refusing them.
        deserializer.deserialize_bytes(Visitor).map(|wide| Self(unescape_surrogates(wide)))
    }
}

/// Turns the three-byte form of U+DC80–U+DCFF (`ED B2 80`–`ED B3 BF`) back into the byte that it represents.
fn unescape_surrogates(wide: Vec<u8>) -> Vec<u8> {
    if !wide.windows(2).any(|two| matches!(two, [0xED, 0xB2 | 0xB3])) {
        return wide;
    }
    let mut bytes = Vec::with_capacity(wide.len());
    let mut rest = wide.as_slice();
    while let [first, tail @ ..] = rest {
        if let [0xED, second @ (0xB2 | 0xB3), third @ 0x80..=0xBF, tail @ ..] = rest {
            bytes.push(((second & 0x03) << 6) | (third & 0x3F));
            rest = tail;
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::{JsonBytes, write_string};

    fn written(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        write_string(bytes, &mut out);
        String::from_utf8(out).expect("JSON text is UTF-8")
    }

    #[test]
    fn text_is_what_serde_json_reads() {
        let text = "plain \"quoted\" back\\slash\nnew\u{1}\u{7f} ünï \u{1F600}";
        assert_eq!(serde_json::from_str::<String>(&written(text.as_bytes())).unwrap(), text);
    }

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(serde_json::from_str::<JsonBytes>(&written(&all)).unwrap().0, all);
        assert_eq!(written(b"a\xFFb"), "\"a\\udcffb\"");
    }

    #[test]
    fn an_encoded_surrogate_is_not_taken_for_an_escape() {
        // The three bytes are themselves not UTF-8, so each is escaped on its own, and all three are restored.
        let bytes = b"\xED\xB2\x80";
        assert_eq!(serde_json::from_str::<JsonBytes>(&written(bytes)).unwrap().0, bytes);
    }
}
