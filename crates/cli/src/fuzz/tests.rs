//! Runs every entry point on its seeds, on mutations of them, and on noise.
//!
//! `MILLSTREAM_SEED=n` begins at case n, and a failing test prints the number of its case. `MILLSTREAM_STRESS=n` tries
//! n times as many cases.

use std::panic::{AssertUnwindSafe, catch_unwind};

use millstream_verify_random::{Random, seed, stress};

#[cfg(feature = "http")]
use super::http;
use super::mutation::{dictionary, files, mutate, noise, pick};
use super::{control, flow_file, manifest};

const CASES: u64 = 2_000;

/// Checks that a target accepts the seeds, that it accepts some mutations of them and refuses others, and that nothing
/// panics.
fn try_all(name: &str, target: fn(&[u8]) -> bool, seeds: &[Vec<u8>]) {
    let read = |case: &str, bytes: &[u8]| match catch_unwind(AssertUnwindSafe(|| target(bytes))) {
        Ok(taken) => taken,
        Err(_) => panic!("{name}, {case}: {}", bytes.escape_ascii()),
    };
    for (index, seed) in seeds.iter().enumerate() {
        read(&format!("seed {index}"), seed);
    }
    let words = dictionary(name);
    let (first, cases) = (seed(), CASES * stress());
    let mut taken = 0;
    for case in first..first + cases {
        let mut random = Random::new(case);
        let seed: &Vec<u8> = pick(seeds, &mut random);
        taken += u64::from(read(&format!("case {case}"), &mutate(seed, &words, &mut random)));
        read(&format!("noise {case}"), &noise(300, &mut random));
    }
    // If nearly all mutations were refused, acceptance would hardly be tested; if nearly all were accepted, refusal.
    assert!(taken > cases / 100 && taken < cases * 9 / 10, "{name}: {taken} of {cases} were taken");
}

#[test]
fn untrusted_flow_files_are_flows_or_errors() {
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
fn untrusted_requests_are_answered_and_change_all_or_nothing() {
    try_all("control", control, &files("fuzz/seeds/control"));
}

#[cfg(feature = "http")]
#[test]
fn answers_of_hostile_servers_are_bodies_or_failures_within_their_limits() {
    try_all("http", http, &files("fuzz/seeds/http"));
}

#[test]
fn altered_files_of_earlier_runs_are_read_or_refused() {
    try_all("manifest", manifest, &files("fuzz/seeds/manifest"));
}
