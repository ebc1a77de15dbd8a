//! Measures the cost of splitting and gathering. Flows that split and gather a file of lines are compared with a flow
//! without these stages. Grouping by many keys is compared with other programs.
//!
//! ```sh
//! cargo build --release -p millstream-cli
//! cargo run --release -p millstream-cli --example split_gather -- 1000000
//! ```
//!
//! The argument is the number of lines (default 1,000,000). The lines have at most 100,000 keys. Run this on a quiet
//! machine. All files are in a temporary folder. The rows of a table are measured alternately, and each row has the
//! medians of several runs: elapsed time, processor time, and peak memory.
//!
//! # The equivalent pass
//! A flow that splits a file makes a unit of each line, and does some work on each unit. In the equivalent flow without
//! `split` and `gather`, the source yields one unit per line, and each unit gets the same work (`set`) and retires. (A
//! flow that reads the file as one unit would not do this work.) The flow with `gather` counts the units, or joins
//! their contents into one payload as large as the file.
//!
//! The other programs that group by keys read the same file and write the same counts. A program that is not installed
//! is omitted.

use std::error::Error;
use std::fs;
use std::io::{BufWriter, Write};
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// The number of runs for each row, after a run that warms the caches.
const RUNS: usize = 3;

const SET: &str = "[[stage]]\nname = \"set\"\nop = \"set\"\npayload = \"{line}!\"\n";

const SPLIT: &str = "[source]\nargs = true\n[[stage]]\nname = \"read\"\nop = \"read\"\n\
                     [[stage]]\nname = \"lines\"\nop = \"split\"\nby = \"lines\"\n";

const GATHER: &str = "[[stage]]\nname = \"gather\"\nop = \"gather\"\nby = \"parent\"\n";

const LINES: &str = "[source]\nlines = \"{input}\"\n";

const GROUP: &str = "[[stage]]\nname = \"key\"\nop = \"parse\"\nformat = \"regex\"\nexpression = '^(?<key>\\S+)'\n\
                     [[stage]]\nname = \"count\"\nop = \"gather\"\nby = \"{json.key}\"\nreduce = \"count\"\n\
                     [[stage]]\nname = \"list\"\nop = \"append\"\npath = \"counts\"\nline = \"{key} {count}\"\nfresh = \"always\"\n";

fn main() -> Result<(), Box<dyn Error>> {
    let lines: u64 = std::env::args().nth(1).map_or(Ok(1_000_000), |text| text.parse())?;
    let room = tempfile::tempdir()?;
    let room = room.path();
    input(room, lines)?;
    let flow = |name: &str, text: String, memory: &[&str]| -> Result<Contender, Box<dyn Error>> {
        fs::write(room.join(format!("{name}.toml")), text)?;
        let own = ["run".to_owned(), format!("{name}.toml"), "input".to_owned()];
        let options = ["--quiet", "--no-report"].iter().chain(memory).map(|option| (*option).to_owned());
        Ok(Contender { name: name.to_owned(), program: millstream()?, args: own.into_iter().chain(options).collect() })
    };
    let capped = ["--memory", "64MiB"];
    println!("{lines} lines");
    table(
        room,
        &[
            flow("units of the source", format!("{LINES}{SET}"), &capped)?,
            flow("split, gather: count", format!("{SPLIT}{SET}{GATHER}reduce = \"count\"\n"), &capped)?,
            flow("split, gather: all", format!("{SPLIT}{SET}{GATHER}after = \"\\n\"\n"), &capped)?,
        ],
    )?;
    println!("{lines} lines, {} keys", keys(lines));
    let shell = |name: &str, script: &str| Contender {
        name: name.to_owned(),
        program: "sh".into(),
        args: vec!["-c".to_owned(), script.to_owned()],
    };
    let peers = [
        ("awk", "awk '{ n[$1]++ } END { for (k in n) print k, n[k] }' input > counts"),
        ("gawk", "gawk '{ n[$1]++ } END { for (k in n) print k, n[k] }' input > counts"),
        ("sort", "cut -d' ' -f1 input | LC_ALL=C sort | uniq -c > counts"),
        ("mlr", "mlr --inidx --ifs ' ' --onidx count -g 1 input > counts"),
    ];
    let is_installed = |program: &str| {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).stdout(Stdio::null()).status();
        found.is_ok_and(|status| status.success())
    };
    let mut contenders = vec![flow("gather by key", format!("{LINES}{GROUP}"), &[])?];
    contenders.extend(peers.iter().filter(|(name, _)| is_installed(name)).map(|(name, script)| shell(name, script)));
    table(room, &contenders)
}

