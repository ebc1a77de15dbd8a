//! The command fetches from slow servers, with a fiber for each request. Its peer is a minimal program with a thread
//! for each request.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::alone::{memory_of, raise_descriptors};
use super::echo::Server;
use super::tokio_peer;
use crate::args::Args;
use crate::error::Error;
use crate::exec;

/// The time between a request and its response.
const TIME: Duration = Duration::from_secs(10);

/// The maximum number of connections that wait for the server. The kernel lowers it to its own limit.
const BACKLOG: i32 = 16_384;

/// The time between two measurements of the command's memory.
const LOOK: Duration = Duration::from_millis(20);

/// Fetches `count` pages at once. Returns the time in seconds, and the maximum memory and number of threads of the
/// command or the peer.
pub(super) fn measure(
    peer: &str,
    server: &[String],
    count: u64,
    args: &Args,
    folder: &Path,
) -> Result<Vec<f64>, Error> {
    let (_server, port) = Server::start(server)?;
    let mut command = match peer {
        "threads" => {
            let mut command = Command::new(&server[0]);
            command.args(["fiber", "--alone", &format!("threads fetch {count} {port}")]);
            command
        }
        _ => millstream(&exec::millstream(args)?, port, count, folder)?,
    };
    let program = Path::new(&server[0]);
    let began = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().map_err(Error::at(program))?;
    let (memory, threads) = watch(&mut child).map_err(Error::at(program))?;
    let (seconds, status) = (began.elapsed().as_secs_f64(), child.wait().map_err(Error::at(program))?);
    if status.success() {
        Ok(vec![seconds, memory, threads])
    } else {
        Err(Error::new(format!("{command:?} ended with {status}")))
    }
}

/// The command with a flow that fetches pages from this port.
fn millstream(program: &Path, port: u16, count: u64, folder: &Path) -> Result<Command, Error> {
    let (flow, lines) = (folder.join("fetch.toml"), folder.join("urls"));
    let urls = (0..count).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "http://127.0.0.1:{port}/{number}");
        text
    });
    fs::write(&lines, urls).map_err(Error::at(&lines))?;
    fs::write(&flow, flow_file(count)).map_err(Error::at(&flow))?;
    let mut command = Command::new(program);
    command.arg("run").arg(&flow).arg(&lines).arg("--quiet");
    Ok(command)
}

/// Fetches `count` pages from this port, with a thread for each.
pub(super) fn on_threads(count: u64, port: u16) {
    raise_descriptors();
    let fetch = move || {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the server listens");
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("the server reads");
        let mut page = Vec::new();
        stream.read_to_end(&mut page).expect("the server answers");
        assert!(page.ends_with(b"hello"));
    };
    let threads: Vec<_> = (0..count).map(|_| thread::spawn(fetch)).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("the page is fetched"));
}

fn flow_file(count: u64) -> String {
    format!(
        r#"name = "fetch"
inflight = {count}
[resources]
net = {count}
[source]
lines = "-"
[[stage]]
name = "get"
op = "http-get"
url = "{{line}}"
needs = {{ net = 1 }}
fibers = {count}
timeout = "60s"
[[stage]]
name = "blake3"
op = "blake3"
"#
    )
}

/// Waits for the end of a process, and returns its maximum memory and number of threads.
fn watch(child: &mut Child) -> std::io::Result<(f64, f64)> {
    let (status, mut most) = (format!("/proc/{}/status", child.id()), (0.0_f64, 0.0_f64));
    while child.try_wait()?.is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let threads = text.lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse().ok());
        most = (most.0.max(memory_of(&text)), most.1.max(threads.unwrap_or(0.0)));
        thread::sleep(LOOK);
    }
    Ok(most)
}

/// Serves a page to each client after a delay, until standard input ends.
pub(super) fn serve() {
    raise_descriptors();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    // With std's backlog, the kernel drops some of the simultaneous connections, which are then a second late.
    rustix::net::listen(&listener, BACKLOG).expect("a longer backlog");
    println!("{}", listener.local_addr().expect("an address").port());
    thread::spawn(move || tokio_peer::serve_pages(listener, TIME));
    let _ = std::io::stdin().read(&mut [0]);
}
