//! Measures the executor, and compares it with hand-written loops and command-line tools.
//!
//! | part | ours | peer |
//! | --- | --- | --- |
//! | `fused` | map, filter and a window of numbers | a hand-written loop |
//! | `files` | text programs over a file of lines, of CSV and of JSON | `awk`, `qsv`, `mlr`, `jq`, as far as installed |
//! | `spill` | values through a spill | `dd` to the same folder |
//! | `check` | the check of 1,000 operators | |
//! | `memory` | the peak of the resident memory for 10^4 to 10^7 values | |
//!
//! Runs alternate, and medians are printed. `memory 9` goes up to 10^9 values.
//!
//! `cargo run --release -p millstream-stream --example measure [PART [ARGUMENT]]`

use std::collections::VecDeque;
use std::error::Error;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use millstream_stream::text::{Inputs, parse};
use millstream_stream::{Chain, Fused, Program, Stream};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The number of runs of each side.
const RUNS: usize = 7;
/// The number of values of the fused loop.
const VALUES: u64 = 10_000_000;
/// The number of lines in a file.
const LINES: u64 = 2_000_000;
/// The number of bytes to spill, and the sizes of the values.
const SPILLED: u64 = 256 << 20;
const SIZES: [usize; 3] = [64, 512, 4096];

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => {
            fused(VALUES);
            files()?;
            spill()?;
            check()?;
            memory(7)
        }
        ["fused"] => {
            fused(VALUES);
            Ok(())
        }
        // Runs one side with few values, for a profiler that counts instructions.
        ["ours", values] => {
            black_box(ours(values.parse()?));
            Ok(())
        }
        ["loop", values] => {
            black_box(by_hand(values.parse()?));
            Ok(())
        }
        ["fork", values] => {
            black_box(fork(values.parse()?));
            Ok(())
        }
        ["filtered", values] => {
            black_box(filtered(values.parse()?));
            Ok(())
        }
        ["held", values] => {
            black_box(held(values.parse()?));
            Ok(())
        }
        ["merged", values] => {
            black_box(merged(values.parse()?));
            Ok(())
        }
        ["spilled", values] => {
            let folder = tempfile::tempdir_in(std::env::current_dir()?)?;
            spilled(values.parse()?, SIZES[0], folder.path());
            Ok(())
        }
        ["text", text, file] => {
            black_box(program(text, Path::new(file))?);
            Ok(())
        }
        ["files"] => files(),
        ["spill"] => spill(),
        ["check"] => check(),
        ["memory"] => memory(7),
        ["memory", power] => memory(power.parse()?),
        ["resident", values] => {
            black_box(ours(values.parse()?));
            println!("{}", peak_kb()?);
            Ok(())
        }
        _ => Err("expected a part: fused, files, spill, check or memory".into()),
    }
}

/// Returns the medians of two sides whose runs alternate.
fn alternate(mut first: impl FnMut(), mut second: impl FnMut()) -> [Duration; 2] {
    let mut times = [Vec::new(), Vec::new()];
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    for _ in 0..RUNS {
        times[0].push(time(&mut first));
        times[1].push(time(&mut second));
    }
    times.map(|mut times| {
        times.sort_unstable();
        times[RUNS / 2]
    })
}

/// Returns a chain that scales numbers and keeps the odd results.
fn odd(values: u64) -> Chain<impl Fused<Value = u64>> {
    let x = Program::new().iter("x", 0..values);
    x.map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 7).filter(|n| n % 2 == 1)
}

fn sum(window: &[u64]) -> u64 {
    window.iter().fold(0, |sum, n| sum.wrapping_add(*n))
}

/// Sums windows of three values. Each window begins two values after the previous one.
fn ours(values: u64) -> u64 {
    total(odd(values).array_windows::<3, 2>().map(|window| sum(window)))
}

/// Does the same with windows whose size the compiler does not know.
fn ours_of_any_size(values: u64) -> u64 {
    let (size, step) = black_box((3, 2));
    total(odd(values).windows(size, step).map(|window| sum(window)))
}

fn total(sums: Chain<impl Fused<Value = u64>>) -> u64 {
    let mut sum = 0_u64;
    sums.for_each(|value| sum = sum.wrapping_add(*value)).expect("it runs");
    sum
}

