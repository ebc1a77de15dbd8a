//! Manifests, objects, dead letters and reports that others may have changed.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    millstream_cli::fuzz::manifest(bytes);
});
