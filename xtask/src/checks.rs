//! The steps of `cargo xtask test`, cheapest first.

use crate::bare;
use crate::models::{self, LOOM_PACKAGES};
use crate::promises;
use crate::python;
use crate::step::Step;

/// Every step, in the order they run.
pub(crate) fn all() -> Vec<Step> {
    let mut steps = vec![
        Step::cargo("fmt", "the layout is that of rustfmt", ["fmt", "--all", "--check"]),
        Step::inspect("models", "the loom steps run every loom model", models::check_listed),
        Step::inspect("promises", "every test that docs/security.md names exists", promises::check),
        Step::cargo(
            "clippy",
            "no lint fires in any target",
            ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
        ),
        // In the workspace build the command turns optional features on; in a user's build they are off.
        Step::cargo(
            "features",
            "the libraries build without optional features",
            ["check", "--package=millstream-flow"],
        )
        .then_cargo(["check", "--package=millstream", "--no-default-features"]),
        Step::inspect("bare", "hazard pointers build and hold without the standard library", bare::check),
        Step::cargo(
            "test",
            "unit, property and integration tests, the examples in the docs; examples compile",
            ["test", "--workspace"],
        )
        // Overflow checks are off, as in a release build, where an overflow wraps instead of panicking.
        .then_cargo([
            "test",
            "--config=profile.dev.package.millstream-flow.overflow-checks=false",
            "--package=millstream-flow",
            "--test=extremes",
        ]),
        Step::cargo("doc", "the docs build without a warning", ["doc", "--workspace", "--no-deps", "--lib"])
            .env("RUSTDOCFLAGS", "-D warnings"),
        Step::inspect("python", "the Python package builds, and its docs and tests run", python::check),
    ];
    steps.extend(loom());
    steps
}

/// The loom models; they have their own target folder, as `--cfg loom` rebuilds everything.
fn loom() -> Option<Step> {
    let mut packages = LOOM_PACKAGES.iter().map(|models| {
        let args = ["test", "--release", "--target-dir=target/loom", "--package", models.package, "--lib"];
        args.into_iter().chain(models.tests.iter().flat_map(|test| ["--test", test]))
    });
    let flags = ("RUSTFLAGS", "--cfg loom");
    let about = "loom explores every interleaving of the models";
    let first = Step::cargo("loom", about, packages.next()?).env(flags.0, flags.1);
    Some(packages.fold(first, |step, args| step.then_cargo(args).env(flags.0, flags.1)))
}

/// The steps in `names`, in the order of `steps`; all steps when `names` is empty.
pub(crate) fn select(steps: Vec<Step>, names: &[String]) -> Result<Vec<Step>, String> {
    if let Some(unknown) = names.iter().find(|name| steps.iter().all(|step| step.name != **name)) {
        let known: Vec<&str> = steps.iter().map(|step| step.name).collect();
        return Err(format!("unknown step `{unknown}`; the steps are {}", known.join(", ")));
    }
    Ok(steps.into_iter().filter(|step| names.is_empty() || names.iter().any(|name| name == step.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(steps: &[Step]) -> Vec<&str> {
        steps.iter().map(|step| step.name).collect()
    }

    #[test]
    fn no_names_select_every_step() {
        let all_names = names(&all()).join(" ");
        assert_eq!(names(&select(all(), &[]).unwrap()).join(" "), all_names);
    }

    #[test]
    fn named_steps_run_in_the_listed_order() {
        let asked = ["doc".to_owned(), "fmt".to_owned()];
        assert_eq!(names(&select(all(), &asked).unwrap()), ["fmt", "doc"]);
    }

    #[test]
    fn an_unknown_step_lists_the_known_ones() {
        let Err(error) = select(all(), &["lint".to_owned()]) else {
            panic!("`lint` is not a step");
        };
        assert!(error.contains("`lint`") && error.contains("clippy"), "{error}");
    }

    #[test]
    fn step_names_are_unique() {
        let steps = all();
        let mut sorted = names(&steps);
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), steps.len());
    }
}
