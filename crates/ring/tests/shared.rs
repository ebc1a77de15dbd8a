//! A ring between processes: this test runs itself as the other process.
#![cfg(all(target_os = "linux", not(loom)))]

#[path = "support/length.rs"]
mod length;

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use length::stress;
use millstream_ring::shared::{AttachError, Consumer, Producer};

const SLOTS: usize = 64;

/// A file in memory that children inherit.
fn memory() -> File {
    // SAFETY: a valid name; the descriptor is ours.
    let descriptor = unsafe { libc::memfd_create(c"ring".as_ptr(), 0) };
    assert!(descriptor >= 0);
    // SAFETY: just made, and owned by nobody else.
    unsafe { File::from_raw_fd(descriptor) }
}

/// Runs the (ignored) test `role` of this file in a process of its own.
fn child(role: &str, memory: &File) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", role])
        .env("MILLSTREAM_TEST_RING", memory.as_raw_fd().to_string())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

/// The file the parent passed.
fn inherited() -> Option<File> {
    let descriptor = std::env::var("MILLSTREAM_TEST_RING").ok()?.parse().unwrap();
    // SAFETY: the parent left it open for us.
    Some(unsafe { File::from_raw_fd(descriptor) })
}

fn signal(child: &Child, signal: libc::c_int) {
    // SAFETY: our child, not yet waited for.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, signal) }, 0);
}

#[test]
#[ignore = "run by other tests, as a process of its own"]
fn counting_producer() {
    let Some(file) = inherited() else { return };
    let mut producer = Producer::<u64>::attach(&file, SLOTS).unwrap();
    // It goes on where a predecessor stopped: the event is its position.
    loop {
        let first = producer.position();
        producer.send_all(&[first, first + 1, first + 2]);
    }
}

#[test]
#[ignore = "run by other tests, as a process of its own"]
fn forgetful_consumer() {
    let Some(file) = inherited() else { return };
    let mut consumer = Consumer::<u64>::attach(&file, SLOTS).unwrap();
    let last = consumer.position() + 100;
    loop {
        consumer.handle(|&event| {
            if event == last {
                // In the middle of an event.
                std::process::abort();
            }
        });
    }
}

#[test]
fn a_stopped_producer_stops_nothing_but_itself() {
    let memory = memory();
    let mut consumer = Consumer::<u64>::attach(&memory, SLOTS).unwrap();
    let mut producer = child("counting_producer", &memory);
    let mut next = 0;
    for round in 0..20 * stress() {
        let end = Instant::now() + Duration::from_millis(10);
        while Instant::now() < end {
            if consumer.handle_deadline(end, |&event| assert_eq!(event, next)).is_some() {
                next += 1;
            }
        }
        signal(&producer, libc::SIGSTOP);
        // What was published before is there; then nothing comes, and nothing hangs.
        let soon = Instant::now() + Duration::from_millis(5 + round % 3);
        while consumer.handle_deadline(soon, |&event| assert_eq!(event, next)).is_some() {
            next += 1;
        }
        signal(&producer, libc::SIGCONT);
    }
    assert!(next > 1000, "only {next} events");
    producer.kill().unwrap();
    producer.wait().unwrap();
    // The next producer takes over.
    let mut successor = child("counting_producer", &memory);
    for _ in 0..1000 {
        consumer.handle(|&event| assert_eq!(event, next));
        next += 1;
    }
    successor.kill().unwrap();
    successor.wait().unwrap();
}

#[test]
fn a_consumer_that_crashes_comes_back_at_its_position() {
    let memory = memory();
    let mut producer = child("counting_producer", &memory);
    for crash in 1..=5u64 {
        let status = child("forgetful_consumer", &memory).wait().unwrap();
        assert!(!status.success());
        let consumer = Consumer::<u64>::attach(&memory, SLOTS).unwrap();
        assert_eq!(consumer.position(), 100 * crash, "the event it crashed in is not consumed");
    }
    let mut consumer = Consumer::<u64>::attach(&memory, SLOTS).unwrap();
    for expected in 500..1000 {
        consumer.handle(|&event| assert_eq!(event, expected));
    }
    producer.kill().unwrap();
    producer.wait().unwrap();
}

#[test]
fn a_full_ring_makes_its_producer_wait() {
    let memory = memory();
    let mut producer = Producer::<[u32; 3]>::attach(&memory, 4).unwrap();
    let mut consumer = Consumer::<[u32; 3]>::attach(&memory, 4).unwrap();
    (0..4).for_each(|n| assert!(producer.try_send([n; 3])));
    assert!(!producer.try_send([9; 3]));
    assert!(!producer.send_deadline([9; 3], Instant::now() + Duration::from_millis(2)));
    std::thread::scope(|scope| {
        scope.spawn(|| producer.send_all(&[[4; 3], [5; 3], [6; 3]]));
        std::thread::sleep(Duration::from_millis(5));
        (0..7).for_each(|n| consumer.handle(|event| assert_eq!(*event, [n; 3])));
    });
    assert_eq!(consumer.try_handle(|_| ()), None);
}

#[test]
fn a_role_is_for_one() {
    let memory = memory();
    let producer = Producer::<u64>::attach(&memory, 4).unwrap();
    assert!(matches!(Producer::<u64>::attach(&memory, 4), Err(AttachError::Taken("producer"))));
    drop(producer);
    Producer::<u64>::attach(&memory, 4).unwrap();
}

#[test]
fn another_kind_of_file_is_refused() {
    let ring = memory();
    drop(Producer::<u64>::attach(&ring, 4).unwrap());
    let error = Consumer::<u32>::attach(&ring, 4).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the file holds a ring of 4 slots of 8 bytes, aligned to 8, expected was one of 4 slots of 4 bytes, aligned to 4"
    );
    assert!(matches!(Consumer::<u64>::attach(&ring, 8), Err(AttachError::Mismatch { .. })));
    let text = memory();
    text.set_len(4096).unwrap();
    std::os::unix::fs::FileExt::write_at(&text, b"# Notes, not a ring", 0).unwrap();
    assert!(matches!(Consumer::<u64>::attach(&text, 4), Err(AttachError::NotARing)));
    assert!(matches!(Consumer::<u64>::attach(&File::open("/dev/null").unwrap(), 4), Err(AttachError::Io(_))));
}
