//! The steps of `cargo xtask test`, cheapest first, for the whole workspace or for some packages.

use crate::bare;
use crate::fast;
use crate::interface;
use crate::measured;
use crate::members::Member;
use crate::models::{self, LOOM_PACKAGES};
use crate::msrv;
use crate::packages;
use crate::programs;
use crate::promises;
use crate::python;
use crate::rooms;
use crate::seeds;
use crate::step::{Invocation, Step};
use crate::tools::Tool;
use crate::words;

/// The packages and the depth of a run.
pub(crate) struct Scope<'a> {
    /// The chosen packages, or every package of the workspace.
    pub(crate) members: &'a [Member],
    pub(crate) is_workspace: bool,
    /// Whether the slow tests are left out.
    pub(crate) is_fast: bool,
}

impl Scope<'_> {
    /// Cargo's arguments for the packages.
    fn packages(&self) -> Vec<String> {
        if self.is_workspace {
            return vec!["--workspace".to_owned()];
        }
        self.members.iter().map(|member| format!("--package={}", member.package)).collect()
    }

    fn has(&self, short: &str) -> bool {
        self.members.iter().any(|member| member.short == short)
    }
}

/// Returns every step of the scope, in the order in which they run.
pub(crate) fn all(scope: &Scope<'_>) -> Vec<Step> {
    let mut steps = vec![
        fmt(scope).needs(Tool::rustfmt()).narrowed().fast(),
        Step::inspect("models", "the loom step runs every loom model", models::check_listed).fast(),
        Step::inspect("promises", "every test that docs/security.md names exists", promises::check).fast(),
        Step::inspect("figures", "pages repeat measured figures as docs/measured.md has them", measured::check).fast(),
        Step::inspect("words", "comments, pages and names read as native English, and links resolve", words::check)
            .fast(),
        Step::inspect(
            "rooms",
            "the engine's files have no circular imports, and its parts keep their fields to themselves",
            rooms::check,
        )
        .fast(),
        Step::inspect("packages", "every published package carries its licences, README and metadata", packages::check)
            .fast(),
        Step::inspect("interface", "the interfaces of libraries can grow, or are closed for a reason", interface::check).fast(),
        Step::inspect("seeds", "every randomised test draws from the seed of the run", seeds::check).fast(),
        Step::inspect("msrv", "no dependency asks for a newer toolchain than the manifests promise", msrv::check).fast(),
        Step::cargo("clippy", "no lint fires in any target", clippy(scope)).needs(Tool::clippy()).narrowed().fast(),
        // These packages are built alone. In a build of the whole workspace, the package of the command would enable optional
        // features of the libraries, which are off in a user's build.
        Step::cargo(
            "features",
            "the libraries and the command build without optional features, and the command says which one a flow needs",
            ["check", "--package=millstream-flow"],
        )
        .then_cargo(["clippy", "--package=millstream-history", "--no-default-features", "--", "-D", "warnings"])
        .then_cargo(["check", "--package=millstream", "--no-default-features"])
        .then_cargo(["clippy", "--package=millstream-cli", "--no-default-features", "--", "-D", "warnings"])
        .then_cargo(["test", "--package=millstream-cli", "--no-default-features", "--test=without_http"])
        // The binary is built without optimisation, because it serves a single test, which takes a second.
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0"),
        Step::partial("bare", "hazard pointers build and work without the standard library", bare::check),
        unit(scope).narrowed().fast(),
    ];
    steps.extend(doc(scope).map(Step::narrowed));
    steps.push(Step::partial("python", "the Python package builds, and its docs and tests run", python::check).apart());
    steps.extend(loom(scope).map(|step| step.narrowed().apart()));
    steps
}

fn fmt(scope: &Scope<'_>) -> Step {
    let mut args = vec!["fmt".to_owned(), "--check".to_owned()];
    args.extend(if scope.is_workspace { vec!["--all".to_owned()] } else { scope.packages() });
    Step::cargo("fmt", "the layout is that of rustfmt", args)
}

fn clippy(scope: &Scope<'_>) -> Vec<String> {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    [words("clippy"), scope.packages(), words("--all-targets -- -D warnings")].concat()
}

fn unit(scope: &Scope<'_>) -> Step {
    const ABOUT: &str = "unit, property and integration tests, the examples in the docs; examples compile";
    let test = |about, args: Vec<String>| Step::cargo("unit", about, ["test".to_owned()].into_iter().chain(args));
    if scope.is_fast {
        let args = [scope.packages(), fast::targets(scope.members)].concat();
        return test("unit and property tests, and the quick integration tests", args);
    }
    if scope.is_workspace {
        return programs::unit(scope.members, ABOUT);
    }
    let all = test(ABOUT, scope.packages());
    let wrapping = ["test", "--package=millstream-flow"].into_iter().chain(programs::WRAPPING);
    if scope.has("flow") { all.then_cargo(wrapping) } else { all }
}

