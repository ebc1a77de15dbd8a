//! Faults under every model: calls that are interrupted, late, short or failed.

use std::io::{self, Read, Write};
use std::net::Shutdown;

use millstream_verify_random::{Random, seed, stress};

use super::fault::{FAILURE, Plan};
use crate::fs::File;
use crate::net::{TcpListener, TcpStream};
use crate::{IoModel, Options, Runtime, Threads};

const MODELS: [IoModel; 4] = [IoModel::Blocking, IoModel::NonBlocking, IoModel::Readiness, IoModel::Completion];

fn is_planned(error: &io::Error) -> bool {
    error.to_string() == FAILURE
}

/// Sends bytes through a connection and back, and says whether all came back. A failure of one side ends the other.
fn round_trip(runtime: &Runtime, sent: Vec<u8>) -> io::Result<bool> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let server = runtime.spawn(move || -> io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        let mut buf = [0; 512];
        loop {
            match stream.read(&mut buf)? {
                0 => return Ok(()),
                bytes => stream.write_all(&buf[..bytes])?,
            }
        }
    });
    let client = runtime.spawn(move || -> io::Result<bool> {
        let stream = TcpStream::connect_to(&address)?;
        let mut got = Vec::new();
        crate::scope(|scope| {
            let writer = scope.spawn(|| {
                let written = (&stream).write_all(&sent);
                stream.shutdown(Shutdown::Write).and(written)
            });
            let read = (&stream).read_to_end(&mut got);
            if read.is_err() {
                // The writer may wait for room that no reader makes.
                let _ = stream.shutdown(Shutdown::Both);
            }
            first_cause(read.map(drop), writer.join().expect("the writer does not panic"))
        })?;
        Ok(got == sent)
    });
    let client = client.join().unwrap();
    if client.is_err() {
        // The server may wait for a connection that never begins.
        server.cancel();
    }
    let server = server.join().unwrap_or(Ok(()));
    let is_whole = *client.as_ref().unwrap_or(&false);
    first_cause(client.map(drop), server).map(|()| is_whole)
}

/// The planned failure, where one side has failed as planned and the other sees a peer that has vanished.
fn first_cause(one: io::Result<()>, other: io::Result<()>) -> io::Result<()> {
    match (one, other) {
        (Err(error), Err(planned)) if is_planned(&planned) => {
            assert!(!matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted), "{error}");
            Err(planned)
        }
        (one, other) => one.and(other),
    }
}

#[test]
fn bytes_arrive_or_the_failure_is_told() {
    let mut random = Random::new(seed());
    for io in MODELS {
        let runtime = Runtime::start(Options::new(Threads::Workers(2)).io(io)).unwrap();
        let (mut whole, mut failed) = (0, 0);
        for _ in 0..20 * stress() {
            let plan_seed = random.next();
            let length = random.below(6000) as usize;
            let plan = Plan::begin(plan_seed);
            match round_trip(&runtime, (0..length).map(|n| (n * 31) as u8).collect()) {
                Ok(is_whole) => {
                    assert!(is_whole, "{io:?}, plan {plan_seed}: bytes are missing or others");
                    whole += 1;
                }
                Err(error) => {
                    assert!(is_planned(&error), "{io:?}, plan {plan_seed}: {error}");
                    failed += 1;
                }
            }
            drop(plan);
        }
        println!("{io:?}: {whole} whole, {failed} failed");
        files_are_whole(&runtime, random.next());
    }
}

/// Short reads and writes of files are put together.
fn files_are_whole(runtime: &Runtime, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let plan = Plan::begin(seed);
    let fiber = runtime.spawn(move || {
        let content: Vec<u8> = (0..3000_u32).map(|n| (n % 253) as u8).collect();
        File::create(&path).unwrap().write_all(&content).unwrap();
        let mut got = Vec::new();
        File::open(&path).unwrap().read_to_end(&mut got).unwrap();
        assert!(got == content);
    });
    fiber.join().unwrap();
    drop(plan);
}
