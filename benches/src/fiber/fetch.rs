//! The command fetches from slow servers, with a fiber or a thread for each request.

use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::net::TcpListener;
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

/// The time between a request and its answer.
const TIME: Duration = Duration::from_secs(10);

/// The time between two looks at the command's memory.
const LOOK: Duration = Duration::from_millis(20);

/// Fetches `count` pages at once, with a fiber for each or, as the peer, a thread. Returns the seconds, the memory of the
/// command and its threads, each at its most.
pub(super) fn measure(
    peer: &str,
    server: &[String],
    count: u64,
    args: &Args,
    folder: &Path,
) -> Result<Vec<f64>, Error> {
    let millstream = exec::millstream(args)?;
    let (_server, port) = Server::start(server)?;
    let (flow, lines) = (folder.join("fetch.toml"), folder.join("urls"));
    let urls = (0..count).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "http://127.0.0.1:{port}/{number}");
        text
    });
    let workers = if peer == "threads" { format!("workers = \"0..{count}\"") } else { format!("fibers = {count}") };
    fs::write(&lines, urls).map_err(Error::at(&lines))?;
    fs::write(&flow, flow_file(count, &workers)).map_err(Error::at(&flow))?;
    let began = Instant::now();
    let mut command = Command::new(&millstream);
    command.arg("run").arg(&flow).arg(&lines).arg("--quiet").stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.spawn().map_err(Error::at(&millstream))?;
    let (most_memory, most_threads) = watch(&mut child).map_err(Error::at(&millstream))?;
    let status = child.wait().map_err(Error::at(&millstream))?;
    if !status.success() {
        return Err(Error::new(format!("{command:?} ended with {status}")));
    }
    Ok(vec![began.elapsed().as_secs_f64(), most_memory, most_threads])
}

fn flow_file(count: u64, workers: &str) -> String {
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
{workers}
timeout = "60s"
[[stage]]
name = "blake3"
op = "blake3"
"#
    )
}

/// Waits for the end of a process, and returns the most memory and threads that it has had.
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

/// Serves a page to each client, late, until standard input ends.
pub(super) fn serve() {
    raise_descriptors();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    println!("{}", listener.local_addr().expect("an address").port());
    thread::spawn(move || tokio_peer::serve_pages(listener, TIME));
    let _ = std::io::stdin().read(&mut [0]);
}
