//! The step `unit` for the whole workspace: one build, and then the test programs in parallel lanes, because many of
//! them wait for processes or time rather than for a core.

use std::collections::BTreeSet;

use crate::members::Member;
use crate::step::{Invocation, Phase, Step};

/// The benchmarks. `cargo xtask soak peers` tests them, because their peers take longer to build than the engine.
const PEERS: &str = "millstream-benches";

/// Programs that measure time, or provoke races with as many threads as there are cores. They run one after the other.
const WHOLE_CORES: &[&str] = &[
    "conservation",
    "eventcount_race",
    "eventcount_stress",
    "linearizable",
    "live",
    "percpu_revocable",
    "reclaim_torture",
    "shutdown",
    "stopped",
    "stress",
];

/// The programs that wait most, which have a separate lane.
const WAITING: &[&str] = &["command", "daemon"];

/// A test of the engine without overflow checks, as in a release build, where an overflow wraps instead of panicking.
pub(crate) const WRAPPING: [&str; 2] =
    ["--config=profile.dev.package.millstream-flow.overflow-checks=false", "--test=extremes"];

/// Returns the step `unit` for the whole workspace.
pub(crate) fn unit(members: &[Member], about: &'static str) -> Step {
    let test = |targets: &[String]| {
        let packages = ["test", "--no-fail-fast", "--workspace", "--exclude", PEERS].map(str::to_owned);
        Invocation::new(packages.into_iter().chain(targets.iter().cloned()))
    };
    let words = |words: &[&str]| test(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    let named = |programs: &[String]| test(&programs.iter().map(|name| format!("--test={name}")).collect::<Vec<_>>());
    let [alone, waiting, others] = groups(members);
    let beside: Phase =
        vec![vec![named(&waiting), words(&["--doc"])], vec![words(&["--lib", "--bins"])], vec![named(&others)]];
    // The last phase names the packages of the other invocations, so that it reuses their builds of the dependencies.
    let phases = vec![beside, vec![vec![named(&alone)]], vec![vec![words(&WRAPPING)]]];
    Step::lanes("unit", about, words(&["--no-run"]), phases)
}

/// Returns the test programs that run alone, those that wait, and the others.
fn groups(members: &[Member]) -> [Vec<String>; 3] {
    let tested = members.iter().filter(|member| member.package != PEERS);
    let programs: BTreeSet<String> = tested.flat_map(Member::test_programs).collect();
    let (alone, rest): (Vec<String>, Vec<String>) =
        programs.into_iter().partition(|program| WHOLE_CORES.contains(&program.as_str()));
    let (waiting, others) = rest.into_iter().partition(|program| WAITING.contains(&program.as_str()));
    [alone, waiting, others]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members;

    #[test]
    fn every_program_runs_once() {
        let members = members::all(crate::root()).unwrap();
        let [alone, waiting, others] = groups(&members);
        assert_eq!((alone.len(), waiting.len()), (WHOLE_CORES.len(), WAITING.len()), "a program has another name now");
        let lines = unit(&members, "").lines();
        assert!(lines[0].ends_with("--no-run"), "{}", lines[0]);
        for program in alone.iter().chain(&waiting).chain(&others) {
            let word = format!("--test={program}");
            let runs = lines.iter().filter(|line| line.split(' ').any(|found| found == word)).count();
            assert_eq!(runs, if program == "extremes" { 2 } else { 1 }, "{program}");
        }
    }
}
