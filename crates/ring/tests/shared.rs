//! A ring between processes: this test runs itself as the other process.
#![cfg(all(target_os = "linux", not(loom)))]

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use millstream_ring::shared::{AttachError, Consumer, Producer};
use millstream_verify_random::stress;

const SLOTS: usize = 64;

/// Longer than any required event takes, however busy the machine is.
const LONG: Duration = Duration::from_secs(120);

/// A file in memory that children inherit.
fn memory() -> File {
    // SAFETY: the name is a valid C string.
    let descriptor = unsafe { libc::memfd_create(c"ring".as_ptr(), libc::MFD_ALLOW_SEALING) };
    assert!(descriptor >= 0);
    // SAFETY: the descriptor was just made and has no other owner.
    unsafe { File::from_raw_fd(descriptor) }
}

/// Runs the (ignored) test `role` of this file in another process.
fn child(role: &str, memory: &File) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", role])
        .env("MILLSTREAM_TEST_RING", memory.as_raw_fd().to_string())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

/// The file that the parent passed.
fn inherited() -> Option<File> {
    let descriptor = std::env::var("MILLSTREAM_TEST_RING").ok()?.parse().unwrap();
    // SAFETY: the parent left the descriptor open for this process, which has no other owner of it.
    Some(unsafe { File::from_raw_fd(descriptor) })
}

fn signal(child: &Child, signal: libc::c_int) {
    // SAFETY: the process is our child and has not been waited for, so its id is still its own.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, signal) }, 0);
}

#[test]
#[ignore = "run by other tests, as a process of its own"]
fn counting_producer() {
    let Some(file) = inherited() else { return };
    let mut producer = Producer::<u64>::attach(&file, SLOTS).unwrap();
    // Each event is its own position, so this continues where a predecessor stopped.
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
                // This kills the process in the middle of an event.
                std::process::abort();
            }
        });
    }
}

