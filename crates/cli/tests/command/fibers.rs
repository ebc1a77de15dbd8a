//! `fibers = N` in a flow file, and `millstream fibers`.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use millstream_fiber::net::TcpListener;
use millstream_fiber::{Options, Runtime, Threads, sleep, spawn};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::{Room, Running, code, ended, until};

const FETCH: &str = include_str!("../../../../flows/fetch.toml");

/// A server. The body of each response is the requested path. The server waits before each response.
struct SlowPeers {
    address: SocketAddr,
    _runtime: Runtime,
}

impl SlowPeers {
    fn start(pause: Duration) -> Self {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
        let runtime = Runtime::start(Options::new(Threads::One)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(move || {
            loop {
                let (mut stream, _) = listener.accept().unwrap();
                spawn(move || {
                    let (mut request, mut piece) = (Vec::new(), [0; 512]);
                    while !request.ends_with(b"\r\n\r\n") {
                        match stream.read(&mut piece) {
                            Ok(0) | Err(_) => return,
                            Ok(read) => request.extend_from_slice(&piece[..read]),
                        }
                    }
                    sleep(pause);
                    let path = request.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
                    let head =
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", path.len());
                    // The client may have closed the connection, so an error is ignored.
                    let _ = stream.write_all(&[head.as_bytes(), path].concat());
                });
            }
        });
        SlowPeers { address, _runtime: runtime }
    }

    fn urls(&self, count: usize) -> String {
        (0..count).map(|page| format!("http://{}/{page}\n", self.address)).collect()
    }
}

/// `flows/fetch.toml`, changed so that many requests can run at once, even to one host.
fn fetch(requests: usize) -> Room {
    let text = FETCH
        .replace("inflight = 256", &format!("inflight = {}", requests + 100))
        .replace("net = 16 ", &format!("net = {requests} "))
        .replace("\"host:*\" = 2 ", &format!("\"host:*\" = {requests} "));
    assert!(text.contains("fibers = "), "the flow of the repository runs its requests on fibers");
    Room::new(&text)
}

/// The names of a process's threads.
fn threads(process: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
    tasks.filter_map(name).map(|name| name.trim().to_owned()).collect()
}

#[test]
fn a_thousand_slow_peers_are_asked_at_once_on_two_threads() {
    const PEERS: usize = 1000;
    let peers = SlowPeers::start(Duration::from_millis(500));
    let room = fetch(PEERS);
    room.write("urls", peers.urls(PEERS));
    let running = room.start(&["run", "flow.toml", "urls", "-p", "out=out", "--report", "report.json"]);
    let process = running.child.id();
    let mut seen = Vec::new();
    until("all requests have an answer", || {
        let now = threads(process);
        if now.len() > seen.len() {
            seen = now;
        }
        !room.path("report.json").metadata().is_ok_and(|file| file.len() == 0) && room.path("report.json").exists()
    });
    let (status, _, err) = running.end();
    assert_eq!(code(status), 0, "{err}");
    assert_eq!(room.json_lines("out/pages.jsonl").len(), PEERS, "{err}");
    let report = room.json("report.json");
    let get = &report["stages"][0];
    assert_eq!((&get["name"], &get["dead_lettered"]), (&"get".into(), &0.into()), "{report}");
    // Whatever the number of requests, two threads run the fibers, and a third thread monitors the two. A thread that
    // has just started still has the name of the thread that started it.
    let fetching = seen.iter().filter(|name| name.starts_with("fibers") || *name == "ms-get");
    let names: BTreeSet<&String> = fetching.clone().collect();
    assert!((2..=3).contains(&names.len()) && fetching.count() <= 4, "{seen:?}");
    assert!(seen.len() <= 16, "{seen:?}");
}

#[test]
fn a_dump_shows_what_the_units_wait_for() {
    let peers = SlowPeers::start(Duration::from_secs(600));
    let room = fetch(20);
    room.write("flow.toml", room.read("flow.toml").replace("fibers = 10000 ", "fibers = 10000\nstack = \"512KiB\" "));
    room.write("urls", peers.urls(20));
    let mut running = room.start(&["run", "flow.toml", "urls", "-p", "out=out", "--control", "control"]);
    let control = running.control.to_str().unwrap().to_owned();
    let asked = |args: &[&str]| ended(&room.run(&[&["fibers", &control], args].concat()), 0).0;
    until("all requests wait", || asked(&["--dump"]).contains("20 × `get` waiting to read at "));
    let dump = asked(&["--dump"]);
    assert!(dump.starts_with("20 fibers, the deepest stack so far ") && dump.contains(" of 512 KiB\n"), "{dump}");
    assert!(dump.contains("transport.rs:") && dump.contains(", for up to ") && dump.contains(", units "), "{dump}");
    // On a busy machine, the dump may first show the frames of a stall, which come before the group.
    let frames: Vec<&str> = dump.lines().skip_while(|line| !line.contains("20 × `get`")).skip(1).collect();
    assert!(frames[0].contains("transport") && frames.iter().any(|frame| frame.contains("ureq")), "{dump}");
    let short = asked(&[]);
    assert!(short.starts_with("20 fibers, ") && !short.contains(" × `get` waiting"), "{short}");
    let json: serde_json::Value = serde_json::from_str(&asked(&["--json"])).unwrap();
    assert_eq!((&json["groups"][0]["stage"], &json["groups"][0]["fibers"]), (&"get".into(), &20.into()), "{json}");
    running.signal(libc::SIGINT);
    running.line_with("no more units are admitted");
    running.signal(libc::SIGINT);
    let (status, _, err) = running.end();
    assert_eq!(code(status), 3, "{err}");
}

#[test]
fn a_time_limit_ends_a_request_on_a_fiber() {
    let peers = SlowPeers::start(Duration::from_secs(600));
    let text = "[source]\nlines = \"-\"\n[[stage]]\nname = \"get\"\nop = \"http-get\"\nurl = \"{line}\"\nfibers = 50\ntimeout = \"300ms\"\n";
    let room = Room::new(text);
    room.write("urls", peers.urls(50));
    let output = room.run(&["run", "flow.toml", "urls", "--dead-letters", "dead.jsonl"]);
    ended(&output, 1);
    let letters = room.json_lines("dead.jsonl");
    assert_eq!(letters.len(), 50);
    assert!(letters.iter().all(|letter| letter["cause"] == "timeout"), "{}", letters[0]);
}

/// The number of processes whose arguments contain a text.
fn processes_with(text: &str) -> usize {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let arguments = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    arguments.filter(|arguments| arguments.split(|byte| *byte == 0).any(|argument| argument == text.as_bytes())).count()
}

#[test]
fn a_thousand_programs_are_waited_for_on_two_threads_and_end_with_the_run() {
    const PROGRAMS: usize = 1000;
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    // The length of the sleep distinguishes these programs from those of other tests.
    let length = format!("6{:08}", std::process::id());
    let room = Room::new(&format!(
        "inflight = 2000\n[source]\nlines = \"-\"\n[[stage]]\nname = \"wait\"\nop = \"exec\"\n\
         exec = [\"sleep\", \"{length}\"]\nstdin = \"null\"\nfibers = {PROGRAMS}\n"
    ));
    room.write("lines", "x\n".repeat(PROGRAMS));
    let mut running = room.start(&["run", "flow.toml", "lines"]);
    let (process, control) = (running.child.id(), running.control.to_str().unwrap().to_owned());
    let waiting = format!("{PROGRAMS} × `wait` polling descriptors at ");
    // A later dump may show some of them ready: on a busy machine they check their programs late.
    let mut dump = String::new();
    until("all programs are waited for", || {
        dump = ended(&room.run(&["fibers", &control, "--dump"]), 0).0;
        dump.contains(&waiting)
    });
    assert_eq!(processes_with(&length), PROGRAMS);
    // The frames of a stall may come first.
    let mut frames = dump.lines().skip_while(|line| !line.contains(&waiting)).skip(1);
    // Without line tables, inlined functions have no frames.
    assert!(frames.next().is_some_and(|frame| frame.contains("talk") || frame.contains("ops::exec")), "{dump}");
    // Two threads run the fibers, one thread monitors the two, and at most eight at a time start programs. There may be
    // more threads than that, because a thread that has just started a program may not be idle when the next program is
    // started.
    let seen = threads(process);
    let running_fibers = seen.iter().filter(|name| name.starts_with("fibers-") && *name != "fibers-blocking").count();
    assert!((3..=4).contains(&running_fibers) && seen.len() <= 40, "{seen:?}");
    running.signal(libc::SIGINT);
    running.line_with("no more units are admitted");
    running.signal(libc::SIGINT);
    let (status, _, err) = running.end();
    assert_eq!(code(status), 3, "{err}");
    until("no program is left", || processes_with(&length) == 0);
}

#[test]
fn programs_on_fibers_have_their_outputs_failures_and_time_limits() {
    const SCRIPT: &str = "case $1 in \
        fail*) echo wrong >&2; exit 7;; \
        late*) echo begun >&2; sleep 600;; \
        large*) head -c 3000000 /dev/zero;; \
        *) sleep 0.1; cat;; esac";
    let room = Room::new(&format!(
        "inflight = 300\n[source]\nlines = \"-\"\n[[stage]]\nname = \"run\"\nop = \"exec\"\nshell = true\n\
         exec = ['{SCRIPT}', \"{{line}}\"]\nfibers = 100\ntimeout = \"10s\"\n\
         [[stage]]\nname = \"list\"\nop = \"append\"\npath = \"list\"\nline = \"{{line}} {{size}}\"\n"
    ));
    let line = |n: usize| match n % 20 {
        0 => format!("fail{n}\n"),
        1 if n < 60 => format!("late{n}\n"),
        2 => format!("large{n}\n"),
        _ => format!("other{n}\n"),
    };
    room.write("lines", (0..200).map(line).collect::<String>());
    let output = room.run(&["run", "flow.toml", "lines", "--dead-letters", "dead.jsonl"]);
    ended(&output, 1);
    let list = room.read("list");
    let sizes = |prefix: &str| -> Vec<u64> {
        let of = list.lines().filter(|line| line.starts_with(prefix));
        of.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect()
    };
    assert_eq!(sizes("large"), [3_000_000; 10]);
    assert_eq!(sizes("other").len(), 177, "{list}");
    let letters = room.json_lines("dead.jsonl");
    let with = |cause: &str, text: &str| {
        let is_it = |letter: &&serde_json::Value| {
            letter["cause"] == cause && letter["message"].as_str().is_some_and(|message| message.contains(text))
        };
        letters.iter().filter(is_it).count()
    };
    assert_eq!(with("error", "exited with status 7; standard error: wrong"), 10, "{letters:?}");
    assert_eq!(with("timeout", "its process group were killed; standard error: begun"), 3, "{letters:?}");
    assert_eq!(letters.len(), 13);
}

#[test]
fn an_abandoned_run_does_not_wait_for_silent_servers() {
    let peers = SlowPeers::start(Duration::from_secs(600));
    let room = fetch(100);
    room.write("urls", peers.urls(100));
    let mut running = room.start(&["run", "flow.toml", "urls", "-p", "out=out"]);
    let control = running.control.to_str().unwrap().to_owned();
    until("all requests wait", || ended(&room.run(&["fibers", &control, "--dump"]), 0).0.contains("100 × `get`"));
    running.signal(libc::SIGINT);
    running.line_with("no more units are admitted");
    running.signal(libc::SIGINT);
    let (status, _, err) = running.end();
    assert_eq!(code(status), 3, "{err}");
}

#[test]
fn a_run_whose_fibers_find_no_room_says_what_its_units_wait_for() {
    let text = "[source]\nlines = \"-\"\n[[stage]]\nname = \"get\"\nop = \"http-get\"\nurl = \"{line}\"\nfibers = 50\nstack = \"1GiB\"\n";
    let room = Room::new(text);
    room.write("urls", "http://127.0.0.1:1/\n");
    let command = format!("ulimit -v 1000000; exec '{}' run flow.toml urls", env!("CARGO_BIN_EXE_millstream"));
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &command]);
    room.at_home(&mut shell);
    let mut running = Running::start(shell);
    let line = running.line_with("units wait, for no fiber could be started: ");
    assert!(line.contains("address space"), "{line}");
    running.signal(libc::SIGINT);
    running.line_with("no more units are admitted");
    running.signal(libc::SIGINT);
    let (status, _, err) = running.end();
    assert_eq!(code(status), 3, "{err}");
}
