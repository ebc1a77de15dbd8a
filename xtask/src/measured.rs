//! Writes `docs/measured.md`, which has a section for each workload: the output of the bench program, with its machine,
//! date and commit. Where another page repeats a figure, a mark names the workload, and the figure is compared with the
//! section.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::step::cargo;
use crate::trend::{self, Trend};

/// The workloads, in the order of the page. A test of the bench program compares them with its own.
const WORKLOADS: [&str; 14] = [
    "archive",
    "noop",
    "queued",
    "exec",
    "ring",
    "eventcount",
    "reclaim",
    "fence",
    "slab",
    "counter",
    "lock",
    "fiber",
    "history",
    "stream",
];

/// Cargo's arguments for the bench program, with every peer.
pub(crate) const PROGRAM: [&str; 4] =
    ["run", "--profile=dist", "--package=millstream-benches", "--features=millstream-benches/allocators"];

const PAGE: &str = "docs/measured.md";

/// The figures of earlier runs.
const TREND: &str = "docs/measured.tsv";

const OPENING: &str = "\
# Measured

Every figure of Millstream, compared with its peers. `cargo xtask bench --write [WORKLOAD]` measures and writes this page; each section
names the machine, the date and the commit of its own run, and `docs/measured.tsv` keeps the ratios of the last runs on each
processor. Peers take turns, round after round, in one process; tables give the median round with the smallest and the largest,
and ratios are taken within a round. Compare ratios, not times: they carry over to other machines far better.
";

/// Runs the workload named by the first of `args`, or every workload, and writes the sections of the page.
///
/// # Errors
/// Fails when the bench program fails, or when the page cannot be read or written. Sections that were already written
/// remain.
pub(crate) fn write(root: &Path, args: &[String]) -> Result<(), String> {
    let (workloads, options) = match args.split_first() {
        Some((first, rest)) if WORKLOADS.contains(&first.as_str()) => (vec![first.as_str()], rest),
        Some((first, _)) if !first.starts_with('-') => {
            return Err(format!("unknown workload `{first}`: expected one of {}", WORKLOADS.join(", ")));
        }
        _ => (WORKLOADS.to_vec(), args),
    };
    let commit = commit(root)?;
    for workload in workloads {
        let report = run(root, workload, options)?;
        let mut trend = Trend::parse(&read(root, TREND)?).map_err(|error| format!("{TREND}: {error}"))?;
        let worse = trend.add(trend::figures(workload, &report, &today()?, &commit)?);
        let mut section = section(workload, options, &report, &today()?, &commit)?;
        if let Some(table) = trend.by_processor(workload) {
            let _ = write!(section, "\n{table}");
        }
        let page = with_section(&read(root, PAGE)?, workload, &section);
        for (path, text) in [(PAGE, page), (TREND, trend.text())] {
            fs::write(root.join(path), text).map_err(|error| format!("{path}: {error}"))?;
        }
        println!("   wrote the section `{workload}` of {PAGE}, and its figures to {TREND}");
        worse.iter().for_each(|row| println!("   slower than before on this processor: {row}"));
        println!();
    }
    Ok(())
}

/// Returns the text of a file; empty if there is no such file.
fn read(root: &Path, path: &str) -> Result<String, String> {
    match fs::read_to_string(root.join(path)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        text => text.map_err(|error| format!("{path}: {error}")),
    }
}

/// Runs the bench program, prints its output while it runs, and returns the output.
fn run(root: &Path, workload: &str, options: &[String]) -> Result<String, String> {
    let mut child = Command::new(cargo())
        .args(PROGRAM)
        .args(["--quiet", "--", workload])
        .args(options)
        .current_dir(root)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("could not start the bench program: {error}"))?;
    let mut report = String::new();
    for line in BufReader::new(child.stdout.take().expect("standard output is a pipe")).lines() {
        let line = line.map_err(|error| format!("reading the report of `{workload}`: {error}"))?;
        println!("{line}");
        let _ = writeln!(report, "{line}");
    }
    let status = child.wait().map_err(|error| format!("waiting for the bench program: {error}"))?;
    if status.success() { Ok(report) } else { Err(format!("the bench program ended with {status}")) }
}

fn section(workload: &str, options: &[String], report: &str, date: &str, commit: &str) -> Result<String, String> {
    let (machine, figures) = report
        .split_once('\n')
        .filter(|(first, _)| first.starts_with("Machine: "))
        .ok_or("the report must begin with a line about the machine (`Machine: …`)")?;
    let command: Vec<&str> =
        ["cargo xtask bench", workload].into_iter().chain(options.iter().map(String::as_str)).collect();
    let command = command.join(" ");
    Ok(format!("{machine} {date}, commit {commit}, `{command}`.\n\n{}\n", figures.trim()))
}

/// Returns the page with the workload's section replaced by this one.
fn with_section(page: &str, workload: &str, section: &str) -> String {
    let mut new = OPENING.to_owned();
    for name in WORKLOADS {
        let kept = if name == workload { Some(section) } else { find(page, name) };
        if let Some(text) = kept {
            let _ = write!(new, "\n<a id=\"{name}\"></a>\n\n{}\n{}\n{}\n", begin(name), text.trim(), end(name));
        }
    }
    new
}

fn find<'a>(page: &'a str, workload: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&begin(workload))?;
    Some(rest.split_once(&end(workload))?.0)
}

fn begin(workload: &str) -> String {
    format!("<!-- begin {workload} -->")
}

fn end(workload: &str) -> String {
    format!("<!-- end {workload} -->")
}