#[test]
fn a_stopped_producer_does_not_block_the_consumer() {
    let memory = memory();
    let mut consumer = Consumer::<u64>::attach(&memory, SLOTS).unwrap();
    let mut producer = child("counting_producer", &memory);
    // The producer's process takes time to start.
    let late = Instant::now() + LONG;
    assert_eq!(consumer.handle_deadline(late, |&event| event), Some(0));
    let (mut next, mut round) = (1, 0);
    while round < 20 * stress() || next <= 1000 {
        assert!(round < 20 * stress() || Instant::now() < late, "only {next} events");
        round += 1;
        let end = Instant::now() + Duration::from_millis(10);
        while Instant::now() < end {
            if consumer.handle_deadline(end, |&event| assert_eq!(event, next)).is_some() {
                next += 1;
            }
        }
        signal(&producer, libc::SIGSTOP);
        // The events published before the stop arrive. Then no more arrive, and no call hangs.
        let soon = Instant::now() + Duration::from_millis(5 + round % 3);
        while consumer.handle_deadline(soon, |&event| assert_eq!(event, next)).is_some() {
            next += 1;
        }
        signal(&producer, libc::SIGCONT);
    }
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
fn the_successor_of_a_crashed_consumer_continues_at_its_position() {
    let memory = memory();
    let mut producer = child("counting_producer", &memory);
    for crash in 1..=5u64 {
        let status = child("forgetful_consumer", &memory).wait().unwrap();
        assert!(!status.success());
        let consumer = Consumer::<u64>::attach(&memory, SLOTS).unwrap();
        assert_eq!(consumer.position(), 100 * crash, "the event in which it crashed was consumed");
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
fn a_role_has_one_holder() {
    let memory = memory();
    let producer = Producer::<u64>::attach(&memory, 4).unwrap();
    assert!(matches!(Producer::<u64>::attach(&memory, 4), Err(AttachError::Taken("producer"))));
    drop(producer);
    Producer::<u64>::attach(&memory, 4).unwrap();
}

/// Creates the state of a producer that was killed after it published its first event and before it woke the consumer.
/// The offsets are those of the documented layout.
fn publish_and_be_killed(memory: &File, event: u64) {
    const PUBLISHED: u64 = 128;
    const SLOT_0: u64 = 640;
    memory.write_all_at(&event.to_ne_bytes(), SLOT_0).unwrap();
    memory.write_all_at(&1u64.to_ne_bytes(), PUBLISHED).unwrap();
}

/// The time that a sleeping consumer takes to see an event whose producer did not wake it. `meanwhile` runs after the
/// event is published.
fn unseen_for(meanwhile: impl FnOnce(&File)) -> Duration {
    let memory = memory();
    let mut consumer = Consumer::<u64>::attach(&memory, SLOTS).unwrap();
    std::thread::scope(|scope| {
        let consumer = scope.spawn(move || {
            let late = Instant::now() + LONG;
            assert_eq!(consumer.handle_deadline(late, |&event| event), Some(7));
            Instant::now()
        });
        std::thread::sleep(Duration::from_millis(50));
        publish_and_be_killed(&memory, 7);
        let published = Instant::now();
        meanwhile(&memory);
        consumer.join().unwrap() - published
    })
}

#[test]
fn an_event_without_a_wake_up_is_seen_by_the_consumer_s_own_check() {
    let unseen = unseen_for(|_| ());
    assert!(unseen < LONG / 2, "{unseen:?}");
}

#[test]
fn an_event_without_a_wake_up_is_seen_when_the_next_producer_attaches() {
    // The machine may be busy, but the shortest of several times is below the second after which a sleeper checks on
    // its own.
    let attach = |memory: &File| drop(Producer::<u64>::attach(memory, SLOTS).unwrap());
    let soonest = (0..5).map(|_| unseen_for(attach)).min().unwrap();
    assert!(soonest < Duration::from_millis(500), "{soonest:?}");
}

#[test]
fn events_that_are_handled_together_are_consumed_together() {
    let memory = memory();
    let mut producer = Producer::<u64>::attach(&memory, 8).unwrap();
    let mut consumer = Consumer::<u64>::attach(&memory, 8).unwrap();
    let mut handled = Vec::new();
    assert_eq!(consumer.try_handle_many(9, |_| ()), 0);
    assert_eq!(consumer.handle_many_deadline(9, Instant::now() + Duration::from_millis(2), |_| ()), 0);
    producer.send_all(&[0, 1, 2, 3, 4]);
    assert_eq!((consumer.handle_many(0, |_| ()), consumer.position()), (0, 0));
    assert_eq!(consumer.handle_many(2, |&event| handled.push(event)), 2);
    assert_eq!(consumer.handle_many_deadline(9, Instant::now(), |&event| handled.push(event)), 3);
    assert_eq!((handled, consumer.position()), (vec![0, 1, 2, 3, 4], 5));

    producer.send_all(&[5, 6, 7]);
    let fails_at_6 = std::panic::AssertUnwindSafe(|| {
        consumer.handle_many(9, |&event| {
            if event == 6 {
                std::panic::resume_unwind(Box::new("in a handler"))
            }
        });
    });
    assert!(std::panic::catch_unwind(fails_at_6).is_err());
    assert_eq!(consumer.position(), 5, "an event of the batch was consumed");
    assert_eq!(consumer.try_handle_many(9, |&event| assert!(event >= 5)), 3);
}

#[test]
fn batches_make_room_for_a_producer_that_waits() {
    let memory = memory();
    let mut producer = Producer::<u64>::attach(&memory, 16).unwrap();
    let mut consumer = Consumer::<u64>::attach(&memory, 16).unwrap();
    let events = 20_000 * stress();
    std::thread::scope(|scope| {
        scope.spawn(move || (0..events).for_each(|event| producer.send(event)));
        let mut next = 0;
        while next < events {
            let handled = consumer.handle_many(10, |&event| {
                assert_eq!(event, next);
                next += 1;
            });
            assert!((1..=10).contains(&handled));
        }
    });
}

#[test]
fn another_kind_of_file_is_refused() {
    let ring = memory();
    drop(Producer::<u64>::attach(&ring, 4).unwrap());
    let error = Consumer::<u32>::attach(&ring, 4).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the file holds a ring of 4 slots of 8 bytes, aligned to 8, expected one of 4 slots of 4 bytes, aligned to 4"
    );
    assert!(matches!(Consumer::<u64>::attach(&ring, 8), Err(AttachError::Mismatch { .. })));
}

/// A file that begins with these bytes, followed by zeros.
fn foreign(beginning: &[u8], bytes: u64) -> File {
    let file = memory();
    file.set_len(bytes).unwrap();
    file.write_all_at(beginning, 0).unwrap();
    file
}

#[test]
fn a_file_that_is_no_ring_is_refused_and_nothing_is_written_to_it() {
    // A ring of 4 numbers has 672 bytes.
    let foreign_files: [(&[u8], u64, &str); 7] = [
        (b"# Notes, not a ring", 4096, "found 4096 that begin with \"# Notes,\""),
        (b"MSTRING1", 672, "found 672 that begin with \"MSTRING1\""),
        (b"brief", 5, "found 5 that begin with \"brief\""),
        (b"", 4096, "found 4096 that begin with \"\\x00"),
        (b"", 8, "found 8 that begin with \"\\x00"),
        (b"\0\0\0\0\0\0\0\0and then something else", 4096, "found 4096"),
        (b"\0\0\0\0\0\0\0\0and then something else", 672, "found 672"),
    ];
    for (beginning, bytes, found) in foreign_files {
        let file = foreign(beginning, bytes);
        let before = contents(&file);
        let error = Consumer::<u64>::attach(&file, 4).unwrap_err();
        assert!(matches!(error, AttachError::NotARing { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("expected 672 bytes that begin with \"MSTRING2\"") && text.contains(found), "{text}");
        assert_eq!(contents(&file), before, "{text}");
    }
}

fn contents(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn a_truncated_ring_is_refused() {
    let ring = memory();
    drop(Producer::<u64>::attach(&ring, 4).unwrap());
    for bytes in [671, 640, 100] {
        ring.set_len(bytes).unwrap();
        let error = Producer::<u64>::attach(&ring, 4).unwrap_err();
        assert!(matches!(error, AttachError::NotARing { found_bytes, .. } if found_bytes == bytes), "{error:?}");
    }
}

#[test]
fn a_file_whose_maker_died_before_the_header_becomes_a_ring() {
    let file = foreign(b"", 672);
    let mut producer = Producer::<u64>::attach(&file, 4).unwrap();
    assert!(producer.try_send(1));
    assert_eq!(Consumer::<u64>::attach(&file, 4).unwrap().try_handle(|&event| event), Some(1));
}

#[test]
fn more_slots_than_any_memory_holds_are_refused() {
    // The first number of slots takes 2^64 bytes, which is 0 in 64 bits; the second takes more than an offset can
    // express.
    for slots in [1 << 61, 1 << 60] {
        let file = memory();
        let error = Producer::<u64>::attach(&file, slots).unwrap_err();
        assert!(matches!(error, AttachError::TooLarge { event_bytes: 8, .. }), "{error:?}");
        assert_eq!(file.metadata().unwrap().len(), 0);
    }
}

#[test]
fn operations_that_the_system_refuses_are_named() {
    let refused = |file: &File| match Consumer::<u64>::attach(file, 4) {
        Err(error @ AttachError::System { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    for path in ["/dev/null", "/"] {
        let irregular = refused(&File::open(path).unwrap());
        assert!(
            irregular.starts_with("use the descriptor for a ring: it is not a regular file"),
            "{path}: {irregular}"
        );
    }
    let full = memory();
    // SAFETY: the descriptor is open, and the call takes a number.
    assert_eq!(unsafe { libc::fcntl(full.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_GROW) }, 0);
    let full = refused(&full);
    assert!(full.starts_with("give the file 672 bytes: "), "{full}");
}

#[test]
#[should_panic(expected = "a ring's capacity is a power of two, not 48; the next is 64")]
fn a_number_of_slots_that_is_no_power_of_two_is_refused() {
    drop(Producer::<u64>::attach(&memory(), 48));
}
