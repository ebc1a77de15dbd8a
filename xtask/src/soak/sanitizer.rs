//! Stress tests under ThreadSanitizer. The standard library is instrumented as well: otherwise the sanitizer does not
//! see the synchronisation inside the library, and reports false races.

use std::process::Command;

use super::Part;
use crate::tools::Tool;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Packages and their test programs. Two kinds of program are left out, because the sanitizer reports correct accesses
/// in them. The slab discards a copy if the object has changed during the copy. In reclamation, readers and reclaimers
/// synchronise by fences, which the sanitizer does not see.
const PROGRAMS: [(&str, &[&str]); 2] =
    [("millstream-sync", &["eventcount", "eventcount_stress", "lock"]), ("millstream-ring", &["channel", "stress"])];

pub(super) fn part() -> Part {
    Part {
        name: "tsan".to_owned(),
        group: "tsan",
        about: "ThreadSanitizer sees no race in the stress tests",
        tools: vec![Tool::nightly()],
        work: Box::new(|bench| {
            PROGRAMS.iter().try_for_each(|(package, programs)| {
                // This is rustup's `cargo`, because the `cargo` that runs this program cannot select a toolchain.
                let mut test = Command::new("cargo");
                test.args(["+nightly", "test", "-Zbuild-std", "--target", TARGET, "--target-dir=target/tsan"]);
                test.arg(format!("--package={package}")).args(programs.iter().map(|name| format!("--test={name}")));
                // With `--cfg tsan`, a locked addition replaces the assembly, which the sanitizer does not see.
                bench.run(test.env("RUSTFLAGS", "--cfg tsan -Zsanitizer=thread"))
            })
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members;

    #[test]
    fn programs_exist() {
        let members = members::all(crate::root()).unwrap();
        for (package, programs) in PROGRAMS {
            let member = members.iter().find(|member| member.package == package).unwrap();
            let found = member.test_programs();
            assert!(programs.iter().all(|program| found.iter().any(|name| name == program)), "{package}: {programs:?}");
        }
    }
}
