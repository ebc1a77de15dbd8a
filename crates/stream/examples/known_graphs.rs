//! Runs eight graphs that fork and join, each in four systems. For each system, prints whether the graph runs, hangs, grows or is
//! refused.
//!
//! - **pipes**: `tee` into two named pipes, a command for each branch, and `paste`;
//! - **itertools.tee**: Python's generators; their memory is measured for a short and a long input;
//! - **channels**: bounded channels of the standard library, with a thread for each branch;
//! - **millstream**: this crate.
//!
//! Each trial has a time limit. A system that is not installed is left out. The verdicts apply to this input only: with a shorter
//! input, which fits into the pipes or channels, the same graph would not hang.
//!
//! `cargo run --release -p millstream-stream --example known_graphs`

use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::thread;
use std::time::Duration;

use millstream_stream::check::CheckError;
use millstream_stream::{Error, Program, Stream};

/// The number of values of the source.
const VALUES: u64 = 200_000;
/// The capacity of a channel, in values.
const CHANNEL: usize = 1024;
/// The time after which a trial counts as hanging, in seconds.
const LIMIT: u64 = 5;

type Branches<T> = [T; 2];
type Values = Box<dyn Iterator<Item = u64>>;

/// A graph in which two branches are zipped, written for each system.
struct Known {
    name: &'static str,
    /// The number of times that the fork and its join are repeated in a chain.
    links: usize,
    shell: Branches<&'static str>,
    /// Expressions in Python; `x` is the iterator.
    python: Branches<&'static str>,
    channels: Branches<fn(Values) -> Values>,
    stream: fn(&Stream<u64>) -> Branches<Stream<u64>>,
}

fn known() -> [Known; 8] {
    let all: fn(Values) -> Values = |x| x;
    [
        Known {
            name: "every other value, and every value",
            links: 1,
            shell: ["awk 'NR % 2 == 1'", "cat"],
            python: ["itertools.islice(x, 0, None, 2)", "x"],
            channels: [|x| Box::new(x.step_by(2)), all],
            stream: |x| [x.every(2), x.clone()],
        },
        Known {
            name: "all but the first five, and all",
            links: 1,
            shell: ["tail -n +6", "cat"],
            python: ["itertools.islice(x, 5, None)", "x"],
            channels: [|x| Box::new(x.skip(5)), all],
            stream: |x| [x.skip(5), x.clone()],
        },
        Known {
            name: "a filter, and all",
            links: 1,
            shell: ["awk '$1 % 1000 == 999'", "cat"],
            python: ["(v for v in x if v % 1000 == 999)", "x"],
            channels: [|x| Box::new(x.filter(|n| n % 1000 == 999)), all],
            stream: |x| [x.filter(|n| n % 1000 == 999), x.clone()],
        },
        Known {
            name: "each value twice, and all",
            links: 1,
            shell: ["awk '{ print; print }'", "cat"],
            python: ["(v for v in x for _ in range(2))", "x"],
            channels: [|x| Box::new(x.flat_map(|n| [n, n])), all],
            stream: |x| [x.repeat(2), x.clone()],
        },
        Known {
            name: "the sum, and all",
            links: 1,
            shell: ["awk '{ s += $1 } END { print s }'", "cat"],
            python: ["(sum(y) for y in [x])", "x"],
            channels: [|x| Box::new(std::iter::once_with(|| x.sum())), all],
            stream: |x| [x.reduce(0, |sum, n| *sum += n), x.clone()],
        },
        Known {
            name: "the sums of two consumers",
            links: 1,
            shell: ["awk '{ s += $1 } END { print s }'", "awk '{ s += $1 * $1 } END { print s }'"],
            python: ["(sum(y) for y in [x])", "(sum(v * v for v in y) for y in [x])"],
            channels: [
                |x| Box::new(std::iter::once_with(|| x.sum())),
                |x| Box::new(std::iter::once_with(|| x.map(|n| n * n).sum())),
            ],
            stream: |x| [x.reduce(0, |sum, n| *sum += n), x.reduce(0, |sum, n| *sum += n * n)],
        },
        Known {
            name: "the last of three, three times, and all",
            links: 1,
            shell: ["awk 'NR % 3 == 0 { print; print; print }'", "cat"],
            python: ["(v for v in itertools.islice(x, 2, None, 3) for _ in range(3))", "x"],
            channels: [|x| Box::new(x.skip(2).step_by(3).flat_map(|n| [n, n, n])), all],
            stream: |x| [x.every_from(3, 2).repeat(3), x.clone()],
        },
        Known {
            name: "three forks in a row, each one value apart",
            links: 3,
            shell: ["tail -n +2", "cat"],
            python: ["itertools.islice(x, 1, None)", "x"],
            channels: [|x| Box::new(x.skip(1)), all],
            stream: |x| [x.skip(1), x.clone()],
        },
    ]
}

