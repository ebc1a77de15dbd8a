//! Tests of waits for one of several descriptors, under each threading model and each model of waiting.

#[path = "support/io_models.rs"]
mod io_models;

use std::fs::File;
use std::io::{PipeWriter, Read, Write, pipe};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use io_models::under_each_io;
use millstream_fiber::net::UnixStream;
use millstream_fiber::{IoModel, JoinError, Options, PollFd, PollFlags, Runtime, State, Threads, poll, sleep, spawn};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

const BRIEF: Duration = Duration::from_millis(10);
const LONG: Option<Duration> = Some(Duration::from_secs(60));

/// Polls pipes for reading, and returns which of them are readable.
fn readable<const N: usize>(pipes: [&dyn AsFd; N], timeout: Option<Duration>) -> [bool; N] {
    let mut fds = pipes.map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN));
    let ready = poll(&mut fds, timeout).unwrap();
    let are_ready = fds.map(|fd| !fd.revents().is_empty());
    assert_eq!(ready, are_ready.iter().filter(|is_ready| **is_ready).count());
    are_ready
}

#[test]
fn the_descriptors_that_are_ready_are_reported_and_the_others_are_not() {
    under_each_io(|runtime| {
        let ((one, _keep_one), (two, mut writer), (three, _keep_three)) =
            (pipe().unwrap(), pipe().unwrap(), pipe().unwrap());
        let poller = runtime.spawn(move || {
            let first = readable([&one, &two, &three], LONG);
            // A byte that was not read is reported again, without a wait.
            (first, readable([&one, &two], Some(Duration::ZERO)))
        });
        thread::sleep(BRIEF);
        writer.write_all(b"x").unwrap();
        assert_eq!(poller.join().unwrap(), ([false, true, false], [false, true]));
    });
}

#[test]
fn a_timeout_passes_and_a_timeout_of_zero_does_not_wait() {
    under_each_io(|runtime| {
        let poller = runtime.spawn(|| {
            let (reader, _writer) = pipe().unwrap();
            let began = Instant::now();
            assert_eq!(readable([&reader], Some(Duration::ZERO)), [false]);
            assert_eq!(readable([&reader], Some(BRIEF)), [false]);
            assert!(began.elapsed() >= BRIEF);
            assert_eq!(poll(&mut [], Some(BRIEF)).unwrap(), 0);
        });
        poller.join().unwrap();
    });
}

#[test]
fn the_end_of_a_process_the_end_of_a_pipe_and_room_in_one_are_events() {
    under_each_io(|runtime| {
        let poller = runtime.spawn(|| {
            let mut child = Command::new("sleep").arg("0.02").spawn().unwrap();
            let end = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
            assert_eq!(readable([&end], LONG), [true]);
            assert!(child.wait().unwrap().success());

            let (reader, writer) = pipe().unwrap();
            spawn(move || {
                sleep(BRIEF);
                drop(writer);
            });
            let mut fds = [PollFd::new(&reader, PollFlags::IN)];
            assert_eq!(poll(&mut fds, LONG).unwrap(), 1);
            assert_eq!(fds[0].revents(), PollFlags::HUP);

            let (mut reader, writer) = pipe().unwrap();
            fill(&writer);
            spawn(move || {
                sleep(BRIEF);
                reader.read_exact(&mut vec![0; 1 << 16]).unwrap();
                sleep(BRIEF);
            });
            let mut fds = [PollFd::new(&writer, PollFlags::OUT)];
            assert_eq!(poll(&mut fds, LONG).unwrap(), 1);
            assert!(fds[0].revents().contains(PollFlags::OUT));
        });
        poller.join().unwrap();
    });
}

