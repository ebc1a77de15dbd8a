//! One step of a task: commands that run in order, timed, until one fails.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A named check.
pub(crate) struct Step {
    /// The word on the command line and in the report.
    pub(crate) name: &'static str,
    /// The statement that a pass of this step proves.
    pub(crate) about: &'static str,
    work: Work,
}

enum Work {
    /// `cargo` invocations, run in order.
    Cargo(Vec<Invocation>),
    /// A check in Rust, given the workspace root.
    Inspect(fn(&Path) -> Result<(), String>),
}

struct Invocation {
    args: Vec<String>,
    env: Vec<(&'static str, String)>,
}

impl Step {
    /// A step that is one `cargo` invocation.
    pub(crate) fn cargo(
        name: &'static str,
        about: &'static str,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let work = Work::Cargo(Vec::new());
        Self { name, about, work }.then_cargo(args)
    }

    /// A step that inspects the tree itself.
    pub(crate) fn inspect(name: &'static str, about: &'static str, check: fn(&Path) -> Result<(), String>) -> Self {
        let work = Work::Inspect(check);
        Self { name, about, work }
    }

    /// Appends a `cargo` invocation to this step.
    ///
    /// # Panics
    /// Panics if the step is an inspection.
    pub(crate) fn then_cargo(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.invocations().push(Invocation { args: args.into_iter().map(Into::into).collect(), env: Vec::new() });
        self
    }

    /// Sets an environment variable for the last invocation added.
    ///
    /// # Panics
    /// Panics if the step is an inspection.
    pub(crate) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        let last = self.invocations().last_mut();
        last.expect("a cargo step has at least one invocation").env.push((name, value.into()));
        self
    }

    fn invocations(&mut self) -> &mut Vec<Invocation> {
        match &mut self.work {
            Work::Cargo(invocations) => invocations,
            Work::Inspect(_) => panic!("step `{}` is an inspection", self.name),
        }
    }

    /// Runs the step in `root`; the error says which command failed and how to repeat it.
    pub(crate) fn run(&self, root: &Path) -> Result<(), String> {
        match &self.work {
            Work::Inspect(check) => check(root),
            Work::Cargo(invocations) => invocations.iter().try_for_each(|i| i.run(root)),
        }
    }
}

impl Invocation {
    fn run(&self, root: &Path) -> Result<(), String> {
        let line = self.shell_line();
        println!("   $ {line}");
        let status = Command::new(cargo())
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(root)
            .status()
            .map_err(|error| format!("could not start `{line}`: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("`{line}` ended with {status}")) }
    }

    /// The invocation as a shell command, to repeat it by hand.
    fn shell_line(&self) -> String {
        let mut line = String::new();
        for (name, value) in &self.env {
            let _ = write!(line, "{name}='{value}' ");
        }
        line.push_str("cargo");
        for arg in &self.args {
            line.push(' ');
            line.push_str(arg);
        }
        line
    }
}

/// The cargo that runs this program, so that every step uses the same toolchain.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// Runs `steps` in order, prints each with its time, and stops at the first failure.
pub(crate) fn run_all(steps: &[Step], root: &Path) -> Result<(), String> {
    let began = Instant::now();
    let mut times = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate() {
        println!("== {}/{} {}: {}", index + 1, steps.len(), step.name, step.about);
        let step_began = Instant::now();
        step.run(root).map_err(|reason| {
            format!(
                "step `{name}` failed after {time}: {reason}\n      \
                 {left} step(s) not run; `cargo xtask test {name}` repeats this one",
                name = step.name,
                time = seconds(step_began.elapsed()),
                left = steps.len() - index - 1,
            )
        })?;
        let took = step_began.elapsed();
        println!("   ok, {}", seconds(took));
        times.push((step.name, took));
    }
    println!("== all {} steps passed in {}", steps.len(), seconds(began.elapsed()));
    for (name, took) in times {
        println!("   {name:<11} {:>9}", seconds(took));
    }
    Ok(())
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_failing_step_stops_the_run_and_is_named() {
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        fn pass(_: &Path) -> Result<(), String> {
            RUNS.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        fn fail(_: &Path) -> Result<(), String> {
            Err("the reason".to_owned())
        }
        let steps =
            [Step::inspect("first", "", pass), Step::inspect("second", "", fail), Step::inspect("third", "", pass)];
        let error = run_all(&steps, Path::new(".")).unwrap_err();
        assert!(error.contains("`second` failed"), "{error}");
        assert!(error.contains("the reason"), "{error}");
        assert!(error.contains("1 step(s) not run"), "{error}");
        assert_eq!(RUNS.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_failing_command_is_shown_in_a_repeatable_form() {
        let step = Step::cargo("x", "", ["no-such-subcommand"]).env("NAME", "value");
        let error = step.run(Path::new(".")).unwrap_err();
        assert!(error.contains("NAME='value' cargo no-such-subcommand"), "{error}");
    }
}
