//! Requests as a run reads them, and answers as its clients do.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    millstream_cli::fuzz::control(bytes);
});
