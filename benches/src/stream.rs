//! Streams: chains are compared with loops, forks and joins with channels, and text programs with shell commands.
//!
//! - *a chain*: map, filter and windows of numbers, ending in a sum; the peer is a handwritten loop with the same sum;
//! - *a fork*: the differences of neighbours. The peers have a bounded channel for each branch, with a thread for each
//!   branch or for the source alone;
//! - *lines*, *csv* and *json*: a sum over a file. The peers are shell commands, whose figures include a millisecond or
//!   two for their start. Commands that are not installed are left out.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use crossbeam_channel::bounded;
use millstream_stream::Program;
use millstream_stream::text::{Inputs, parse};

use crate::args::Args;
use crate::compare::{Competitor, Role, alternate};
use crate::error::Error;

/// The number of values of a chain. A fork has fewer values, which cost more each.
const VALUES: u64 = 10_000_000;
const FORKED: u64 = 1_000_000;
/// The lines of a file.
const LINES: u64 = 1_000_000;
const QUICK: u64 = 10_000;
/// The capacity of a channel.
const CHANNEL: usize = 1024;

/// Computes a sum from the numbers below `n`.
type Sum = fn(n: u64) -> Result<u64, Error>;

/// Awk computes with floats, so all numbers are small.
const AWK_CHAIN: &str = "BEGIN { for (n = 0; n < N; n++) { x = n * 7 % 1013; if (x % 2) { w[f++] = x; \
    if (f == 3) { s += w[0] + w[1] + w[2]; w[0] = w[2]; f = 1 } } } printf \"%d\", s }";

const CHAIN: [(&str, Role, Sum); 3] = [
    ("millstream", Role::Ours, chain),
    ("a loop", Role::Peer, |n| Ok(chain_by_hand(n))),
    ("awk", Role::Peer, |n| awk(&["-v", &format!("N={n}"), AWK_CHAIN])),
];

const FORK: [(&str, Role, Sum); 4] = [
    ("millstream", Role::Ours, fork),
    ("crossbeam, a thread per branch", Role::Peer, |n| Ok(fork_by_channels(n, true))),
    ("crossbeam, a thread for the source", Role::Peer, |n| Ok(fork_by_channels(n, false))),
    ("a loop", Role::Reference, |n| Ok((1..n).map(|next| black_box(next) - (next - 1)).sum())),
];

/// A form of file, with our program and those of the peers.
struct Form {
    name: &'static str,
    line: fn(&mut String, u64, u64),
    head: &'static str,
    program: &'static str,
    others: &'static [&'static [&'static str]],
}

const FORMS: [Form; 3] = [
    Form {
        name: "lines",
        line: |file, _, size| _ = writeln!(file, "{size}"),
        head: "",
        program: "reduce(lines(), 0, acc + number(it))",
        others: &[&["awk", "{ s += $1 } END { printf \"%d\", s }"]],
    },
    Form {
        name: "csv",
        line: |file, n, size| _ = writeln!(file, "file{n},{size}"),
        head: "name,size\n",
        program: "reduce(csv(), 0, acc + number(it.size))",
        others: &[
            &["awk", "-F,", "NR > 1 { s += $2 } END { printf \"%d\", s }"],
            &["mlr", "--icsv", "--onidx", "stats1", "-a", "sum", "-f", "size"],
        ],
    },
    Form {
        name: "json",
        line: |file, n, size| _ = writeln!(file, "{{\"name\":\"file{n}\",\"size\":{size}}}"),
        head: "",
        program: "reduce(json(), 0, acc + it.size)",
        others: &[&["jq", "-n", "reduce inputs.size as $n (0; . + $n)"]],
    },
];

/// Runs all parts and prints nanoseconds per value.
///
/// # Errors
/// Fails when a competitor's sum differs from that of the handwritten loop, or when a file cannot be written.
pub fn run(args: &Args) -> Result<(), Error> {
    let of = |values: u64| if args.quick { QUICK } else { values };
    sums("a chain of map, filter and windows", args, of(VALUES), chain_by_hand(of(VALUES)), &CHAIN)?;
    sums("a fork whose branches join", args, of(FORKED), of(FORKED) - 1, &FORK)?;
    let folder = tempfile::tempdir().map_err(Error::at(&std::env::temp_dir()))?;
    for form in FORMS {
        files(&form, args, of(LINES), folder.path())?;
    }
    Ok(())
}

fn sums(title: &str, args: &Args, n: u64, expected: u64, rows: &[(&str, Role, Sum)]) -> Result<(), Error> {
    println!("## stream: {title}\n");
    let installed = rows.iter().filter(|(name, ..)| *name != "awk" || is_installed("awk"));
    let competitors = installed.map(|(name, role, sum)| per_value(name, *role, n, expected, move || sum(n)));
    println!("{}\n", alternate("ns per value", 1, args.rounds, competitors.collect())?.render());
    Ok(())
}

fn files(form: &Form, args: &Args, n: u64, folder: &Path) -> Result<(), Error> {
    println!("## stream: a sum over {}\n", form.name);
    let (path, mut content, mut expected) = (folder.join(form.name), form.head.to_owned(), 0);
    for n in 0..n {
        let size = n * 7919 % 100_003;
        (form.line)(&mut content, n, size);
        expected += size;
    }
    std::fs::write(&path, content).map_err(Error::at(&path))?;
    let ours = || text(form.program, &path);
    let mut competitors = vec![per_value("millstream", Role::Ours, n, expected, ours)];
    for other in form.others.iter().filter(|other| is_installed(other[0])) {
        let sum = || output(Command::new(other[0]).args(&other[1..]).arg(&path));
        competitors.push(per_value(other[0], Role::Peer, n, expected, sum));
    }
    println!("{}\n", alternate("ns per value", 1, args.rounds, competitors)?.render());
    Ok(())
}

fn per_value<'a>(
    name: &str,
    role: Role,
    n: u64,
    expected: u64,
    sum: impl Fn() -> Result<u64, Error> + 'a,
) -> Competitor<'a> {
    Competitor::new(name, role, move || {
        let began = Instant::now();
        let found = sum()?;
        let nanoseconds = began.elapsed().as_nanos() as f64;
        if found == expected {
            Ok(nanoseconds / n as f64)
        } else {
            Err(Error::new(format!("the sum is {expected}, {found} came out")))
        }
    })
}

