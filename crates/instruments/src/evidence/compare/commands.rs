//! Commands, run in rounds.
//!
//! Each round runs the first command and every command that is not decided, in a random order, so any drift of the
//! machine affects all commands alike. The runs of the first command and of another command
//! in one round form a pair. A command that is exactly as fast as the first one would win half of these pairs, whatever
//! effect the order has. The evidence is weighed against that hypothesis, pair by pair, so the test
//! may end after any pair.

use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};

use millstream_command::program::how;
use millstream_command::screen::line::Line;
use millstream_command::screen::look::{Look, Paint};
use millstream_command::screen::text;
use millstream_command::writable::{self, Way};
use millstream_csm::compare::Paired;
use millstream_csm::random::Random;

use super::args::CompareArgs;
use super::parameters::{Values, check_count, combinations, filled};
use super::report::{Against, Answer, Subject, interval};
use super::times::{Times, Took};
use super::{export, fresh_seed, words};
use crate::evidence::bar::Bar;
use crate::evidence::error::EvidenceError;
use crate::evidence::jobs::{Allowance, End, Interrupts};
use crate::evidence::number::short;
use crate::evidence::program::{Program, Runner};
use crate::evidence::{report, supervised};

/// The maximum number of rounds unless `--limit` says otherwise: without a maximum, two equally fast commands would run
/// forever.
const MAX_ROUNDS: u64 = 100_000;

/// A command and the times of its runs.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) name: String,
    pub(super) values: Values,
    line: OsString,
    pub(super) times: Times,
}

pub(super) fn compare_commands(args: &CompareArgs) -> Result<u8, EvidenceError> {
    let mut commands = commands(args)?;
    for path in [&args.around.export_json, &args.around.export_csv].into_iter().flatten() {
        writable::check(path, Way::Replace)?;
    }
    let interrupts = Interrupts::count()?;
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let around = Around::new(args, &commands)?;
    let programs: Vec<Program> = commands
        .iter()
        .map(|command| Program::new(&words(&command.line), args.running.timeout, false))
        .collect::<Result<_, _>>()?;
    let runners: Vec<Runner<'_>> = programs.iter().map(Program::runner).collect::<Result<_, _>>()?;
    let mut race = Race { args, runners, around: &around, interrupts: &interrupts, rounds: 0 };
    let (run, cleaned) = supervised(|| {
        let run = around.run(&around.setup, &interrupts).and_then(|_| race.run(&mut commands, seed));
        (run, around.run(&around.cleanup, &Interrupts::none()))
    });
    let (others, end) = run?;
    cleaned?;
    if let Some(path) = &args.around.export_json {
        report::replace(path, &export::json(&commands))?;
    }
    if let Some(path) = &args.around.export_csv {
        report::replace(path, &export::csv(&commands))?;
    }
    let reason = match end {
        End::Time => "the time ran out",
        End::Interrupted | End::Abandoned => "it was interrupted",
        End::Limit | End::Enough => "the limit was reached",
    };
    let status = |paired: &Paired| paired.status().map_err(EvidenceError::Question);
    let others = others.iter().map(|paired| Ok(Against::pairs(status(paired)?)));
    Answer {
        args,
        others: others.collect::<Result<_, EvidenceError>>()?,
        subjects: commands.into_iter().map(Subject::command).collect(),
        of: "pairs of runs",
        condition: "",
        reason,
        seed: Some(seed),
    }
    .tell()
}

/// Returns the commands of the command line, one for each of the parameters' values.
fn commands(args: &CompareArgs) -> Result<Vec<Command>, EvidenceError> {
    let combinations = combinations(&args.around)?;
    let lines =
        combinations.iter().flat_map(|values| args.subjects.iter().map(move |line| (filled(line, values), values)));
    let mut commands: Vec<Command> = lines
        .map(|(line, values)| Command {
            name: line.display().to_string(),
            values: values.clone(),
            line,
            times: Times::default(),
        })
        .collect();
    check_count(commands.len())?;
    if commands.len() < 2 {
        return Err(EvidenceError::usage(
            "expected two commands or more, found one; give another, or a --parameter-list",
        ));
    }
    let names = &args.around.command_name;
    if !names.is_empty() && names.len() != commands.len() {
        let (found, expected) = (names.len(), commands.len());
        return Err(EvidenceError::usage(format!(
            "expected a --command-name for each of {expected} commands, found {found}"
        )));
    }
    for (command, name) in commands.iter_mut().zip(names) {
        command.name.clone_from(name);
    }
    Ok(commands)
}

