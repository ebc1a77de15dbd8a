//! Stress tests under ThreadSanitizer, with a standard library that is instrumented as well: otherwise the sanitizer
//! misses what synchronises inside the library, and reports races that are none.

use std::process::Command;

use super::Part;
use crate::tools::Tool;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Packages and their test programs. The slab is left out: a copy that the check of its object throws away is a race to the
/// sanitizer.
const PROGRAMS: [(&str, &[&str]); 2] = [
    ("millstream-sync", &["eventcount_stress", "lock", "reclaim_torture"]),
    ("millstream-ring", &["stress", "shutdown", "channel"]),
];

pub(super) fn part() -> Part {
    Part {
        name: "tsan".to_owned(),
        group: "tsan",
        about: "ThreadSanitizer sees no race in the stress tests",
        tools: vec![Tool::nightly()],
        work: Box::new(|bench| {
            PROGRAMS.iter().try_for_each(|(package, programs)| {
                // Through rustup's `cargo`: the one that runs this program knows no other toolchain.
                let mut test = Command::new("cargo");
                test.args(["+nightly", "test", "-Zbuild-std", "--target", TARGET, "--target-dir=target/tsan"]);
                test.arg(format!("--package={package}")).args(programs.iter().map(|name| format!("--test={name}")));
                // `--cfg tsan`: a locked addition stands in for the assembly, which the sanitizer does not see.
                bench.run(test.env("RUSTFLAGS", "--cfg tsan -Zsanitizer=thread"))
            })
        }),
    }
}
