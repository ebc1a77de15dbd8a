//! Tests that many fibers fit into few mappings, and that a switch makes no system call.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use millstream_fiber::sync::channel;
use millstream_fiber::{Guards, Options, Runtime, Threads, current, park, sleep, spawn, yield_now};

fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

#[test]
fn a_hundred_thousand_fibers_park_within_a_hundred_mappings() {
    // If each guard is a mapping, the kernel's default limit does not allow more fibers than this.
    let fibers = if Guards::best() == Guards::Marks { 100_000 } else { 20_000 };
    let runtime = Runtime::start(Options::new(Threads::Workers(2)).on_report(|_| {})).unwrap();
    let before = mappings();
    let parked = Arc::new(AtomicUsize::new(0));
    let handles: Vec<_> = (0..fibers)
        .map(|n| {
            let parked = Arc::clone(&parked);
            runtime.spawn(move || {
                parked.fetch_add(1, SeqCst);
                park();
                n
            })
        })
        .collect();
    while parked.load(SeqCst) < fibers {
        sleep(Duration::from_millis(1));
    }
    if Guards::best() == Guards::Marks {
        let added = mappings().saturating_sub(before);
        println!("{added} mappings for {fibers} fibers");
        assert!(added <= 100, "{added} mappings more");
    }
    assert!(runtime.stacks().reserved >= fibers);
    handles.iter().for_each(|handle| handle.fiber().unpark());
    for (n, handle) in handles.into_iter().enumerate() {
        assert_eq!(handle.join().unwrap(), n);
    }
    let report = runtime.stacks();
    assert!(report.warm <= 1024, "{report:?}");
}

/// The environment variable that turns the test program into the child of the test below.
const CHILD: &str = "MILLSTREAM_FIBER_SILENT";

#[test]
fn switches_wake_ups_and_waits_make_no_system_call() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", "the_silent_child"]).env(CHILD, "1").output().unwrap();
    assert_eq!(output.status.code(), Some(9), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Switches between two fibers of a worker whose thread may make no system calls except `read` and `write`. The kernel kills the
/// thread at any other system call, and then nothing is written.
#[test]
fn the_silent_child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let mut ends = [0; 2];
    // SAFETY: fills `ends` with two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let runtime = Runtime::start(Options::new(Threads::One)).unwrap();
    let _fiber = runtime.spawn(move || {
        let first = current();
        let ((sender, inbox), (outbox, receiver)) = (channel(1), channel(1));
        let second = spawn(move || {
            loop {
                for _ in 0..1000 {
                    yield_now();
                }
                first.unpark();
                park();
                outbox.send(inbox.recv().unwrap()).unwrap();
            }
        });
        // Both fibers wait for a value.
        let exchange = |value: u32| {
            second.fiber().unpark();
            yield_now();
            sender.send(value).unwrap();
            assert_eq!(receiver.recv(), Ok(value));
        };
        yield_now();
        park();
        exchange(0);
        // SAFETY: from here on this thread may only read, write and exit.
        assert_eq!(unsafe { libc::prctl(libc::PR_SET_SECCOMP, 1) }, 0);
        for round in 0..200 {
            park();
            exchange(round);
            for _ in 0..1000 {
                yield_now();
            }
        }
        // SAFETY: writes one byte.
        unsafe { libc::write(ends[1], b"!".as_ptr().cast(), 1) };
        loop {
            yield_now();
        }
    });
    let mut waiting = libc::pollfd { fd: ends[0], events: libc::POLLIN, revents: 0 };
    // SAFETY: waits for the byte, and ends this process without waiting for its threads.
    unsafe {
        let arrived = libc::poll(&raw mut waiting, 1, 20_000);
        libc::_exit(if arrived == 1 { 9 } else { 8 });
    }
}
