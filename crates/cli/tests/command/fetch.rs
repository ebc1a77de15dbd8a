//! `flows/fetch.toml` with few descriptors, and with secrets.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};
use std::thread;

use crate::support::{Room, code, ended};

const FETCH: &str = include_str!("../../../../flows/fetch.toml");

/// A server. The body of each response is the requested path, except for `/none`, which gets status 404.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                while let Some(request) = lines.next() {
                    while lines.next().is_some_and(|header| !header.is_empty()) {}
                    let path = request.split(' ').nth(1).unwrap_or_default();
                    let status = if path.starts_with("/none") { "404 Not Found" } else { "200 OK" };
                    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{path}", path.len());
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// Runs `millstream ARGS…` in a shell that has set limits.
fn limited(room: &Room, limits: &str, args: &str) -> Output {
    let script = format!("{limits} && exec {} {args}", env!("CARGO_BIN_EXE_millstream"));
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script).current_dir(room.path("")).env("XDG_RUNTIME_DIR", room.path("runtime"));
    shell.stdin(Stdio::null()).output().expect("a shell starts")
}

#[test]
fn units_wait_for_descriptors_where_there_are_few() {
    // The flow's own limit of 2 connections per host is raised to 16.
    let room = Room::new(&FETCH.replace("\"host:*\" = 2 ", "\"host:*\" = 16 "));
    let address = server();
    let urls: String = (0..500).map(|page| format!("http://{address}/{page}\n")).collect();
    room.write("urls", urls);
    let (_, err) = ended(&limited(&room, "ulimit -n 24", "run flow.toml urls -p out=out"), 0);
    assert_eq!(room.json_lines("out/pages.jsonl").len(), 500, "{err}");
}

#[test]
fn a_soft_limit_is_raised_and_programs_get_the_original_one() {
    let address = server();
    let urls: String = (0..100).map(|page| format!("http://{address}/{page}\n")).collect();
    let room = Room::new(&FETCH.replace("\"host:*\" = 2 ", "\"host:*\" = 16 "));
    room.write("urls", &urls);
    ended(&limited(&room, "ulimit -Sn 24", "run flow.toml urls -p out=out --report report.json"), 0);
    let resources = room.json("report.json")["resources"].to_string();
    assert!(!resources.contains("file descriptors"), "{resources}");

    let room = Room::new(
        "[source]\nlines = \"-\"\n[resources]\nrun = 200\n[[stage]]\nname = \"run\"\nop = \"exec\"\nneeds = { run = 1 }\n\
         exec = [\"sh\", \"-c\", \"ulimit -n; sleep 0.05\"]\n[[stage]]\nname = \"list\"\nop = \"write\"\npath = \"out/{name}\"\n",
    );
    room.write("lines", (0..200).map(|line| format!("{line}\n")).collect::<String>());
    ended(&limited(&room, "ulimit -Sn 64", "run flow.toml lines --report report.json"), 0);
    assert_eq!(room.read("out/7"), "64\n");
    let resources = room.json("report.json")["resources"].to_string();
    assert!(!resources.contains("file descriptors"), "{resources}");

    let (plan, _) = ended(&limited(&room, "ulimit -n 64", "plan flow.toml"), 0);
    let plan = plan.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plan.contains("the hard limit of 64 leaves") && plan.contains("(`ulimit -Hn"), "{plan}");
    std::fs::remove_dir_all(room.path("out")).unwrap();
    let (_, err) = ended(&limited(&room, "ulimit -n 64", "run flow.toml lines --report report.json"), 0);
    assert!(err.contains("file descriptors at once, and the hard limit of 64 leaves"), "{err}");
    assert_eq!(room.read("out/7"), "64\n");
    let resources = room.json("report.json")["resources"].to_string();
    assert!(resources.contains("file descriptors"), "{resources}");
}