/// Returns the step that builds the docs of the libraries, if the scope has libraries.
fn doc(scope: &Scope<'_>) -> Option<Step> {
    let libraries: Vec<Member> = scope.members.iter().filter(|member| member.has_library()).cloned().collect();
    let scope = Scope { members: &libraries, ..*scope };
    let args = [vec!["doc".to_owned()], scope.packages(), vec!["--no-deps".to_owned(), "--lib".to_owned()]].concat();
    let step = Step::cargo("doc", "the docs build without a warning", args).env("RUSTDOCFLAGS", "-D warnings");
    (!libraries.is_empty()).then_some(step)
}

/// Returns the step that runs the loom models of the scope, if it has any.
///
/// A model runs on one thread, and maps a stack for each modelled thread of each execution. Whenever a stack is
/// unmapped, the kernel interrupts all cores of the process, so two models in one process slow each other down.
/// Therefore each lane is a process that runs one model at a time.
fn loom(scope: &Scope<'_>) -> Option<Step> {
    let chosen: Vec<_> = LOOM_PACKAGES.iter().filter(|models| scope.has(models.folder)).collect();
    let packages: Vec<String> = chosen.iter().map(|models| format!("--package={}", models.package)).collect();
    let programs: Vec<String> =
        chosen.iter().flat_map(|models| models.tests).map(|test| format!("--test={test}")).collect();
    let test = |targets: &[String]| {
        let args = models::TEST.map(str::to_owned);
        let invocation = Invocation::new(args.iter().chain(&packages).chain(targets).cloned());
        invocation.env("RUSTFLAGS", models::FLAGS)
    };
    let lane = |targets: &[String]| vec![test(targets).env("RUST_TEST_THREADS", "1")];
    let library = |words: &[&str]| ["--lib"].iter().chain(words).map(|word| (*word).to_owned()).collect::<Vec<_>>();
    // The largest models start first.
    let mut lanes = vec![];
    if scope.has("ring") {
        lanes.push(lane(&library(&["--", "model::channel"])));
    }
    lanes.push(lane(&library(&["--", "--skip", "model::channel"])));
    if !programs.is_empty() {
        lanes.push(lane(&programs));
    }
    let build = test(&[library(&["--no-run"]), programs].concat());
    let step = Step::lanes("loom", "loom explores the interleavings of the models", build, vec![lanes]);
    (!chosen.is_empty()).then_some(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{members, minutes};

    fn steps_of(shorts: &[&str], is_fast: bool) -> Vec<Step> {
        let mut chosen = members::all(crate::root()).unwrap();
        chosen.retain(|member| shorts.is_empty() || shorts.contains(&member.short.as_str()));
        all(&Scope { members: &chosen, is_workspace: shorts.is_empty(), is_fast })
    }

    fn lines(steps: &[Step], name: &str) -> Vec<String> {
        steps.iter().find(|step| step.name == name).map(Step::lines).unwrap_or_default()
    }

    #[test]
    fn step_names_are_unique_and_differ_from_those_of_packages() {
        let steps = steps_of(&[], false);
        let mut names: Vec<String> = steps.iter().map(|step| step.name.to_owned()).collect();
        names.extend(members::all(crate::root()).unwrap().into_iter().map(|member| member.short));
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn every_step_has_its_minutes() {
        for step in steps_of(&[], false) {
            assert!(minutes::of(step.name).is_some(), "{} is not in xtask/src/minutes.rs", step.name);
        }
    }

    #[test]
    fn commands_name_the_chosen_packages() {
        let steps = steps_of(&["ring"], false);
        assert_eq!(lines(&steps, "fmt"), ["cargo fmt --check --package=millstream-ring"]);
        assert_eq!(lines(&steps, "unit"), ["cargo test --package=millstream-ring"]);
        assert_eq!(lines(&steps, "clippy"), ["cargo clippy --package=millstream-ring --all-targets -- -D warnings"]);
        assert_eq!(lines(&steps, "loom").len(), 3);
        assert_eq!(lines(&steps_of(&["fiber"], false), "loom").len(), 2);
        assert_eq!(lines(&steps_of(&["flow"], false), "unit").len(), 2);
        assert!(lines(&steps_of(&["flow"], false), "loom").is_empty());
        assert!(lines(&steps_of(&["xtask"], false), "doc").is_empty());
        let loom = lines(&steps_of(&[], false), "loom").remove(0);
        assert!(LOOM_PACKAGES.iter().all(|models| loom.contains(models.package)), "{loom}");
    }

    #[test]
    fn a_fast_run_leaves_out_the_examples_in_the_docs_and_slow_programs() {
        let line = lines(&steps_of(&["ring"], true), "unit").remove(0);
        assert!(line.starts_with("cargo test --package=millstream-ring --bins --lib"), "{line}");
        assert!(line.contains("--test=channel") && !line.contains("--test=linearizable"), "{line}");
    }
}
