//! Every entry point over its seeds, mutations of them, and noise.
//!
//! The number of a case that fails is printed and replays it; `MILLSTREAM_FUZZ_CASES` sets how many cases run.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::mutation::{Random, dictionary, files, mutate};
use super::{control, flow_file, http, manifest};

fn cases() -> u64 {
    std::env::var("MILLSTREAM_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2_000)
}

/// Tries a target; `seeds` are taken, mutations of them are sometimes taken and sometimes refused, and nothing panics.
fn try_all(name: &str, target: fn(&[u8]) -> bool, seeds: &[Vec<u8>]) {
    let read = |case: &str, bytes: &[u8]| match catch_unwind(AssertUnwindSafe(|| target(bytes))) {
        Ok(taken) => taken,
        Err(_) => panic!("{name}, {case}: {}", bytes.escape_ascii()),
    };
    for (index, seed) in seeds.iter().enumerate() {
        read(&format!("seed {index}"), seed);
    }
    let words = dictionary(name);
    let mut taken = 0;
    for case in 0..cases() {
        let mut random = Random(case);
        let seed: &Vec<u8> = random.pick(seeds);
        taken += u64::from(read(&format!("case {case}"), &mutate(seed, &words, &mut random)));
        read(&format!("noise {case}"), &random.bytes(300));
    }
    // Otherwise the mutations are so wild, or so tame, that one half of the reader is never tried.
    assert!(taken > cases() / 100 && taken < cases() * 9 / 10, "{name}: {taken} of {} were taken", cases());
}

#[test]
fn flow_files_of_strangers_are_flows_or_errors() {
    let seeds = [files("flows"), files("fuzz/seeds/flow_file")].concat();
    try_all("flow_file", flow_file, &seeds);
}

#[test]
fn deep_nesting_in_a_flow_file_never_overflows_the_stack() {
    for (open, close) in [("[", "]"), ("{ not = ", "}"), ("{ a.b.c = ", "}")] {
        let text = format!(
            "[source]\nlines = \"-\"\n[[stage]]\nname = \"a\"\nop = \"filter\"\nwhen = {}1{}",
            open.repeat(20_000),
            close.repeat(20_000)
        );
        assert!(!flow_file(text.as_bytes()));
    }
}

#[test]
fn strangers_at_the_control_socket_are_answered_and_change_all_or_nothing() {
    try_all("control", control, &files("fuzz/seeds/control"));
}

#[test]
fn answers_of_strange_servers_are_bodies_or_failures_within_their_limits() {
    try_all("http", http, &files("fuzz/seeds/http"));
}

#[test]
fn files_of_earlier_runs_that_strangers_have_changed_are_read_or_refused() {
    try_all("manifest", manifest, &files("fuzz/seeds/manifest"));
}