/// The commands that run before, between and after the measured ones.
struct Around {
    setup: Vec<(&'static str, Program)>,
    prepare: Vec<(&'static str, Program)>,
    cleanup: Vec<(&'static str, Program)>,
}

impl Around {
    fn new(args: &CompareArgs, commands: &[Command]) -> Result<Self, EvidenceError> {
        let program = |option, line: &OsStr| Ok((option, Program::new(&words(line), None, false)?));
        let each = |option, line: &Option<OsString>| -> Result<Vec<_>, EvidenceError> {
            let Some(line) = line else { return Ok(Vec::new()) };
            commands.iter().map(|command| program(option, &filled(line, &command.values))).collect()
        };
        let once = |option, line: &Option<OsString>| -> Result<Vec<_>, EvidenceError> {
            let Some(line) = line else { return Ok(Vec::new()) };
            let mut lines: Vec<OsString> = commands.iter().map(|command| filled(line, &command.values)).collect();
            lines.dedup();
            lines.iter().map(|line| program(option, line)).collect()
        };
        Ok(Around {
            setup: once("--setup", &args.around.setup)?,
            prepare: each("--prepare", &args.around.prepare)?,
            cleanup: once("--cleanup", &args.around.cleanup)?,
        })
    }

    /// Runs these programs one after the other. Returns `false` if one of them was stopped.
    fn run(&self, programs: &[(&'static str, Program)], interrupts: &Interrupts) -> Result<bool, EvidenceError> {
        for (option, program) in programs {
            let Some(run) = program.runner()?.run(0, interrupts.unwanted())? else { return Ok(false) };
            match run.status {
                Some(status) if status.success() => {}
                Some(status) => {
                    let problem = format!("expected it to exit with status 0, but it {}{}", how(status), run.complaint);
                    return Err(EvidenceError::Data { place: format!("{option} `{}`", program.line()), problem });
                }
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// The rounds.
struct Race<'a> {
    args: &'a CompareArgs,
    runners: Vec<Runner<'a>>,
    around: &'a Around,
    interrupts: &'a Interrupts,
    rounds: u64,
}

impl Race<'_> {
    /// Runs rounds until everything is decided or a limit is reached. Returns the comparisons of the other commands with
    /// the first.
    fn run(&mut self, commands: &mut [Command], seed: u64) -> Result<(Vec<Paired>, End), EvidenceError> {
        let error = self.args.error / (commands.len() - 1) as f64;
        let mut others: Vec<Paired> =
            (1..commands.len()).map(|_| super::paired(error, self.args.at_most_slower)).collect::<Result<_, _>>()?;
        let mut active: Vec<usize> = (0..commands.len()).collect();
        for _ in 0..self.args.around.warmup {
            for &which in &active {
                if self.take(which)?.is_none() {
                    return Ok((others, End::Abandoned));
                }
            }
        }
        let allowance = Allowance {
            runs: self.args.running.limit.unwrap_or(MAX_ROUNDS),
            until: self.args.running.time.map(|time| Instant::now() + time),
            jobs: 1,
            first: 1,
        };
        let mut random = Random::seeded(seed);
        let mut bar = Bar::open(self.args.quiet);
        let end = loop {
            if let Some(end) = self.interrupts.stop(&allowance, self.rounds) {
                break end;
            }
            random.shuffle(&mut active);
            let mut took = vec![None; commands.len()];
            for &which in &active {
                took[which] = self.take(which)?;
                if took[which].is_none() {
                    break;
                }
            }
            if active.iter().any(|&which| took[which].is_none()) {
                break End::Abandoned;
            }
            self.rounds += 1;
            for (command, took) in commands.iter_mut().zip(&took) {
                took.iter().for_each(|took| command.times.add(took));
            }
            let first = took[0].map_or(0.0, |took| took.wall.as_secs_f64());
            let mut decided = Vec::new();
            for &which in active.iter().filter(|which| **which != 0) {
                let time = took[which].map_or(0.0, |took| took.wall.as_secs_f64());
                let verdict = others[which - 1].observe(first, time);
                let value = |source| EvidenceError::Value { place: "the times".to_owned(), source };
                if verdict.map_err(value)?.is_some() {
                    decided.push(which);
                }
            }
            active.retain(|which| !decided.contains(which));
            if active.len() < 2 {
                break End::Enough;
            }
            let shown = active.iter().copied().filter(|which| *which != 0).min().unwrap_or(1);
            bar.show(|clock, look| vec![progress(&others[shown - 1], &super::letter(shown), clock, look)]);
        };
        bar.clear();
        Ok((others, end))
    }

    /// Runs a command once; returns `None` if it was stopped because of an interrupt.
    fn take(&self, which: usize) -> Result<Option<Took>, EvidenceError> {
        let prepare = if self.around.prepare.is_empty() { &[][..] } else { &self.around.prepare[which..=which] };
        if !self.around.run(prepare, self.interrupts)? {
            return Ok(None);
        }
        let runner = &self.runners[which];
        let before = processor_times();
        let Some(run) = runner.run(self.rounds + 1, self.interrupts.unwanted())? else { return Ok(None) };
        let after = processor_times();
        let failed = |problem: String| EvidenceError::Data { place: runner.program().line(), problem };
        let Some(status) = run.status else {
            return Err(failed(format!("expected it to end within --timeout, but it was stopped{}", run.complaint)));
        };
        if !status.success() && !self.args.around.ignore_failure {
            let problem = format!(
                "expected it to exit with status 0, but it {}{}; to count such runs, add --ignore-failure",
                how(status),
                run.complaint
            );
            return Err(failed(problem));
        }
        Ok(Some(Took {
            wall: run.took,
            user: after.0.saturating_sub(before.0),
            system: after.1.saturating_sub(before.1),
            status: status.code(),
        }))
    }
}

/// Returns the processor time of all children that have ended, and of their children: user and system.
fn processor_times() -> (Duration, Duration) {
    // SAFETY: a `rusage` of zeros is valid, and the call writes to nothing else.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.max(0) as u64) + Duration::from_micros(time.tv_usec.max(0) as u64)
    };
    (time(usage.ru_utime), time(usage.ru_stime))
}

fn progress(paired: &Paired, letter: &str, clock: Duration, look: Look) -> String {
    let mut line = Line::new(look.columns, look);
    match paired.status() {
        Ok(status) => {
            line.part(Some(Paint::Strong), &text::counted(status.pairs, "pair"));
            if let Some(ratio) = status.ratio {
                line.part(None, &format!("{letter}/A {}", short(ratio)));
            }
            line.part(None, &format!("in {}", interval(&status)));
        }
        Err(error) => drop(line.part(None, &error.to_string())),
    }
    line.part(Some(Paint::Faint), &text::clock(clock.as_nanos() as u64));
    line.done()
}