fn chain(n: u64) -> Result<u64, Error> {
    let mut sum = 0;
    let odd = Program::new().iter("x", 0..n).map(|n| n * 7 % 1013).filter(|x| x % 2 == 1);
    let sums = odd.array_windows::<3, 2>().map(|window| window.iter().sum::<u64>());
    sums.for_each(|window| sum += window).map_err(Error::refused)?;
    Ok(sum)
}

fn chain_by_hand(n: u64) -> u64 {
    let (mut sum, mut window, mut filled) = (0, [0; 3], 0);
    for x in (0..n).map(|n| n * 7 % 1013).filter(|x| x % 2 == 1) {
        window[filled] = x;
        filled += 1;
        if filled == 3 {
            sum += window.iter().sum::<u64>();
            window[0] = window[2];
            filled = 1;
        }
    }
    sum
}

fn fork(n: u64) -> Result<u64, Error> {
    let x = Program::new().iter("x", 0..n).share();
    let steps = x.skip(1).zip_with(&x, |next, this| next - this);
    let mut sum = 0;
    steps.run().map_err(Error::refused)?.for_each(|step| sum += step).map_err(Error::refused)?;
    Ok(sum)
}

/// Pairs the values of two bounded channels. The branch that skips the first value may have its own thread and a
/// further channel.
fn fork_by_channels(n: u64, has_thread: bool) -> u64 {
    let ((to_skipped, skipped), (to_all, all)) = (bounded(CHANNEL), bounded(CHANNEL));
    thread::scope(|scope| {
        scope.spawn(move || {
            for value in 0..n {
                // The join ends before the longer branch, whose receiver is then gone.
                let (Ok(()), Ok(())) = (to_skipped.send(value), to_all.send(value)) else { return };
            }
        });
        if !has_thread {
            return skipped.into_iter().skip(1).zip(all).map(|(next, this)| next - this).sum();
        }
        let (to_join, joined) = bounded(CHANNEL);
        scope.spawn(move || skipped.into_iter().skip(1).try_for_each(|value| to_join.send(value)));
        joined.into_iter().zip(all).map(|(next, this)| next - this).sum()
    })
}

/// The single value that a text program computes from a file.
fn text(program: &str, file: &Path) -> Result<u64, Error> {
    let program = parse(program, &Inputs::files(vec![file.to_owned()])).map_err(Error::refused)?;
    let mut running = program.run().map_err(Error::refused)?;
    let value = running.next().map_err(Error::refused)?.map(ToString::to_string);
    number(&value.unwrap_or_default())
}

fn awk(args: &[&str]) -> Result<u64, Error> {
    output(Command::new("awk").args(args))
}

/// The number that a command prints.
fn output(command: &mut Command) -> Result<u64, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(Error::at(Path::new(&program)))?;
    number(&String::from_utf8_lossy(&output.stdout))
}

fn number(text: &str) -> Result<u64, Error> {
    text.trim().parse().map_err(|_| Error::new(format!("expected a number, found `{}`", text.trim())))
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdin(Stdio::null()).output().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_competitor_computes_the_same_sum() {
        for n in [1, 2, 3, 1000, 5000] {
            assert_eq!(chain(n).unwrap(), chain_by_hand(n));
            for sum in [fork(n).unwrap(), fork_by_channels(n, true), fork_by_channels(n, false)] {
                assert_eq!(sum, n - 1);
            }
        }
    }
}
