//! Flow files: reads, checks and plans them.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    millstream_cli::fuzz::flow_file(bytes);
});
