//! A step of a task: commands that run in order until one fails. The step is timed.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::companion::Companion;
use crate::lanes;
use crate::tools::Tool;

/// A named check.
pub(crate) struct Step {
    /// The name on the command line and in the report.
    pub(crate) name: &'static str,
    /// The statement that is true if the step passes.
    pub(crate) about: &'static str,
    /// Whether `--fast` runs the step.
    pub(crate) is_fast: bool,
    /// Whether the step can be limited to single packages.
    pub(crate) narrows: bool,
    /// Whether the step has its own target folder, so that it can run alongside the other steps at low priority.
    pub(crate) is_apart: bool,
    needs: Option<Tool>,
    work: Work,
}

enum Work {
    /// `cargo` invocations, run in order.
    Cargo(Vec<Invocation>),
    /// An invocation that builds, and those that run what it built.
    Lanes(Invocation, Vec<Phase>),
    /// A check in Rust, given the workspace root.
    Inspect(fn(&Path) -> Result<(), String>),
    /// A check in Rust that skips a part if the machine lacks a tool.
    Partial(fn(&Path) -> Result<Passed, String>),
}

/// Lanes that run in parallel; each lane runs its invocations in order.
pub(crate) type Phase = Vec<Vec<Invocation>>;

/// One `cargo` command.
#[derive(Debug)]
pub(crate) struct Invocation {
    args: Vec<String>,
    env: Vec<(&'static str, String)>,
}

/// The result of a step that did not fail.
pub(crate) enum Passed {
    Whole,
    /// The step, or a part of it, was skipped for this reason.
    Without(String),
}

impl Step {
    /// Returns a step with a single `cargo` invocation.
    pub(crate) fn cargo(
        name: &'static str,
        about: &'static str,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self::new(name, about, Work::Cargo(Vec::new())).then_cargo(args)
    }

    /// Returns a step that builds with one invocation, and then runs the built programs in phases.
    pub(crate) fn lanes(name: &'static str, about: &'static str, build: Invocation, phases: Vec<Phase>) -> Self {
        Self::new(name, about, Work::Lanes(build, phases))
    }

    /// Returns a step that inspects the tree itself.
    pub(crate) fn inspect(name: &'static str, about: &'static str, check: fn(&Path) -> Result<(), String>) -> Self {
        Self::new(name, about, Work::Inspect(check))
    }

    /// Returns a step that skips the parts for which the machine lacks a tool, and reports each skipped part.
    pub(crate) fn partial(name: &'static str, about: &'static str, check: fn(&Path) -> Result<Passed, String>) -> Self {
        Self::new(name, about, Work::Partial(check))
    }

    fn new(name: &'static str, about: &'static str, work: Work) -> Self {
        Self { name, about, is_fast: false, narrows: false, is_apart: false, needs: None, work }
    }

    /// Includes the step in `--fast`.
    pub(crate) fn fast(self) -> Self {
        Self { is_fast: true, ..self }
    }

    /// Marks a step whose commands name the chosen packages.
    pub(crate) fn narrowed(self) -> Self {
        Self { narrows: true, ..self }
    }

    /// Allows the step to run alongside the others.
    pub(crate) fn apart(self) -> Self {
        Self { is_apart: true, ..self }
    }

    /// Makes the step fail if the tool is missing, and name the command that installs it.
    pub(crate) fn needs(self, tool: Tool) -> Self {
        Self { needs: Some(tool), ..self }
    }

    /// Appends a `cargo` invocation to this step.
    ///
    /// # Panics
    /// Panics if the step's work is not a list of `cargo` invocations.
    pub(crate) fn then_cargo(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.invocations().push(Invocation::new(args));
        self
    }

    /// Sets an environment variable for the last invocation added.
    ///
    /// # Panics
    /// Panics if the step's work is not a list of `cargo` invocations.
    pub(crate) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        let last = self.invocations().last_mut();
        last.expect("a cargo step has at least one invocation").env.push((name, value.into()));
        self
    }

    fn invocations(&mut self) -> &mut Vec<Invocation> {
        match &mut self.work {
            Work::Cargo(invocations) => invocations,
            _ => panic!("step `{}` does not run its commands one after the other", self.name),
        }
    }

    /// Returns the step's commands as shell commands; none for an inspection.
    #[cfg(test)]
    pub(crate) fn lines(&self) -> Vec<String> {
        match &self.work {
            Work::Cargo(invocations) => invocations.iter().map(Invocation::shell_line).collect(),
            Work::Lanes(build, phases) => {
                let runs = phases.iter().flatten().flatten();
                std::iter::once(build).chain(runs).map(Invocation::shell_line).collect()
            }
            Work::Inspect(_) | Work::Partial(_) => Vec::new(),
        }
    }

    /// Runs the step in `root`. The error names the command that failed, and the command that repeats the step.
    pub(crate) fn run(&self, root: &Path) -> Result<Passed, String> {
        if let Some(tool) = self.needs.as_ref().filter(|tool| !tool.is_there()) {
            return Err(tool.missing());
        }
        match &self.work {
            Work::Inspect(check) => check(root).map(|()| Passed::Whole),
            Work::Partial(check) => check(root),
            Work::Cargo(invocations) => invocations.iter().try_for_each(|i| i.run(root)).map(|()| Passed::Whole),
            Work::Lanes(build, phases) => {
                build.run(root)?;
                phases.iter().try_for_each(|lanes| lanes::run(lanes, root)).map(|()| Passed::Whole)
            }
        }
    }
}

