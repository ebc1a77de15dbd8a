//! Tests of sockets, files and processes, under each threading model and each model of waiting.

#[path = "support/io_models.rs"]
mod io_models;

use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::net::Shutdown;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use io_models::under_each_io;
use millstream_fiber::fs::File;
use millstream_fiber::net::{TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream};
use millstream_fiber::{JoinError, JoinHandle, Options, Runtime, Threads, is_cancelled, process, sleep, yield_now};

const BRIEF: Duration = Duration::from_millis(20);

fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let one = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (other, _) = listener.accept().unwrap();
    (TcpStream::from_std(one).unwrap(), TcpStream::from_std(other).unwrap())
}

/// Returns bytes whose values depend on their positions.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n * 7 + n / 251) as u8).collect()
}

#[test]
fn connections_carry_all_bytes_both_ways() {
    const CONNECTIONS: usize = 8;
    under_each_io(|runtime| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = runtime.spawn(move || {
            for _ in 0..CONNECTIONS {
                let (mut stream, _) = listener.accept().unwrap();
                millstream_fiber::spawn(move || io::copy(&mut &stream, &mut { &stream }).and_then(|_| stream.flush()));
            }
        });
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|n| {
                runtime.spawn(move || {
                    let stream = TcpStream::connect(address).unwrap();
                    let sent = pattern(30_000 + 7777 * n);
                    let mut got = Vec::new();
                    millstream_fiber::scope(|scope| {
                        scope.spawn(|| {
                            (&stream).write_all(&sent).unwrap();
                            stream.shutdown(Shutdown::Write).unwrap();
                        });
                        (&stream).read_to_end(&mut got).unwrap();
                    });
                    assert!(got == sent, "{} of {} bytes", got.len(), sent.len());
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        server.join().unwrap();
    });
}

#[test]
fn a_write_waits_for_room_and_a_read_for_data() {
    under_each_io(|runtime| {
        let (mut full, mut slow) = UnixStream::pair().unwrap();
        let sent = pattern(600_000);
        let expected = sent.clone();
        let writer = runtime.spawn(move || full.write_all(&sent).unwrap());
        let reader = runtime.spawn(move || {
            let mut got = Vec::new();
            let mut piece = vec![0; 50_000];
            while got.len() < expected.len() {
                sleep(Duration::from_millis(1));
                let bytes = slow.read(&mut piece).unwrap();
                got.extend_from_slice(&piece[..bytes]);
            }
            assert!(got == expected);
        });
        writer.join().unwrap();
        reader.join().unwrap();
    });
}

#[test]
fn a_time_limit_ends_one_read_and_not_the_next() {
    under_each_io(|runtime| {
        let (mut quiet, mut peer) = tcp_pair();
        let reader = runtime.spawn(move || {
            quiet.set_read_timeout(Some(BRIEF)).unwrap();
            let begun = Instant::now();
            let error = quiet.read(&mut [0; 8]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            assert!(begun.elapsed() >= BRIEF);
            peer.write_all(b"later").unwrap();
            quiet.set_read_timeout(None).unwrap();
            let mut text = [0; 5];
            quiet.read_exact(&mut text).unwrap();
            assert_eq!(&text, b"later");
            assert!(quiet.set_read_timeout(Some(Duration::ZERO)).is_err());
        });
        reader.join().unwrap();
    });
}

#[test]
fn peers_that_vanish_end_reads_and_fail_writes() {
    under_each_io(|runtime| {
        let (mut left, gone) = tcp_pair();
        let reader = runtime.spawn(move || {
            let bytes = left.read(&mut [0; 8]).unwrap();
            let error = (0..1000).find_map(|_| left.write(&[0; 4096]).err()).expect("a write fails");
            assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
            bytes
        });
        thread::sleep(Duration::from_millis(5));
        drop(gone);
        assert_eq!(reader.join().unwrap(), 0);
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let refused = runtime.spawn(move || TcpStream::connect_to(&free).unwrap_err());
        assert_eq!(refused.join().unwrap().kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn fibers_of_several_workers_share_a_listener_and_a_socket() {
    under_each_io(|runtime| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = Arc::new(UnixListener::bind(&path).unwrap());
        let accepted = Arc::new(AtomicUsize::new(0));
        let acceptors: Vec<_> = (0..4)
            .map(|_| {
                let (listener, accepted) = (Arc::clone(&listener), Arc::clone(&accepted));
                runtime.spawn(move || {
                    while let Ok((mut stream, _)) = listener.accept() {
                        accepted.fetch_add(1, SeqCst);
                        let _ = stream.write_all(b"x");
                    }
                })
            })
            .collect();
        let clients: Vec<_> = (0..40)
            .map(|_| {
                let path = path.clone();
                runtime.spawn(move || UnixStream::connect(path).unwrap().read_exact(&mut [0]).unwrap())
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        assert_eq!(accepted.load(SeqCst), 40);
        acceptors.iter().for_each(JoinHandle::cancel);
        acceptors.into_iter().for_each(|acceptor| assert!(acceptor.join().is_err()));
    });
}

#[test]
fn datagrams_arrive_whole_and_time_limits_hold() {
    under_each_io(|runtime| {
        let (one, other) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let address = other.local_addr().unwrap();
        let receiver = runtime.spawn(move || {
            let mut buf = [0; 100];
            let (bytes, from) = other.recv_from(&mut buf).unwrap();
            other.connect(from).unwrap();
            other.send(&buf[..bytes]).unwrap();
            other.set_read_timeout(Some(BRIEF)).unwrap();
            assert_eq!(other.recv(&mut buf).unwrap_err().kind(), ErrorKind::TimedOut);
        });
        let sender = runtime.spawn(move || {
            one.send_to(b"ping", &address).unwrap();
            let mut buf = [0; 100];
            assert_eq!(one.recv(&mut buf).unwrap(), 4);
        });
        sender.join().unwrap();
        receiver.join().unwrap();
    });
}

#[test]
fn files_are_read_and_written_at_their_position_and_elsewhere() {
    under_each_io(|runtime| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let fiber = runtime.spawn(move || {
            let content = pattern(300_000);
            let mut file = File::create(&path).unwrap();
            file.write_all(&content[..100_000]).unwrap();
            file.write_all(&content[100_000..]).unwrap();
            file.sync_data().unwrap();
            let mut file = File::open(&path).unwrap();
            let mut got = Vec::new();
            file.read_to_end(&mut got).unwrap();
            assert!(got == content);
            assert_eq!(file.seek(SeekFrom::Start(5)).unwrap(), 5);
            let mut three = [0; 3];
            assert_eq!(file.read_at(&mut three, 200_000).unwrap(), 3);
            assert_eq!(three, content[200_000..200_003]);
            file.read_exact(&mut three).unwrap();
            assert_eq!(three, content[5..8]);
            assert_eq!(file.metadata().unwrap().len(), 300_000);
            assert_eq!(file.read_at(&mut three, 300_000).unwrap(), 0);
            assert!(file.write(b"x").is_err(), "it was opened to be read");
            assert_eq!(File::open(path.join("no")).unwrap_err().kind(), ErrorKind::NotADirectory);
        });
        fiber.join().unwrap();
    });
}

#[test]
fn fibers_that_share_a_file_share_its_position() {
    const FIBERS: u8 = 6;
    const RECORDS: usize = 100;
    under_each_io(|runtime| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = File::from(std::fs::File::create_new(&path).unwrap());
        let writers: Vec<_> = (0..FIBERS)
            .map(|n| {
                let mut file = file.try_clone().unwrap();
                runtime.spawn(move || (0..RECORDS).for_each(|_| file.write_all(&[n; 8]).unwrap()))
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        let file = Arc::new(File::from(std::fs::File::open(&path).unwrap()));
        let readers: Vec<_> = (0..FIBERS)
            .map(|_| {
                let file = Arc::clone(&file);
                runtime.spawn(move || {
                    let (mut record, mut counts) = ([0; 8], [0; FIBERS as usize]);
                    while (&*file).read(&mut record).unwrap() == 8 {
                        assert_eq!(record, [record[0]; 8], "a record is whole");
                        counts[usize::from(record[0])] += 1;
                    }
                    counts
                })
            })
            .collect();
        let mut sums = [0; FIBERS as usize];
        for reader in readers {
            sums.iter_mut().zip(reader.join().unwrap()).for_each(|(sum, count)| *sum += count);
        }
        assert_eq!(sums, [RECORDS; FIBERS as usize], "each record is written and read once");
    });
}

#[test]
fn processes_end_and_their_pipes_are_read_at_the_same_time() {
    under_each_io(|runtime| {
        let fiber = runtime.spawn(|| {
            // The script writes more to each pipe than the pipe has room for.
            let script = "head -c 200000 /dev/zero; head -c 200000 /dev/zero >&2; exit 3";
            let output = process::output(Command::new("sh").args(["-c", script])).unwrap();
            assert_eq!((output.stdout.len(), output.stderr.len(), output.status.code()), (200_000, 200_000, Some(3)));
            let mut cat = process::spawn(Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped())).unwrap();
            cat.stdin.as_mut().unwrap().write_all(b"through").unwrap();
            let output = cat.wait_with_output().unwrap();
            assert_eq!(output.stdout, b"through");
            let mut asleep = process::spawn(Command::new("sleep").arg("1000")).unwrap();
            assert!(asleep.try_wait().unwrap().is_none());
            asleep.kill().unwrap();
            assert!(!asleep.wait().unwrap().success());
            assert!(process::spawn(&mut Command::new("/no/such/program")).is_err());
        });
        fiber.join().unwrap();
    });
}

#[test]
fn every_kind_of_wait_is_cancelled() {
    under_each_io(|runtime| {
        let (mut quiet, _peer) = tcp_pair();
        let (mut full, _unread) = UnixStream::pair().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut child = process::spawn(Command::new("sleep").arg("1000")).unwrap();
        let pid = child.id();
        let (waiting, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let waits: Vec<Box<dyn FnOnce() + Send>> = vec![
            Box::new(move || drop(quiet.read(&mut [0; 8]))),
            Box::new(move || drop(full.write_all(&vec![0; 1 << 24]))),
            Box::new(move || drop(listener.accept())),
            Box::new(move || drop(socket.recv(&mut [0; 8]))),
            Box::new(move || drop(child.wait())),
        ];
        let count = waits.len();
        let fibers: Vec<_> = waits
            .into_iter()
            .map(|wait| {
                let (waiting, ended) = (Arc::clone(&waiting), Arc::clone(&ended));
                runtime.spawn(move || {
                    waiting.fetch_add(1, SeqCst);
                    wait();
                    ended.fetch_add(1, SeqCst);
                })
            })
            .collect();
        while waiting.load(SeqCst) < count {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(5));
        fibers.iter().for_each(JoinHandle::cancel);
        fibers.into_iter().for_each(|fiber| assert!(fiber.join().is_err()));
        assert_eq!(ended.load(SeqCst), 0);
        let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
        assert!(killed.success());
    });
}

/// Waits in its destructor. While its fiber unwinds, the panic flag of the thread is set for the other fibers as well.
struct WaitsInDrop;

impl Drop for WaitsInDrop {
    fn drop(&mut self) {
        sleep(BRIEF * 5);
    }
}

#[test]
fn a_wait_that_began_while_a_neighbour_unwound_is_cancelled_afterwards() {
    under_each_io(|runtime| {
        let unwinding = runtime.spawn(|| {
            let _waits = WaitsInDrop;
            sleep(Duration::from_secs(1000));
        });
        thread::sleep(BRIEF);
        unwinding.cancel();
        thread::sleep(BRIEF);
        let (mut quiet, _peer) = tcp_pair();
        let reader = runtime.spawn(move || quiet.read(&mut [0; 8]).unwrap_err());
        assert!(unwinding.join().is_err());
        thread::sleep(BRIEF);
        reader.cancel();
        // The peer still exists, so only the cancellation can have ended the wait.
        assert!(reader.join().is_err());
    });
}

#[test]
fn a_call_that_need_not_wait_is_cancelled_all_the_same() {
    under_each_io(|runtime| {
        let (mut stream, mut peer) = UnixStream::pair().unwrap();
        let writer = runtime.spawn(move || {
            while !is_cancelled() {
                std::hint::spin_loop();
            }
            stream.write_all(b"late")
        });
        thread::sleep(Duration::from_millis(2));
        writer.cancel();
        assert!(matches!(writer.join(), Err(JoinError::Cancelled)));
        assert_eq!(peer.read(&mut [0; 8]).unwrap(), 0);
    });
}

#[test]
fn a_cancelled_output_leaves_no_process() {
    under_each_io(|runtime| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid");
        let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000", path.display());
        let output = runtime.spawn(move || process::output(Command::new("sh").args(["-c", &script])).map(drop));
        while !path.exists() {
            thread::yield_now();
        }
        let pid = std::fs::read_to_string(&path).unwrap();
        assert!(std::fs::exists(format!("/proc/{}", pid.trim())).unwrap());
        output.cancel();
        assert!(matches!(output.join(), Err(JoinError::Cancelled)));
        assert!(!std::fs::exists(format!("/proc/{}", pid.trim())).unwrap());
    });
}

#[test]
fn output_without_room_for_a_fiber_is_an_error() {
    let runtime = Runtime::start(Options::new(Threads::One).max_fibers(1)).unwrap();
    let output = runtime.spawn(|| process::output(Command::new("echo").arg("x")).map(|output| output.stdout));
    let error = output.join().unwrap().unwrap_err();
    assert!(error.to_string().contains("max_fibers"), "{error}");
}

#[test]
fn a_flood_does_not_keep_its_neighbours_from_running() {
    for io in io_models::IO_MODELS {
        println!("{io:?}");
        let runtime = Runtime::start(Options::new(Threads::One).io(io)).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let flood = {
            let is_over = Arc::clone(&is_over);
            runtime.spawn(move || {
                let mut zeros = File::open("/dev/zero").unwrap();
                while !is_over.load(SeqCst) {
                    zeros.read_exact(&mut [0; 16]).unwrap();
                }
            })
        };
        runtime.spawn(|| (0..10).for_each(|_| yield_now())).join().unwrap();
        is_over.store(true, SeqCst);
        flood.join().unwrap();
    }
}

#[test]
fn a_dump_names_the_wait() {
    let runtime = Runtime::start(Options::new(Threads::One)).unwrap();
    let (mut quiet, _peer) = tcp_pair();
    let reader = runtime.spawn(move || drop(quiet.read(&mut [0; 8])));
    let begun = Instant::now();
    while !runtime.dump().to_string().contains("waiting to read at crates/fiber/tests/io.rs") {
        assert!(begun.elapsed() < Duration::from_secs(120), "{}", runtime.dump());
        thread::yield_now();
    }
    reader.cancel();
}

#[test]
fn the_same_body_blocks_a_thread() {
    let (mut one, mut other) = tcp_pair();
    let writer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(5));
        other.write_all(b"from a thread").unwrap();
    });
    let mut text = String::new();
    one.read_to_string(&mut text).unwrap();
    assert_eq!(text, "from a thread");
    writer.join().unwrap();
    assert_eq!(process::output(Command::new("echo").arg("x")).unwrap().stdout, b"x\n");
    let listener = TcpListener::bind("localhost:0").unwrap();
    let stream = TcpStream::connect_timeout(&listener.local_addr().unwrap(), Duration::from_secs(10)).unwrap();
    stream.set_read_timeout(Some(BRIEF)).unwrap();
    assert_eq!((&stream).read(&mut [0]).unwrap_err().kind(), ErrorKind::TimedOut);
}
