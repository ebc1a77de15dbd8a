//! What a hostile server sends to `http-get`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    millstream_cli::fuzz::http(bytes);
});
