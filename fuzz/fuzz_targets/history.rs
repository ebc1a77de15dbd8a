//! Histories from untrusted files: reads them in every format, and checks that a history survives being written and
//! read as JSON.

#![no_main]

use millstream_history::format::{Format, read, write_json};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for &format in Format::ALL {
        let history = match read(bytes, format, None) {
            Ok(history) => history,
            Err(error) => {
                assert!(!error.to_string().is_empty(), "an error says what is wrong");
                continue;
            }
        };
        let mut written = Vec::new();
        write_json(&history, &mut written).expect("memory takes it");
        let again = read(&written[..], Format::Json, None).expect("a history that was written is read");
        assert_eq!(again.len(), history.len(), "{format}");
        let mut rewritten = Vec::new();
        write_json(&again, &mut rewritten).expect("memory takes it");
        assert_eq!(written, rewritten, "{format}");
    }
});