#[test]
fn credentials_are_in_the_file_of_dead_letters_alone_and_only_its_owner_reads_it() {
    let room = Room::new(FETCH);
    let address = server();
    room.write(
        "urls",
        format!("http://user:hidden@{address}/page?token=hidden\nhttp://user:hidden@{address}/none?key=hidden\n"),
    );
    let output = room.run(&[
        "run",
        "flow.toml",
        "urls",
        "-p",
        "out=out",
        "--report",
        "report.json",
        "--dead-letters",
        "dead.jsonl",
    ]);
    let (out, err) = ended(&output, 1);
    let list =
        room.path("out").read_dir().unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_file()).unwrap();
    let told = [out, err, room.read("report.json"), std::fs::read_to_string(list).unwrap()].concat();
    assert!(!told.contains("hidden"), "{told}");
    assert!(told.contains(&format!("http://***@{address}/page?token=***")), "{told}");
    let letters = room.json_lines("dead.jsonl");
    assert_eq!(letters[0]["line"], format!("http://user:hidden@{address}/none?key=hidden"));
    assert!(!letters[0]["message"].as_str().unwrap().contains("hidden"), "{}", letters[0]["message"]);
    let mode = room.path("dead.jsonl").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    ended(&room.run(&["retry", "dead.jsonl"]), 1);
    assert_eq!(room.json_lines("dead.jsonl")[0]["line"], letters[0]["line"], "a retry has all it needs");
    assert_eq!(room.path("dead.jsonl").metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_retry_that_is_abandoned_at_a_silent_server_keeps_every_letter() {
    let room = Room::new(&FETCH.replace("retry = { times = 3, backoff = \"100ms..5s\" }", ""));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let urls: Vec<String> = (0..20).map(|page| format!("http://{address}/{page}")).collect();
    room.write("urls", urls.join("\n"));
    ended(&room.run(&["run", "flow.toml", "urls", "-p", "out=out", "--dead-letters", "dead.jsonl"]), 1);
    // The server accepts connections and never responds.
    let listener = TcpListener::bind(address).unwrap();
    let mut running = room.start(&["retry", "dead.jsonl"]);
    let silent = listener.accept().unwrap();
    running.signal(libc::SIGINT);
    running.line_with("no more units are admitted");
    running.signal(libc::SIGINT);
    let (status, _, err) = running.end();
    assert_eq!(code(status), 3, "{err}");
    assert!(err.contains("not retried"), "{err}");
    let mut kept: Vec<String> =
        room.json_lines("dead.jsonl").iter().filter_map(|letter| Some(letter["line"].as_str()?.to_owned())).collect();
    kept.sort_by_key(|url| urls.iter().position(|known| known == url));
    assert_eq!(kept, urls, "{err}");
    drop(silent);
}

#[test]
fn a_proxy_of_the_environment_is_used_unless_no_proxy_names_the_host() {
    let room = Room::new(&FETCH.replace("retry = { times = 3, backoff = \"100ms..5s\" }", ""));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    let asked = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        let request = lines.next().unwrap();
        while lines.next().is_some_and(|header| !header.is_empty()) {}
        let _ = stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        request
    });
    let run = |list: &str, no_proxy: &str| {
        let mut command = room.command(&["run", "flow.toml", list, "-p", "out=out"]);
        for name in ["ALL_PROXY", "HTTPS_PROXY", "all_proxy", "https_proxy", "http_proxy", "no_proxy"] {
            command.env_remove(name);
        }
        command.env("HTTP_PROXY", &proxy).env("NO_PROXY", no_proxy);
        command.output().unwrap()
    };
    room.write("elsewhere", "http://millstream.invalid/page\n");
    ended(&run("elsewhere", ""), 1);
    let request = asked.join().unwrap();
    assert!(request.contains("millstream.invalid"), "{request}");
    room.write("here", format!("http://{}/page\n", server()));
    ended(&run("here", "127.0.0.1"), 0);
}
