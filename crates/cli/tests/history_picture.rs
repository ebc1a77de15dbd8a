//! The pictures of `millstream history check` in a browser: the script runs, draws the expected picture, and follows
//! links. If no Chromium is found, the test prints that.

mod browser;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use browser::{browser, opened};

/// An attribute of the body. In these attributes, the script notes what it has drawn.
fn body(dom: &str, name: &str) -> String {
    let body = &dom[dom.find("<body").expect("a body")..];
    let body = &body[..body.find('>').unwrap()];
    let value = body
        .split(&format!("data-{name}=\""))
        .nth(1)
        .unwrap_or_else(|| panic!("no data-{name} in {body}: the script failed"));
    value[..value.find('"').unwrap()].to_owned()
}

fn check(folder: &Path, log: &str, arguments: &[&str]) -> PathBuf {
    let (file, page) = (folder.join("run.jsonl"), folder.join("run.html"));
    fs::write(&file, log).unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(["history", "check"])
        .arg(&file)
        .args(arguments)
        .arg("--html")
        .arg(&page)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(matches!(status.code(), Some(0 | 1)), "{status}");
    page
}

/// A log in which `pairs` values are enqueued and dequeued, and at the end two values are dequeued in the wrong order.
fn log(pairs: u64) -> String {
    let mut log = String::new();
    let mut line = |process, op: &str, value: u64, call: u64, ret: u64| {
        let side = if op == "enqueue" { "in" } else { "out" };
        log +=
            &format!("{{\"process\":{process},\"op\":\"{op}\",\"{side}\":{value},\"call\":{call},\"return\":{ret}}}\n");
    };
    for n in 0..pairs {
        line(0, "enqueue", n, 100 * n, 100 * n + 60);
        line(1, "dequeue", n, 100 * n + 30, 100 * n + 90);
    }
    let end = 100 * pairs;
    line(0, "enqueue", pairs, end, end + 10);
    line(0, "enqueue", pairs + 1, end + 20, end + 30);
    line(1, "dequeue", pairs + 1, end + 40, end + 50);
    line(1, "dequeue", pairs, end + 60, end + 70);
    log
}

#[test]
fn the_page_shows_the_failing_window_first() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = check(folder.path(), &log(3), &["--spec", "queue"]);
    let dom = opened(browser, &folder.path().join("profile"), &page, "");
    let drawn: usize = body(&dom, "drawn").parse().unwrap();
    assert!((3..=10).contains(&drawn), "{drawn} bars");
    assert_eq!(body(&dom, "lanes"), "2");
    assert_eq!(body(&dom, "focus"), "");
    assert!(dom.contains("not linearizable"));
}

#[test]
fn a_long_history_shows_only_its_counter_example_and_a_link_to_the_other_rows() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = check(folder.path(), &log(30_000), &["--spec", "queue"]);
    assert!(fs::metadata(&page).unwrap().len() < 5_000_000, "60,004 operations are more than a page shows");
    let profile = folder.path().join("profile");
    let dom = opened(browser, &profile, &page, "");
    let drawn: usize = body(&dom, "drawn").parse().unwrap();
    assert!((3..=10).contains(&drawn), "{drawn} bars");
    // Row 59,000 is `enqueue(29500)`. The row is drawn with its neighbours, and its tip is shown.
    let dom = opened(browser, &profile, &page, "#row=59000");
    assert_eq!(body(&dom, "focus"), "59000");
    assert!(body(&dom, "drawn").parse::<usize>().unwrap() >= 3);
    let tip = &dom[dom.find("id=\"tip\"").unwrap()..];
    assert!(tip[..300].contains("enqueue(29500)") && tip[..300].contains("row 59000"), "{}", &tip[..300]);
}

#[test]
fn a_page_of_a_sound_history_has_its_linearization_points() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let sound: String = log(3).lines().take(6).map(|line| format!("{line}\n")).collect();
    let page = check(folder.path(), &sound, &["--spec", "queue"]);
    let dom = opened(browser, &folder.path().join("profile"), &page, "#row=2");
    assert_eq!(body(&dom, "drawn"), "6");
    assert!(dom.contains("takes effect as number"), "the tip tells the place in the witness");
}
