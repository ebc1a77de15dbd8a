//! The HTML report in a browser: from a file and without a connection, the script runs under the page's own policy and
//! shows the run. If no Chromium is found, the test prints that.

mod browser;

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use browser::{browser, opened, opened_at};

/// Runs a flow on lines, and returns the path of the report.
fn report(folder: &Path, flow: &str, lines: &str) -> PathBuf {
    fs::write(folder.join("flow.toml"), flow).unwrap();
    fs::write(folder.join("in"), lines).unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(["run", "flow.toml", "in", "--report", "report.html"])
        .current_dir(folder)
        .env("XDG_RUNTIME_DIR", folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(matches!(status.code(), Some(0 | 1)), "{status}");
    folder.join("report.html")
}

/// The part of the document from the element with this id to the next section.
fn part<'a>(dom: &'a str, id: &str) -> &'a str {
    let from = dom.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("no {id}"));
    let rest = &dom[from..];
    &rest[..rest.find("</section>").unwrap_or(rest.len())]
}

#[test]
fn the_report_shows_the_run_in_a_browser_and_writes_no_markup() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let flow = r#"
name = 'f<img src=x>'
inflight = 4
[resources]
slot = 1
[source]
lines = "{input}"
[[stage]]
name = 'try & "see"'
op = "exec"
exec = ["sh", "-c", "case $0 in bad*) echo 'no `such` <b>thing</b>' >&2; exit 1;; esac", "{line}"]
needs = { slot = 1 }
[[stage]]
name = "then"
op = "exec"
exec = ["true"]
"#;
    let page = report(folder.path(), flow, "good\nbad <i>one</i>\ngood\nfine\n");
    assert!(fs::metadata(&page).unwrap().len() < 150_000);
    let dom = opened(browser, &folder.path().join("profile"), &page, "");
    assert!(dom.contains("<h1 id=\"flow\">f&lt;img src=x&gt;</h1>"), "the script has run");
    assert!(part(&dom, "tiles").contains("<dt>units retired</dt><dd class=\"\">3</dd>"), "{}", part(&dom, "tiles"));
    assert!(part(&dom, "graph").matches("class=\"node\"").count() == 2);
    assert!(part(&dom, "waits").contains("slot"));
    assert!(part(&dom, "time").contains("running"));
    assert!(part(&dom, "service").contains("class=\"slowest\""));
    assert!(part(&dom, "causes").contains("<code>such</code>"));
    assert!(part(&dom, "letters").contains("bad &lt;i&gt;one&lt;/i&gt;"));
    assert!(part(&dom, "retry").contains("millstream retry"));
    assert!(part(&dom, "identity").contains("flow.toml"));
    assert!(part(&dom, "balance").contains("admitted 4 = retired 3 + dead-lettered 1 + left 0"));
    assert!(!dom.contains("<img src=x>") && !dom.contains("<i>one"));
}

#[test]
fn a_report_of_sixty_stages_is_small_and_whole() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut flow = String::from("name = 'long'\n[source]\nlines = \"{input}\"\n");
    for i in 0..60 {
        let _ = write!(flow, "[[stage]]\nname = 'stage {i}'\nop = \"set\"\npayload = \"{{line}}\"\n");
    }
    let lines: String = (0..2000).map(|n| format!("{n}\n")).collect();
    let page = report(folder.path(), &flow, &lines);
    let size = fs::metadata(&page).unwrap().len();
    assert!(size < 300_000, "{size}");
    let dom = opened(browser, &folder.path().join("profile"), &page, "");
    assert_eq!(part(&dom, "graph").matches("class=\"node\"").count(), 60);
    assert_eq!(part(&dom, "stages").matches("<th scope=\"row\"").count(), 60);
}

