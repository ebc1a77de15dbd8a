//! The fast part of the tests, which finds most mistakes within minutes.

use crate::members::Member;

/// Test programs that take more than three seconds, or that find mistakes only in many rounds.
pub(crate) const SLOW_PROGRAMS: &[&str] = &[
    "calibration",
    "checker",
    "command",
    "conservation",
    "crash",
    "exact_small",
    "daemon",
    "eventcount_processes",
    "eventcount_race",
    "eventcount_stress",
    "linearizable",
    "reclaim_torture",
    "shutdown",
    "stopped",
    "streaming",
    "stress",
];

/// Parts of the names of slow unit tests.
pub(crate) const SLOW_TESTS: &[&str] = &["monitor::agreement"];

/// Returns the arguments of `cargo test` for the quick tests of the packages.
pub(crate) fn targets(members: &[Member]) -> Vec<String> {
    let mut programs: Vec<String> = members.iter().flat_map(Member::test_programs).collect();
    programs.retain(|program| !SLOW_PROGRAMS.contains(&program.as_str()));
    programs.sort();
    programs.dedup();
    let mut words = vec!["--bins".to_owned()];
    // Cargo refuses `--lib` if no package has a library.
    words.extend(members.iter().any(Member::has_library).then(|| "--lib".to_owned()));
    words.extend(programs.iter().map(|program| format!("--test={program}")));
    words.push("--".to_owned());
    words.extend(SLOW_TESTS.iter().flat_map(|test| ["--skip".to_owned(), (*test).to_owned()]));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members;

    #[test]
    fn a_package_without_a_library_is_not_asked_for_it() {
        let mut members = members::all(crate::root()).unwrap();
        assert!(targets(&members).contains(&"--lib".to_owned()));
        members.retain(|member| member.short == "xtask");
        assert_eq!(targets(&members)[..2], ["--bins", "--"]);
    }

    #[test]
    fn slow_programs_exist() {
        let programs: Vec<String> =
            members::all(crate::root()).unwrap().iter().flat_map(Member::test_programs).collect();
        for slow in SLOW_PROGRAMS {
            assert!(programs.iter().any(|program| program == slow), "there is no test program `{slow}`");
        }
    }
}
