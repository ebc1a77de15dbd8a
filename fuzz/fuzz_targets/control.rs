//! The control protocol: parses requests as a run does, and responses as its clients do.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    millstream_cli::fuzz::control(bytes);
});
