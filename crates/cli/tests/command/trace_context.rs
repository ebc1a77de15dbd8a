//! `TRACEPARENT` in the environment of a run.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

use crate::support::{Room, ended};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Checks that each line is a context of the trace. Returns the number of different spans.
fn spans(out: &str) -> usize {
    let spans: HashSet<&str> = out
        .lines()
        .map(|line| {
            let rest = line.strip_prefix(&format!("00-{TRACE}-")).unwrap_or_else(|| panic!("another trace: {line}"));
            rest.strip_suffix("-01").expect("the flags of the trace")
        })
        .collect();
    assert!(!spans.contains("b7ad6b7169203331"), "the span that started the run");
    spans.len()
}

#[test]
fn each_attempt_of_a_program_is_a_span_of_the_runs_trace() {
    let room = Room::new("");
    let args = ["each", "--retry", "1", "sh", "-c", "echo $TRACEPARENT >> spans; test $0 = b", ":::", "a", "b", "c"];
    let mut command = room.command(&args);
    ended(&command.env("TRACEPARENT", format!("00-{TRACE}-b7ad6b7169203331-01")).output().unwrap(), 1);
    assert_eq!(spans(&room.read("spans")), 5);
}

#[test]
fn an_invalid_context_is_passed_on_unchanged() {
    let room = Room::new("");
    let mut command = room.command(&["each", "sh", "-c", "echo \"$TRACEPARENT\"", ":::", "a"]);
    let (out, _) = ended(&command.env("TRACEPARENT", "no context").output().unwrap(), 0);
    assert_eq!(out, "no context\n");
    let (out, _) =
        ended(&room.command(&["each", "sh", "-c", "echo \"<$TRACEPARENT>\"", ":::", "a"]).output().unwrap(), 0);
    assert_eq!(out, "<>\n");
}

#[test]
fn each_request_is_a_span_of_the_runs_trace() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                while lines.next().is_some() {
                    let headers: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
                    let header = headers.iter().find_map(|line| line.strip_prefix("traceparent: ")).unwrap_or("none");
                    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{header}\n", header.len() + 1);
                    if (&stream).write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    let flow = "name = \"ask\"\n[source]\nargs = true\n[[stage]]\nname = \"get\"\nop = \"http-get\"\nurl = \"{line}\"\n\
                [[stage]]\nname = \"show\"\nop = \"exec\"\nexec = [\"cat\"]\nstdout = \"print\"\n";
    let room = Room::new(flow);
    let urls: Vec<String> = (0..4).map(|i| format!("http://{address}/{i}")).collect();
    let mut args = vec!["run", "flow.toml"];
    args.extend(urls.iter().map(String::as_str));
    let mut command = room.command(&args);
    let (out, _) = ended(&command.env("TRACEPARENT", format!("00-{TRACE}-b7ad6b7169203331-01")).output().unwrap(), 0);
    assert_eq!(spans(&out), 4, "{out}");
}