fn by_hand(values: u64) -> u64 {
    let (mut sum, mut window, mut filled) = (0_u64, [0_u64; 3], 0);
    for n in 0..values {
        let n = black_box(n).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 7;
        if n % 2 != 1 {
            continue;
        }
        window[filled] = n;
        filled += 1;
        if filled == 3 {
            sum = sum.wrapping_add(window.iter().fold(0, |sum: u64, n| sum.wrapping_add(*n)));
            window[0] = window[2];
            filled = 1;
        }
    }
    sum
}

fn by_hand_of_any_size(values: u64) -> u64 {
    let (size, step) = black_box((3, 2));
    let (mut sum, mut window) = (0_u64, VecDeque::with_capacity(size));
    for n in 0..values {
        let n = black_box(n).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 7;
        if n % 2 != 1 {
            continue;
        }
        if window.len() == size {
            window.drain(..step);
        }
        window.push_back(n);
        if window.len() == size {
            sum = sum.wrapping_add(window.iter().fold(0, |sum: u64, n| sum.wrapping_add(*n)));
        }
    }
    sum
}

/// Sums the differences of neighbours: a fork whose branches join again.
fn fork(values: u64) -> u64 {
    let x = Program::new().iter("x", 0..values).share();
    summed(&x.skip(1).zip_with(&x, |next, this| next - this))
}

/// Sums the differences of neighbours among the values that pass a filter.
fn filtered(values: u64) -> u64 {
    let x = Program::new().iter("x", 0..values).share().filter(|n| n % 4 != 0);
    summed(&x.skip(1).zip_with(&x, |next, this| next - this))
}

/// Sums the differences between each value and the last one that passed a filter.
fn held(values: u64) -> u64 {
    let x = Program::new().iter("x", 0..values).share();
    summed(&x.filter(|n| n % 4 == 0).hold(&x, 0).zip_with(&x, |held, this| this - held))
}

/// Merges the values that pass a filter with the same values two positions later, and sums them.
fn merged(values: u64) -> u64 {
    let x = Program::new().iter("x", 0..values).share().filter(|n| n % 4 != 0);
    summed(&x.skip(2).merge(&x))
}

fn summed(stream: &Stream<u64>) -> u64 {
    let mut sum = 0_u64;
    stream.run().expect("it has bounds").for_each(|value| sum = sum.wrapping_add(*value)).expect("it runs");
    sum
}

fn fused(values: u64) {
    fused_beside_a_loop("windows of 3", values, ours, by_hand);
    fused_beside_a_loop("windows of any size", values, ours_of_any_size, by_hand_of_any_size);
}

fn fused_beside_a_loop(name: &str, values: u64, ours: fn(u64) -> u64, by_hand: fn(u64) -> u64) {
    assert_eq!(ours(1000), by_hand(1000));
    let [stream, hand] = alternate(|| _ = black_box(ours(values)), || _ = black_box(by_hand(values)));
    let each = |time: Duration| time.as_secs_f64() * 1e9 / values as f64;
    println!(
        "fused, {name}: {:.2} ns a value, a loop {:.2} ns: {:.2} times the loop's speed",
        each(stream),
        each(hand),
        each(hand) / each(stream)
    );
}

/// Runs a text program over a file, and returns its output.
fn program(text: &str, file: &Path) -> Outcome<Vec<u8>> {
    let mut running = parse(text, &Inputs::files(vec![file.to_owned()]))?.run()?;
    let mut out = Vec::new();
    while let Some(value) = running.next()? {
        value.print(&mut out);
        out.push(b'\n');
    }
    Ok(out)
}

fn run(program: &[&str], file: &Path) -> Outcome<Vec<u8>> {
    let output = Command::new(program[0]).args(&program[1..]).arg(file).stdin(Stdio::null()).output()?;
    if output.status.success() { Ok(output.stdout) } else { Err(format!("{}: {}", program[0], output.status).into()) }
}

