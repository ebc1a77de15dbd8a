//! Measures the rate of an echo server on fibers under each model of waiting. Compares it with a hand-written epoll loop and with
//! a thread for each connection.
//!
//! A client thread sends a request over each connection, and the next one as soon as the reply has arrived. The servers are
//! measured in turn, in several rounds; the median of the rounds is printed.
//!
//! `cargo run --release -p millstream-fiber --example echo -- [CONNECTIONS] [ROUNDS]`

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener as StdListener, TcpStream as StdStream};
use std::thread;
use std::time::{Duration, Instant};

use millstream_fiber::net::TcpListener;
use millstream_fiber::{IoModel, Options, Runtime, Threads, spawn};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const MESSAGE: usize = 64;
/// The size of a server's buffer. It is larger than a message, because a server does not know how long messages are.
const BUFFER: usize = 4096;
const ROUND: Duration = Duration::from_secs(1);

/// A server that accepts this number of connections, and returns when all of them have ended.
type Server = fn(StdListener, usize);

/// The servers.
const SERVERS: [(&str, Server); 7] = [
    ("a loop over epoll, by hand", by_hand),
    ("fibers, one worker, readiness", |listener, count| fibers(listener, count, Threads::One, IoModel::Readiness)),
    ("fibers, one worker, completion", |listener, count| fibers(listener, count, Threads::One, IoModel::Completion)),
    ("fibers, one worker, non-blocking", |listener, count| fibers(listener, count, Threads::One, IoModel::NonBlocking)),
    ("fibers, two workers, readiness", |listener, count| {
        fibers(listener, count, Threads::Workers(2), IoModel::Readiness);
    }),
    ("fibers with a thread each, blocking", |listener, count| {
        fibers(listener, count, Threads::OneEach, IoModel::Blocking);
    }),
    ("threads", threads),
];

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>().expect("a number"));
    let (connections, rounds) = (arguments.next().unwrap_or(100), arguments.next().unwrap_or(5));
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    let mut rates = vec![Vec::new(); SERVERS.len()];
    for round in 0..rounds {
        for step in 0..SERVERS.len() {
            let server = (round + step) % SERVERS.len();
            rates[server].push(rate(SERVERS[server].1, connections)?);
        }
    }
    println!("{connections} connections, {MESSAGE} bytes, {rounds} rounds of {ROUND:?}; thousand answers a second");
    let middle = |rates: &mut Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        (rates[rates.len() / 2], rates[0], rates[rates.len() - 1])
    };
    let base = middle(&mut rates[0].clone()).0;
    for ((name, _), rates) in SERVERS.iter().zip(&mut rates) {
        let (median, least, most) = middle(rates);
        println!("{name:37} {median:7.1} ({least:.1} to {most:.1})  {:.2}", median / base);
    }
    Ok(())
}

/// Returns the rate of a server in thousands of replies per second.
fn rate(serve: Server, connections: usize) -> io::Result<f64> {
    let listener = StdListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let server = thread::spawn(move || serve(listener, connections));
    let rate = ask(address, connections)?;
    server.join().expect("the server does not panic");
    Ok(rate)
}

/// Sends requests over all connections until the round ends, and returns the rate.
fn ask(address: SocketAddr, connections: usize) -> io::Result<f64> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut streams = Vec::new();
    for number in 0..connections {
        let stream = StdStream::connect(address)?;
        stream.set_nodelay(true)?;
        epoll::add(&epoll, &stream, EventData::new_u64(number as u64), EventFlags::IN)?;
        streams.push(stream);
    }
    let (mut answers, mut events, mut buf) = (0_u64, Vec::with_capacity(512), [7; MESSAGE]);
    for stream in &mut streams {
        stream.write_all(&buf)?;
    }
    let begun = Instant::now();
    while begun.elapsed() < ROUND {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), None)?;
        for event in events.drain(..) {
            let stream = &mut streams[event.data.u64() as usize];
            stream.read_exact(&mut buf)?;
            stream.write_all(&buf)?;
            answers += 1;
        }
    }
    let rate = answers as f64 / begun.elapsed().as_secs_f64() / 1000.0;
    streams.iter().try_for_each(|stream| stream.shutdown(Shutdown::Both))?;
    Ok(rate)
}

fn answer(mut stream: impl Read + Write) {
    let mut buf = [0; BUFFER];
    while let Ok(bytes @ 1..) = stream.read(&mut buf) {
        if stream.write_all(&buf[..bytes]).is_err() {
            break;
        }
    }
}

fn fibers(listener: StdListener, connections: usize, threads: Threads, io: IoModel) {
    let runtime = Runtime::start(Options::new(threads).io(io)).expect("threads");
    let listener = TcpListener::from_std(listener).expect("a listener");
    runtime.spawn(move || {
        for _ in 0..connections {
            let (stream, _) = listener.accept().expect("a connection");
            stream.set_nodelay(true).expect("a connection");
            spawn(move || answer(stream));
        }
    });
    runtime.finish();
}

#[allow(clippy::needless_pass_by_value, reason = "a server owns its listener")]
fn threads(listener: StdListener, connections: usize) {
    let threads: Vec<_> = (0..connections)
        .map(|_| {
            let (stream, _) = listener.accept().expect("a connection");
            stream.set_nodelay(true).expect("a connection");
            thread::Builder::new().stack_size(64 << 10).spawn(move || answer(stream)).expect("a thread")
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

#[allow(clippy::needless_pass_by_value, reason = "a server owns its listener")]
fn by_hand(listener: StdListener, connections: usize) {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a descriptor");
    listener.set_nonblocking(true).expect("a listener");
    epoll::add(&epoll, &listener, EventData::new_u64(u64::MAX), EventFlags::IN).expect("memory");
    let (mut streams, mut open, mut events) = (Vec::new(), connections, Vec::with_capacity(512));
    while open > 0 {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), None).expect("a wait");
        for event in events.drain(..) {
            let number = event.data.u64();
            if number == u64::MAX {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nodelay(true).expect("a connection");
                    stream.set_nonblocking(true).expect("a connection");
                    epoll::add(&epoll, &stream, EventData::new_u64(streams.len() as u64), EventFlags::IN)
                        .expect("memory");
                    streams.push(Some(stream));
                }
                continue;
            }
            let mut buf = [0; BUFFER];
            let slot = &mut streams[number as usize];
            let Some(stream) = slot.as_mut() else { continue };
            match stream.read(&mut buf) {
                Ok(bytes @ 1..) if stream.write_all(&buf[..bytes]).is_ok() => {}
                _ => {
                    *slot = None;
                    open -= 1;
                }
            }
        }
    }
}
