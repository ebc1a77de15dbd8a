//! Tests of cancellations that race with `poll`: no event is lost, and no registration is left behind.

#[path = "support/io_models.rs"]
mod io_models;

use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use io_models::IO_MODELS;
use millstream_fiber::{IoModel, JoinError, Options, PollFd, PollFlags, Runtime, Threads, poll, yield_now};
use millstream_verify_random::{Random, seed, stress};

/// Returns the number of descriptors registered with the epoll instances of the process, and the number of open descriptors.
fn registered_and_open() -> (usize, usize) {
    let open: Vec<_> = std::fs::read_dir("/proc/self/fdinfo").unwrap().flatten().collect();
    let lines = |info: &std::fs::DirEntry| std::fs::read_to_string(info.path()).unwrap_or_default();
    let registered = open.iter().map(|info| lines(info).lines().filter(|line| line.starts_with("tfd:")).count()).sum();
    (registered, open.len())
}

/// Fibers poll several pipes, one of which contains a token, and are cancelled at random moments. A fiber that finds the token
/// removes it and puts it back. If a wake-up were lost, no fiber would ever find the token again.
fn pass_token_through_cancellations(runtime: &Runtime, random: &mut Random, rounds: usize) {
    let (reader, mut writer) = pipe().unwrap();
    writer.write_all(b"t").unwrap();
    let silent: Arc<Vec<(PipeReader, PipeWriter)>> = Arc::new((0..3).map(|_| pipe().unwrap()).collect());
    let flags = rustix::fs::fcntl_getfl(&reader).unwrap();
    rustix::fs::fcntl_setfl(&reader, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    let (ends, taken) = (Arc::new((OwnedFd::from(reader), writer)), Arc::new(AtomicUsize::new(0)));
    let start = || {
        let (ends, silent, taken) = (Arc::clone(&ends), Arc::clone(&silent), Arc::clone(&taken));
        runtime.spawn(move || {
            loop {
                let mut fds =
                    [&silent[0].0, &silent[1].0, &silent[2].0].map(|pipe| PollFd::new(pipe, PollFlags::IN)).to_vec();
                fds.insert(1, PollFd::new(&ends.0, PollFlags::IN));
                assert_eq!(poll(&mut fds, None).unwrap(), 1);
                assert!(!fds[1].revents().is_empty());
                // Another fiber may have removed the token already.
                if rustix::io::read(&ends.0, &mut [0; 1]).is_ok() {
                    taken.fetch_add(1, SeqCst);
                    (&ends.1).write_all(b"t").unwrap();
                }
                yield_now();
            }
        })
    };
    let mut fibers: Vec<_> = (0..4).map(|_| start()).collect();
    for _ in 0..rounds {
        let place = random.below(4) as usize;
        for _ in 0..random.below(400) {
            std::hint::spin_loop();
        }
        let cancelled = std::mem::replace(&mut fibers[place], start());
        cancelled.cancel();
        assert!(matches!(cancelled.join(), Err(JoinError::Cancelled)));
        let (before, began) = (taken.load(SeqCst), Instant::now());
        while taken.load(SeqCst) == before {
            assert!(began.elapsed() < Duration::from_secs(120), "the token is lost");
            thread::yield_now();
        }
    }
    for fiber in fibers {
        fiber.cancel();
        assert!(matches!(fiber.join(), Err(JoinError::Cancelled)));
    }
}

#[test]
fn polls_that_are_cancelled_at_any_moment_lose_no_event_and_leave_no_registration() {
    for io in IO_MODELS {
        for threads in [Threads::OneEach, Threads::One, Threads::Workers(2)] {
            // A blocking wait notices a cancellation only at the end of its slice.
            let rounds = if io == IoModel::Blocking { 4 } else { 60 * stress() as usize };
            let seed = seed();
            println!("{io:?}, {threads:?}, seed {seed}");
            let runtime = Runtime::start(Options::new(threads).io(io).on_report(|_| {})).unwrap();
            // The workers' own descriptors are created at their first wait.
            pass_token_through_cancellations(&runtime, &mut Random::new(seed), 1);
            let settled = || {
                while runtime.live_fibers() > 0 {
                    thread::yield_now();
                }
                thread::sleep(Duration::from_millis(2));
                registered_and_open()
            };
            let before = settled();
            pass_token_through_cancellations(&runtime, &mut Random::new(seed), rounds);
            let after = settled();
            // Meanwhile the other worker may have created its own descriptors: an epoll instance and an alarm.
            assert!(after.0 <= before.0 + 2 && after.1 <= before.1 + 4, "{before:?} before, {after:?} after");
        }
    }
}
