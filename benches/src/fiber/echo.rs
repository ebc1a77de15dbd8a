//! The load of an echo server, and its response time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};

use super::alone::raise_descriptors;
use crate::error::Error;

/// The size of a request and its response, in bytes.
const MESSAGE: usize = 64;

/// The time for which responses are counted.
const TIME: Duration = Duration::from_secs(1);

/// A server in a separate process, which ends when this value is dropped.
pub(super) struct Server(Child);

impl Server {
    /// Starts a server that prints its port.
    pub(super) fn start(command: &[String]) -> Result<(Self, u16), Error> {
        let program = Path::new(&command[0]);
        let started = Command::new(program).args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut server = Server(started.map_err(Error::at(program))?);
        let mut line = String::new();
        let stdout = server.0.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).map_err(Error::at(program))?;
        let port = line.trim().parse();
        let port = port.map_err(|_| Error::new(format!("{command:?} printed `{line}`, and not its port")))?;
        Ok((server, port))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may already have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server, and sends requests over all connections, each as soon as the previous response has arrived. Returns
/// the time per response, in nanoseconds.
pub(super) fn measure(command: &[String], connections: u64, is_quick: bool) -> Result<f64, Error> {
    let (_server, port) = Server::start(command)?;
    let time = if is_quick { TIME / 50 } else { TIME };
    ask((Ipv4Addr::LOCALHOST, port).into(), connections, time)
        .map_err(|error| Error::new(format!("{command:?}: {error}")))
}

fn ask(address: SocketAddr, connections: u64, time: Duration) -> std::io::Result<f64> {
    raise_descriptors();
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let (mut streams, mut buf) = (Vec::new(), [7; MESSAGE]);
    for number in 0..connections {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        // Each connection is served once before the clock starts.
        stream.write_all(&buf)?;
        stream.read_exact(&mut buf)?;
        epoll::add(&epoll, &stream, EventData::new_u64(number), EventFlags::IN)?;
        streams.push(stream);
    }
    for stream in &mut streams {
        stream.write_all(&buf)?;
    }
    let (mut answers, mut events) = (0_u64, Vec::with_capacity(512));
    let began = Instant::now();
    while began.elapsed() < time || answers == 0 {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), None)?;
        for event in events.drain(..) {
            let stream = &mut streams[event.data.u64() as usize];
            stream.read_exact(&mut buf)?;
            stream.write_all(&buf)?;
            answers += 1;
        }
    }
    Ok(began.elapsed().as_nanos() as f64 / answers as f64)
}