/// Fails when a page repeats a time that the section of its workload does not have.
///
/// `<!-- measured: WORKLOAD -->` marks its own line or, if it is alone on its line, the lines up to the next blank
/// line.
///
/// # Errors
/// The error has one line for each figure that the section does not have: position, figure, workload.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let read = |path: &str| fs::read_to_string(root.join(path)).map_err(|error| format!("cannot read {path}: {error}"));
    let measured = read(PAGE)?;
    let docs = fs::read_dir(root.join("docs")).map_err(|error| format!("cannot read docs: {error}"))?;
    let names = docs.filter_map(|entry| Some(format!("docs/{}", entry.ok()?.file_name().to_str()?)));
    let mut pages: Vec<String> = names.filter(|name| name.ends_with(".md") && name != PAGE).collect();
    pages.push("README.md".to_owned());
    pages.sort_unstable();
    let mut wrong = Vec::new();
    let mut figures = 0;
    for page in pages {
        for (line, workload, time) in repeated(&read(&page)?) {
            figures += 1;
            if !find(&measured, &workload).is_some_and(|section| states(section, &time)) {
                wrong.push(format!("{page}:{line}: {time} is in no row of `{workload}` in {PAGE}"));
            }
        }
    }
    if wrong.is_empty() {
        println!("   {figures} figures agree with {PAGE}");
        return Ok(());
    }
    Err(wrong.join("\n  "))
}

/// Returns the numbers of times in marked lines, with their lines and workloads.
fn repeated(page: &str) -> Vec<(usize, String, String)> {
    let mut found = Vec::new();
    let mut paragraph: Option<&str> = None;
    for (number, line) in (1..).zip(page.lines()) {
        let marked = line.split_once("<!-- measured: ").and_then(|(before, rest)| {
            rest.split_once(" -->")
                .map(|(workload, after)| (before.trim().is_empty() && after.trim().is_empty(), workload))
        });
        if line.trim().is_empty() {
            paragraph = None;
        }
        if let Some((true, workload)) = marked {
            paragraph = Some(workload);
        }
        let Some(workload) = marked.map(|(_, workload)| workload).or(paragraph) else {
            continue;
        };
        let words: Vec<&str> = line.split(|letter: char| letter.is_whitespace() || "|(),;:".contains(letter)).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let unit = pair[1].trim_end_matches('.');
            if matches!(unit, "ns" | "µs" | "ms" | "s") && pair[0].parse::<f64>().is_ok() {
                found.push((number, workload.to_owned(), pair[0].to_owned()));
            }
        }
    }
    found
}

/// Returns whether some number of the section equals `time` when rounded to the precision of `time`.
fn states(section: &str, time: &str) -> bool {
    let decimals = time.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let numbers = section.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
    numbers.filter_map(|number| number.parse::<f64>().ok()).any(|number| format!("{number:.decimals$}") == time)
}

/// Returns the measured commit, with a mark if the tree differs from it.
fn commit(root: &Path) -> Result<String, String> {
    let hash = output(Command::new("git").args(["rev-parse", "--short=10", "HEAD"]).current_dir(root))?;
    let changes = ["status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs", ":!*.md"];
    let changes = output(Command::new("git").args(changes).current_dir(root))?;
    Ok(if changes.is_empty() { hash } else { format!("{hash} with changes") })
}

fn today() -> Result<String, String> {
    output(Command::new("date").args(["-u", "+%Y-%m-%d"]))
}

fn output(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let output = command.output().map_err(|error| format!("could not start {shown}: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "{shown} ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_replaces_its_own_and_no_other() {
        let first = with_section("", "ring", "old rings");
        let second = with_section(&first, "archive", "an archive");
        let third = with_section(&second, "ring", "new rings");
        assert_eq!(find(&third, "ring").map(str::trim), Some("new rings"));
        assert_eq!(find(&third, "archive").map(str::trim), Some("an archive"));
        assert!(third.starts_with(OPENING) && third.find("an archive") < third.find("new rings"), "{third}");
        assert_eq!(third.matches("<!-- begin ").count(), 2);
        assert!(!third.contains("old rings"));
    }

    #[test]
    fn repeated_times_are_found_in_marked_lines_and_paragraphs() {
        let page = "1 ns\n| a <!-- measured: ring --> | 9.6 ns | 1.2 |\n<!-- measured: noop -->\nx takes 12 ns (or 5.5 ns).\n\n3 ns\n";
        let found = repeated(page);
        let found: Vec<_> =
            found.iter().map(|(line, workload, time)| (*line, workload.as_str(), time.as_str())).collect();
        assert_eq!(found, [(2, "ring", "9.6"), (4, "noop", "12"), (4, "noop", "5.5")]);
    }

    #[test]
    fn a_time_agrees_with_a_number_that_rounds_to_it() {
        assert!(states("| spsc | 11.7 | 10.9 |", "12") && states("| 5.53 |", "5.5"));
        assert!(!states("| spsc | 11.7 | 10.9 |", "13") && !states("| 5.56 |", "5.5"));
    }

    #[test]
    fn the_pages_agree_with_the_measured_figures() {
        check(crate::root()).unwrap();
    }

    #[test]
    fn a_section_says_where_its_figures_come_from() {
        let options = ["--rounds".to_owned(), "3".to_owned()];
        let report = "Machine: a processor, 2 cores, Linux.\n\n## noop\n\n| a |\n";
        let text = section("noop", &options, report, "2026-11-23", "0123456789").unwrap();
        assert_eq!(
            text,
            "Machine: a processor, 2 cores, Linux. 2026-11-23, commit 0123456789, `cargo xtask bench noop --rounds 3`.\n\n\
             ## noop\n\n| a |\n"
        );
        assert!(section("noop", &options, "## noop\n", "2026-11-23", "0").is_err());
    }
}
