//! The responses of a hostile server to `http-get`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    millstream_cli::fuzz::http(bytes);
});