fn main() {
    println!("{:<44}{:<10}{:<17}{:<11}millstream", "", "pipes", "itertools.tee", "channels");
    for graph in known() {
        let (pipes, python) = (pipes(&graph), python(&graph));
        println!("{:<44}{pipes:<10}{python:<17}{:<11}{}", graph.name, channels(&graph), millstream(&graph));
    }
}

/// Runs a program within the time limit, and returns what it printed, or a verdict if it fails.
fn trial(program: &str, arguments: &[&str], folder: &std::path::Path) -> Result<String, &'static str> {
    let limit = LIMIT.to_string();
    let output = Command::new("timeout")
        .args(["--kill-after=1", &limit, program])
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|_| "-")?;
    match output.status.code() {
        Some(0) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        // These are the exit codes if `timeout` has ended or killed the program.
        Some(124 | 137) | None => Err("hangs"),
        Some(126 | 127) => Err("-"),
        Some(_) => Err("fails"),
    }
}

fn pipes(graph: &Known) -> &'static str {
    let Ok(folder) = tempfile::tempdir() else { return "-" };
    let [first, second] = graph.shell;
    let link =
        format!("link() {{ mkfifo a$1 b$1; tee a$1 > b$1 & paste <({first} < a$1) <({second} < b$1) | cut -f 1; }}");
    let links: String = (0..graph.links).map(|link| format!(" | link {link}")).collect();
    let script = format!("{link}; seq 0 {}{links} > /dev/null", VALUES - 1);
    trial("bash", &["-c", &script], folder.path()).map_or_else(|verdict| verdict, |_| "runs")
}

fn python(graph: &Known) -> &'static str {
    let [first, second] = graph.python;
    let (links, large) = (graph.links, VALUES);
    let script = format!(
        "
import itertools, tracemalloc

def link(x):
    a, b = itertools.tee(x)
    first = (lambda x: {first})(a)
    second = (lambda x: {second})(b)
    return (p for p, q in zip(first, second))

def peak(values):
    tracemalloc.start()
    x = iter(range(values))
    for _ in range({links}):
        x = link(x)
    for _ in x:
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak

print('grows' if peak({large}) > 1000000 + peak({large} // 20) else 'runs')
"
    );
    match trial("python3", &["-c", &script], std::path::Path::new("/")) {
        Ok(said) if said.trim() == "grows" => "grows",
        Ok(_) => "runs",
        Err(verdict) => verdict,
    }
}

/// Starts the threads of a fork, its branches and their join, and returns the joined values.
fn link(x: Receiver<u64>, [first, second]: Branches<fn(Values) -> Values>) -> Receiver<u64> {
    let ((a, from_a), (b, from_b)) = (sync_channel(CHANNEL), sync_channel(CHANNEL));
    thread::spawn(move || {
        // A branch that has ended accepts no more values; the other branch continues.
        for value in x {
            let [to_a, to_b] = [a.send(value), b.send(value)];
            if to_a.is_err() && to_b.is_err() {
                return;
            }
        }
    });
    let branch = |from: Receiver<u64>, pass: fn(Values) -> Values| {
        let (to, out) = sync_channel(CHANNEL);
        thread::spawn(move || pass(Box::new(from.into_iter())).try_for_each(|value| to.send(value)));
        out
    };
    let (first, second) = (branch(from_a, first), branch(from_b, second));
    let (to, out) = sync_channel(CHANNEL);
    thread::spawn(move || first.into_iter().zip(second).try_for_each(|(value, _)| to.send(value)));
    out
}

fn channels(graph: &Known) -> &'static str {
    let (done, ended) = channel();
    let (branches, links) = (graph.channels, graph.links);
    // If a trial hangs, its threads exist until the program ends.
    thread::spawn(move || {
        let (to, mut x) = sync_channel(CHANNEL);
        thread::spawn(move || (0..VALUES).try_for_each(|value| to.send(value)));
        for _ in 0..links {
            x = link(x, branches);
        }
        done.send(x.into_iter().count())
    });
    match ended.recv_timeout(Duration::from_secs(LIMIT)) {
        Ok(_) => "runs",
        Err(RecvTimeoutError::Timeout) => "hangs",
        Err(RecvTimeoutError::Disconnected) => "fails",
    }
}

fn millstream(graph: &Known) -> String {
    let mut x = Program::new().iter("x", 0..VALUES).share();
    for _ in 0..graph.links {
        let [first, second] = (graph.stream)(&x);
        x = first.zip_with(&second, |value, _| *value);
    }
    match x.run().map(|running| {
        let most = running.proof().edges().iter().map(|bound| bound.values).max().unwrap_or(0);
        (most, running.for_each(|_| {}))
    }) {
        Ok((most, Ok(_))) => format!("runs, with room for {most}"),
        Err(Error::Check(CheckError::Refused(_))) => "refuses".to_owned(),
        Ok((_, Err(error))) => error.to_string(),
        Err(error) => error.to_string(),
    }
}
