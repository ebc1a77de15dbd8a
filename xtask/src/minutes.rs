//! The minutes that each step takes, so that a contributor can choose steps. `cargo xtask test` prints the times of its
//! run at the end; copy them to this file when a step changes.

/// The machine of the table, and its state. Times vary by a third from run to run.
pub(crate) const MEASURED_ON: &str =
    "about, alongside other steps, on two cores of an AMD EPYC (a virtual machine), nothing built before";

/// Each step and its minutes. The time of a build is included in the first step that needs the build.
const MINUTES: [(&str, f64); 19] = [
    ("fmt", 0.1),
    ("words", 0.1),
    ("figures", 0.1),
    ("rooms", 0.1),
    ("models", 0.1),
    ("promises", 0.1),
    ("packages", 0.1),
    ("interface", 0.1),
    ("seeds", 0.1),
    ("clippy", 2.1),
    ("features", 3.2),
    ("bare", 0.3),
    ("unit", 14.0),
    ("doc", 0.6),
    ("msrv", 0.1),
    ("python", 1.4),
    ("loom", 17.5),
    ("fast", 1.2),
    ("all", 20.0),
];

/// Returns the minutes of a step, of `all` steps, or of `--fast` after a build.
pub(crate) fn of(step: &str) -> Option<f64> {
    MINUTES.iter().find(|(name, _)| *name == step).map(|(_, minutes)| *minutes)
}
