//! Runs the examples of `docs/evidence.md` and checks that they print the output on the page.
//!
//! In a block marked `console`, a line that begins with `$ ` is a command, and the following lines are the command's
//! output. Within a line, `…` matches any text. A line that consists of `…` matches any number of lines. All commands
//! run in one folder, in the order of the page. Stand-ins replace the programs that the page assumes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Room, text};

/// The stand-ins: scripts in place of programs that the page assumes.
const STAND_INS: [(&str, &str); 3] =
    [("curl", "exit 0"), ("flaky-test", "[ $((MILLSTREAM_RUN % 20)) != 7 ]"), ("query", "exit 0")];

struct Example {
    command: String,
    output: Vec<String>,
}

fn examples(page: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match line.strip_prefix("$ ") {
                Some(command) => examples.push(Example { command: command.to_owned(), output: Vec::new() }),
                None => examples.last_mut().expect("a command comes first").output.push(line.to_owned()),
            },
        }
    }
    examples
}

/// Whether the lines match the pattern.
fn fits(pattern: &[String], lines: &[&str]) -> bool {
    match (pattern.split_first(), lines.split_first()) {
        (None, None) => true,
        (Some((any, rest)), _) if any == "…" => (0..=lines.len()).any(|skipped| fits(rest, &lines[skipped..])),
        (Some((wanted, rest)), Some((line, others))) => line_fits(wanted, line) && fits(rest, others),
        _ => false,
    }
}

fn line_fits(wanted: &str, line: &str) -> bool {
    let parts: Vec<&str> = wanted.split('…').collect();
    let [first, middle @ .., last] = parts.as_slice() else { return wanted == line };
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    for part in middle {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[test]
fn the_examples_of_the_page_run_as_printed() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/evidence.md");
    let examples = examples(&fs::read_to_string(page).unwrap());
    assert!(examples.len() >= 10, "the page has lost its examples");
    let room = Room::new("");
    fs::create_dir(room.path("bin")).unwrap();
    for (name, script) in STAND_INS {
        let path = Path::new("bin").join(name);
        room.write(&path, format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(room.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_millstream"), room.path("bin/millstream")).unwrap();
    room.write(
        "report.json",
        r#"{"flow":"fetch","retired":5000,"skipped":0,"dead_lettered":3,"left":0,"stages":[{"name":"get","units":5000,"failures":40}]}"#,
    );
    let path = format!("{}:{}", room.path("bin").display(), std::env::var("PATH").unwrap());
    for Example { mut command, mut output } in examples {
        // On a busy machine, one of the thousand runs may take longer than 250 ms.
        for text in [&mut command].into_iter().chain(&mut output) {
            *text = text.replace("250ms", "30s");
        }
        let found = Command::new("sh")
            .args(["-c", &command])
            .current_dir(room.path("."))
            .env("PATH", &path)
            .env("LC_ALL", "C.UTF-8")
            .env_remove("TERM")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let printed = text(&found.stdout);
        let lines: Vec<&str> = printed.lines().collect();
        assert!(
            fits(&output, &lines),
            "$ {command}\nthe page says:\n{}\nit prints:\n{printed}{}",
            output.join("\n"),
            text(&found.stderr)
        );
    }
}

#[test]
fn patterns_are_neither_too_loose_nor_too_strict() {
    for (wanted, line, fit) in [
        ("a … c", "a b c", true),
        ("a … c", "a b d", false),
        ("abc", "abc", true),
        ("abc", "abcd", false),
        ("…", "", true),
    ] {
        assert_eq!(line_fits(wanted, line), fit, "{wanted} {line}");
    }
    let pattern = ["a", "…", "d"].map(str::to_owned);
    assert!(fits(&pattern, &["a", "b", "c", "d"]) && fits(&pattern, &["a", "d"]));
    assert!(!fits(&pattern, &["a", "b"]) && !fits(&pattern, &["a", "d", "e"]));
}