fn files() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let [lines, csv, json] = ["x.txt", "x.csv", "x.jsonl"].map(|name| folder.path().join(name));
    let mut writers = Vec::new();
    for path in [&lines, &csv, &json] {
        writers.push(BufWriter::new(File::create(path)?));
    }
    writeln!(writers[1], "name,size")?;
    for n in 0..LINES {
        let size = n.wrapping_mul(7919) % 100_003;
        writeln!(writers[0], "{size}")?;
        writeln!(writers[1], "file{n},{size}")?;
        writeln!(writers[2], "{{\"name\":\"file{n}\",\"size\":{size}}}")?;
    }
    for mut writer in writers {
        writer.flush()?;
    }
    let trials: [(&Path, &str, &[&[&str]]); 4] = [
        (&lines, "reduce(lines(), 0, acc + number(it))", &[&["awk", "{ s += $1 } END { print s }"]]),
        (&lines, "filter(lines(), contains(it, \"99\"))", &[&["awk", "/99/"], &["grep", "99"]]),
        (
            &csv,
            "reduce(csv(), 0, acc + number(it.size))",
            &[
                &["awk", "-F,", "NR > 1 { s += $2 } END { print s }"],
                &["mlr", "--icsv", "--onidx", "stats1", "-a", "sum", "-f", "size"],
            ],
        ),
        (&json, "reduce(json(), 0, acc + it.size)", &[&["jq", "-n", "reduce inputs.size as $n (0; . + $n)"]]),
    ];
    for (file, text, others) in trials {
        for other in others {
            if run(other, file).is_err() {
                println!("files: {} is not installed", other[0]);
                continue;
            }
            let [stream, theirs] = alternate(
                || drop(black_box(program(text, file).expect("it runs"))),
                || drop(black_box(run(other, file).expect("it has run before"))),
            );
            let times = theirs.as_secs_f64() / stream.as_secs_f64();
            println!("files: {text}: {stream:.1?}; {} {theirs:.1?}: {times:.2} times its speed", other[0]);
        }
    }
    Ok(())
}

/// Spills the values of a stream while their sum is computed.
fn spilled(values: u64, size: usize, folder: &Path) {
    let mut read = 0;
    let x = Program::new().read("x", move |value: &mut Vec<u8>| -> Result<bool, std::convert::Infallible> {
        value.resize(size, 0);
        value[0] = read as u8;
        read += 1;
        Ok(read <= values)
    });
    let x = x.share();
    // The sum has its value at the end of the stream, and all values wait for it.
    let sum = x.reduce(0, |sum, value| *sum += value.len());
    let pair = sum.zip(&x.spill(folder)).run().expect("a spill has bounds").values().next();
    assert_eq!(pair.expect("one").expect("it runs"), (values as usize * size, vec![0; size]));
}

fn spill() -> Outcome<()> {
    let folder = tempfile::tempdir_in(std::env::current_dir()?)?;
    let copied = folder.path().join("copied");
    let blocks = format!("count={}", SPILLED >> 20);
    let input = "if=/dev/zero";
    let output = format!("of={}", copied.display());
    let dd = || {
        let status = Command::new("dd").args([input, &output, "bs=1M", &blocks]).stderr(Stdio::null()).status();
        assert!(status.is_ok_and(|status| status.success()));
        let _ = fs::remove_file(&copied);
    };
    for size in SIZES {
        let [ours, theirs] = alternate(|| spilled(SPILLED / size as u64, size, folder.path()), dd);
        let rate = |time: Duration| (SPILLED >> 20) as f64 / time.as_secs_f64();
        println!(
            "spill: values of {size} bytes {:.0} MiB/s, dd {:.0} MiB/s: {:.0} % of it",
            rate(ours),
            rate(theirs),
            100.0 * rate(ours) / rate(theirs)
        );
    }
    Ok(())
}

fn check() -> Outcome<()> {
    let mut x = Program::new().iter("x", 0..1_u64).share();
    for _ in 0..333 {
        x = x.skip(1).map(|n| n % 7).zip_with(&x, |a, b| a ^ b);
    }
    let graph = x.graph();
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        black_box(millstream_stream::check::check(&graph)?);
        times.push(start.elapsed());
    }
    times.sort_unstable();
    println!("check: {} operators in {:.1?}", graph.nodes().len(), times[RUNS / 2]);
    Ok(())
}

/// Returns the peak of the resident memory, in kilobytes.
fn peak_kb() -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("the kernel states no peak")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

fn memory(power: u32) -> Outcome<()> {
    let program = std::env::current_exe()?;
    for power in 4..=power {
        let values = 10_u64.pow(power).to_string();
        let output = Command::new(&program).args(["resident", &values]).output()?;
        println!("memory: 10^{power} values, {} kB", String::from_utf8_lossy(&output.stdout).trim());
    }
    Ok(())
}