/// A program that is measured.
struct Contender {
    name: String,
    program: PathBuf,
    args: Vec<String>,
}

/// The measurements of a run: elapsed seconds, seconds of processor time, and kilobytes of memory.
#[derive(Clone, Copy)]
struct Cost {
    elapsed: f64,
    processors: f64,
    kilobytes: f64,
}

/// Measures the contenders alternately, and prints their medians and the ratios to the first contender.
fn table(room: &Path, contenders: &[Contender]) -> Result<(), Box<dyn Error>> {
    let mut costs: Vec<Vec<Cost>> = contenders.iter().map(|_| Vec::new()).collect();
    for nth in 0..=RUNS {
        for (contender, costs) in contenders.iter().zip(&mut costs) {
            let cost = run(room, contender)?;
            if nth > 0 {
                costs.push(cost);
            }
        }
    }
    let median = |costs: &[Cost], of: fn(&Cost) -> f64| {
        let mut all: Vec<f64> = costs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let first = median(&costs[0], |cost| cost.elapsed);
    for (contender, costs) in contenders.iter().zip(&costs) {
        let elapsed = median(costs, |cost| cost.elapsed);
        println!(
            "  {:<22}{elapsed:>8.2} s {:>8.2} s of processors {:>8.1} MB {:>7.2} x",
            contender.name,
            median(costs, |cost| cost.processors),
            median(costs, |cost| cost.kilobytes) / 1024.0,
            elapsed / first,
        );
    }
    Ok(())
}

fn run(room: &Path, contender: &Contender) -> Result<Cost, Box<dyn Error>> {
    let mut command = Command::new(&contender.program);
    command.args(&contender.args).current_dir(room).env("XDG_RUNTIME_DIR", room);
    let began = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: both pointers point to values of these types, and no other code waits for the child.
    let waited = unsafe { libc::wait4(child.id() as libc::pid_t, &raw mut status, 0, usage.as_mut_ptr()) };
    let elapsed = began.elapsed().as_secs_f64();
    if waited < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    if status != 0 {
        return Err(format!("{}: {}", contender.name, ExitStatus::from_raw(status)).into());
    }
    // SAFETY: a `rusage` consists of plain numbers, for which zeros are valid.
    let usage = unsafe { usage.assume_init() };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let processors = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    Ok(Cost { elapsed, processors, kilobytes: usage.ru_maxrss as f64 })
}

/// The command `millstream`. Its file is in the parent of this program's folder.
fn millstream() -> Result<PathBuf, Box<dyn Error>> {
    let own = std::env::current_exe()?;
    let command = own.ancestors().nth(2).ok_or("no folder")?.join("millstream");
    if command.exists() {
        return Ok(command);
    }
    Err(format!("{} is not there: `cargo build --release -p millstream-cli` makes it", command.display()).into())
}

/// The number of keys in a file of this many lines.
fn keys(lines: u64) -> u64 {
    (lines / 10).clamp(1, 100_000)
}

/// Writes a file of lines, each of which begins with a key.
fn input(room: &Path, lines: u64) -> Result<(), Box<dyn Error>> {
    let mut file = BufWriter::new(fs::File::create(room.join("input"))?);
    for n in 0..lines {
        // The finaliser of SplitMix64.
        let mut z = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        writeln!(file, "key{:06} {} some text of line {n}", (z ^ (z >> 31)) % keys(lines), n % 1000)?;
    }
    Ok(file.flush()?)
}