impl Invocation {
    pub(crate) fn new(args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { args: args.into_iter().map(Into::into).collect(), env: Vec::new() }
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// Returns the command, with its working folder.
    pub(crate) fn command(&self, root: &Path) -> Command {
        let mut command = Command::new(cargo());
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value))).current_dir(root);
        command
    }

    pub(crate) fn run(&self, root: &Path) -> Result<(), String> {
        run_as(&mut self.command(root), &self.shell_line())
    }

    /// Returns the invocation as a shell command, to repeat it by hand.
    pub(crate) fn shell_line(&self) -> String {
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

/// Returns the cargo that runs this program, so that every step uses the same toolchain.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// Prints a command as a shell command and runs it. If the command fails, the step fails.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let line = line.join(" ");
    run_as(command, &line)
}

fn run_as(command: &mut Command, line: &str) -> Result<(), String> {
    println!("   $ {line}");
    let status = command.status().map_err(|error| format!("could not start `{line}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{line}` ended with {status}")) }
}

/// Runs `steps` and stops at the first failure. Steps that may run apart run alongside the others. `chosen` are the
/// arguments of `cargo xtask test` that repeat a step with the same packages.
pub(crate) fn run_all(steps: Vec<Step>, chosen: &str, root: &Path) -> Result<(), String> {
    let (apart, steps): (Vec<Step>, Vec<Step>) = steps.into_iter().partition(|step| step.is_apart);
    if steps.is_empty() {
        return run_in_order(&apart, chosen, None, root);
    }
    let names: Vec<&str> = apart.iter().map(|step| step.name).collect();
    let companion = if names.is_empty() { None } else { Some(Companion::start(chosen, &names, root)?) };
    run_in_order(&steps, chosen, companion, root)
}

/// Runs `steps` in order, and prints for each its time and the processor time of its commands. Waits for the companion
/// at the end.
fn run_in_order(steps: &[Step], chosen: &str, mut companion: Option<Companion>, root: &Path) -> Result<(), String> {
    let began = Instant::now();
    let mut times = Vec::with_capacity(steps.len());
    let mut left_out = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        println!("== {}/{} {}: {}", index + 1, steps.len(), step.name, step.about);
        let (step_began, computed_before) = (Instant::now(), computed());
        let passed = step.run(root).map_err(|reason| {
            format!(
                "step `{name}` failed after {time}: {reason}\n      \
                 {left} step(s) not run; `cargo xtask test {chosen}{name}` repeats this one",
                name = step.name,
                time = shown(step_began.elapsed()),
                left = steps.len() - index - 1,
            )
        })?;
        let took = step_began.elapsed();
        let times_of_step = format!("{}, {} of a processor", shown(took), shown(computed() - computed_before));
        match passed {
            Passed::Whole => println!("   ok, {times_of_step}"),
            Passed::Without(reason) => {
                println!("   ok, {times_of_step}, but a part is left out: {reason}");
                left_out.push(format!("{}: {reason}", step.name));
            }
        }
        times.push((step.name, times_of_step));
        if let Some(companion) = &mut companion {
            companion.check()?;
        }
    }
    if let Some(companion) = companion {
        companion.finish()?;
    }
    println!("== all {} steps passed in {}", steps.len(), shown(began.elapsed()));
    for (name, times) in times {
        println!("   {name:<11} {times}");
    }
    for line in left_out {
        println!("   left out of {line}");
    }
    Ok(())
}

/// Returns the processor time of all commands that have ended; zero if the system does not report it.
fn computed() -> Duration {
    /// The kernel reports times to programs in this unit, on every machine.
    const TICKS_PER_SECOND: u64 = 100;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The numbers follow the name of the program, which is in parentheses and may contain spaces.
    let numbers = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
    let (in_programs, in_kernel) = (13, 14);
    let ticks: u64 = numbers
        .enumerate()
        .filter(|(at, _)| (in_programs..=in_kernel).contains(at))
        .filter_map(|(_, n)| n.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
}

/// Returns a time in the unit that suits its size.
fn shown(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 60.0 { format!("{seconds:.1} s") } else { format!("{:.1} min", seconds / 60.0) }
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
        let error = run_all(steps.into(), "ring ", Path::new(".")).unwrap_err();
        assert!(error.contains("`second` failed"), "{error}");
        assert!(error.contains("the reason"), "{error}");
        assert!(error.contains("1 step(s) not run; `cargo xtask test ring second`"), "{error}");
        assert_eq!(RUNS.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_step_that_lacks_a_part_lets_the_run_go_on() {
        fn partial(_: &Path) -> Result<Passed, String> {
            Ok(Passed::Without("a tool is missing".to_owned()))
        }
        run_all(vec![Step::partial("only", "", partial)], "", Path::new(".")).unwrap();
    }

    #[test]
    fn the_processor_time_of_a_command_counts_once_it_has_ended() {
        let before = computed();
        let status = Command::new("sh").args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]).status();
        assert!(status.unwrap().success());
        let used = computed() - before;
        assert!((Duration::from_millis(20)..Duration::from_secs(20)).contains(&used), "{used:?}");
    }

    #[test]
    fn a_failing_command_is_shown_in_a_repeatable_form() {
        let step = Step::cargo("x", "", ["no-such-subcommand"]).env("NAME", "value");
        let Err(error) = step.run(Path::new(".")) else {
            panic!("cargo has no such subcommand");
        };
        assert!(error.contains("NAME='value' cargo no-such-subcommand"), "{error}");
    }
}