#[test]
fn the_page_of_a_trace_has_the_run_over_time_and_sliders() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let flow = "name = 'traced'\ninflight = 8\n[resources]\nslot = 1\n[source]\nlines = \"{input}\"\n\
        [[stage]]\nname = 'nap'\nop = \"exec\"\nexec = [\"sleep\", \"0.02\"]\nneeds = { slot = 1 }\nworkers = 4\n";
    fs::write(folder.path().join("flow.toml"), flow).unwrap();
    fs::write(folder.path().join("in"), "1\n".repeat(30)).unwrap();
    let command = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
        command.args(args).current_dir(folder.path()).env("XDG_RUNTIME_DIR", folder.path()).stdin(Stdio::null());
        command
    };
    let traced = command(&["run", "flow.toml", "in", "--trace", "run.trace", "--quiet"]).output().unwrap();
    assert!(traced.status.success(), "{traced:?}");
    let written = command(&["page", "run.trace", "--report", "trace.html"]).output().unwrap();
    assert!(written.status.success(), "{written:?}");
    let dom = opened(browser, &folder.path().join("profile"), &folder.path().join("trace.html"), "");
    assert!(part(&dom, "tiles").contains("<dt>units retired</dt><dd class=\"\">30</dd>"), "{}", part(&dom, "tiles"));
    assert!(part(&dom, "history").contains("units that waited") && part(&dom, "waits").contains("slot"));
    assert!(part(&dom, "facts").contains("replay of the run itself"));
    assert!(dom.contains("id=\"whatif-section\" hidden"), "a file has nobody to ask");

    let mut server = command(&["page", "run.trace"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.split(' ').find(|word| word.starts_with("http://")).unwrap();
    let dom = opened_at(browser, &folder.path().join("profile"), url);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(!dom.contains("id=\"whatif-section\" hidden") && dom.contains("The traced units are replayed"));
    assert!(
        part(&dom, "sliders").contains("resource.slot") && part(&dom, "graph").matches("class=\"node\"").count() == 1
    );
}

#[test]
fn the_page_of_events_has_lanes_and_that_of_a_report_has_no_empty_parts() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let flow = "name = 'two <ways>'\n[source]\nlines = \"{input}\"\n\
        [[stage]]\nname = 'nap <i>'\nop = \"exec\"\nexec = [\"sh\", \"-c\", \"sleep 0.01; test $0 != 7\", \"{line}\"]\n";
    fs::write(folder.path().join("flow.toml"), flow).unwrap();
    fs::write(folder.path().join("in"), (0..20).map(|n| format!("{n}\n")).collect::<String>()).unwrap();
    let command = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
        command.args(args).current_dir(folder.path()).env("XDG_RUNTIME_DIR", folder.path()).stdin(Stdio::null());
        command.output().unwrap()
    };
    let ran = command(&["run", "flow.toml", "in", "--events", "events.json", "--report", "run.json", "--quiet"]);
    assert_eq!(ran.status.code(), Some(1), "{ran:?}");
    let dom = |file: &str| {
        let written = command(&["page", file, "--report", "page.html"]);
        assert!(written.status.success(), "{written:?}");
        opened(browser, &folder.path().join("profile"), &folder.path().join("page.html"), "")
    };
    let events = dom("events.json");
    let lanes = part(&events, "timeline");
    assert!(lanes.contains("<span>nap &lt;i&gt;</span>") && lanes.contains("<span>20× · "), "{lanes}");
    assert!(part(&events, "timeline").contains("1 failed") && part(&events, "threads").contains("worker "));
    assert!(!events.contains("id=\"timeline-section\" hidden") && events.contains("id=\"graph-section\" hidden"));
    let report = dom("run.json");
    assert!(
        part(&report, "tiles").contains("<dt>units retired</dt><dd class=\"\">19</dd>"),
        "{}",
        part(&report, "tiles")
    );
    assert!(report.contains("id=\"graph-section\" hidden") && report.contains("class=\"no-curves\""));
    assert!(part(&report, "causes").contains("status 1") && part(&report, "retry").contains("millstream retry"));
}