/// Writes until the pipe is full.
fn fill(writer: &PipeWriter) {
    let flags = rustix::fs::fcntl_getfl(writer).unwrap();
    rustix::fs::fcntl_setfl(writer, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    while (&*writer).write(&[0; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(writer, flags).unwrap();
}

#[test]
fn a_regular_file_is_always_ready_and_a_wait_beside_it_for_nothing_ends_in_time() {
    under_each_io(|runtime| {
        let poller = runtime.spawn(|| {
            let file = File::open("/proc/self/exe").unwrap();
            assert_eq!(readable([&file], LONG), [true]);
            let mut for_nothing = [PollFd::new(&file, PollFlags::empty())];
            assert_eq!(poll(&mut for_nothing, Some(BRIEF)).unwrap(), 0);
        });
        poller.join().unwrap();
    });
}

#[test]
fn the_same_descriptor_may_occur_twice_in_a_list_and_in_the_lists_of_several_fibers() {
    under_each_io(|runtime| {
        let (reader, mut writer) = pipe().unwrap();
        let reader = Arc::new(reader);
        let pollers: Vec<_> = (0..5)
            .map(|_| {
                let reader = Arc::clone(&reader);
                runtime.spawn(move || {
                    // The event may come after the kernel has checked the first entry and before it checks the second.
                    let woken = readable([&*reader, &*reader], LONG);
                    (woken, readable([&*reader, &*reader], Some(Duration::ZERO)))
                })
            })
            .collect();
        thread::sleep(BRIEF);
        // One of the fibers leaves its wait before the event.
        pollers[1].cancel();
        thread::sleep(BRIEF);
        writer.write_all(b"x").unwrap();
        for (n, poller) in pollers.into_iter().enumerate() {
            match poller.join() {
                Ok((woken, then)) => assert!(woken[1] && then == [true, true], "{woken:?} {then:?}"),
                Err(error) => assert!(n == 1 && matches!(error, JoinError::Cancelled), "{n}: {error}"),
            }
        }
    });
}

#[test]
fn a_poll_and_the_reads_of_a_stream_do_not_disturb_each_other() {
    under_each_io(|runtime| {
        let done = runtime.spawn(|| {
            let (mut near, far) = UnixStream::pair().unwrap();
            let far = Arc::new(far);
            let theirs = Arc::clone(&far);
            // For the first byte, the poll begins to wait before the read; for the next byte, the read begins first.
            let poller = spawn(move || {
                readable([&*theirs], LONG);
                sleep(BRIEF);
                readable([&*theirs], LONG);
            });
            let theirs = Arc::clone(&far);
            let reader = spawn(move || (&*theirs).read_exact(&mut [0; 2]).unwrap());
            sleep(BRIEF);
            near.write_all(b"a").unwrap();
            sleep(BRIEF * 3);
            near.write_all(b"b").unwrap();
            reader.join().unwrap();
            near.write_all(b"c").unwrap();
            poller.join().unwrap();
        });
        done.join().unwrap();
    });
}

#[test]
fn outside_fibers_it_blocks_the_thread() {
    let (reader, mut writer) = pipe().unwrap();
    assert_eq!(readable([&reader], Some(BRIEF)), [false]);
    let writing = thread::spawn(move || {
        thread::sleep(BRIEF);
        writer.write_all(b"x").unwrap();
        writer
    });
    assert_eq!(readable([&reader], None), [true]);
    writing.join().unwrap();
}

#[test]
fn a_number_without_a_descriptor_is_reported_without_a_wait() {
    let runtime = Runtime::start(Options::new(Threads::One)).unwrap();
    let told = runtime.spawn(|| {
        let (reader, _writer) = pipe().unwrap();
        // SAFETY: no descriptor has this number, so none is used.
        let none = unsafe { std::os::fd::BorrowedFd::borrow_raw(1 << 20) };
        let mut fds = [PollFd::new(&reader, PollFlags::IN), PollFd::from_borrowed_fd(none, PollFlags::IN)];
        assert_eq!(poll(&mut fds, LONG).unwrap(), 1);
        fds[1].revents()
    });
    assert_eq!(told.join().unwrap(), PollFlags::NVAL);
}

#[test]
fn a_direction_that_is_ready_and_not_asked_for_does_not_end_the_wait() {
    for io in [IoModel::Readiness, IoModel::Completion] {
        let runtime = Runtime::start(Options::new(Threads::One).io(io)).unwrap();
        // An idle socket can be written to at once.
        let (reader, mut writer) = UnixStream::pair().unwrap();
        let fiber = runtime.spawn(move || readable([&reader], LONG));
        let waits = |least: Duration| {
            let is_long = |state: &State| matches!(state, State::Waiting { since, .. } if *since >= least);
            runtime.dump().fibers.iter().any(|fiber| is_long(&fiber.state))
        };
        let began = Instant::now();
        while !waits(20 * BRIEF) {
            assert!(began.elapsed() < LONG.unwrap(), "{}", runtime.dump());
            thread::sleep(BRIEF);
        }
        writer.write_all(b"x").unwrap();
        assert_eq!(fiber.join().unwrap(), [true]);
    }
}
