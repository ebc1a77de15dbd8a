//! Tests that the page's statements are true, by a race that fails without fences, with every mechanism of the daemon.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Acquire, Ordering::Relaxed, compiler_fence};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use std::{hint, thread};

use millstream_fence::barrierd::{Client, VirtualTime};

use crate::support::{Daemon, Ends, LIMIT, WITHOUT_BPF, With, pass, stress};

/// A word in a cache line of its own.
#[repr(align(128))]
struct Word(AtomicU32);

/// Runs the race for `rounds` rounds: two threads each write one word and then read the other's word. The hot thread passes no
/// fence in between; the cold thread passes `fence`. Returns the number of rounds in which both missed the other's write.
fn both_missed(rounds: u32, fence: impl Fn()) -> usize {
    let [a, b] = [(); 2].map(|()| Word(AtomicU32::new(0)));
    let side = |own: &Word, other: &Word, fence: &dyn Fn(), round: u32| {
        own.0.store(round, Relaxed);
        fence();
        let missed = other.0.load(Relaxed) < round;
        let mut looks = 0_u32;
        while other.0.load(Relaxed) < round {
            looks += 1;
            if looks.is_multiple_of(1024) { thread::yield_now() } else { hint::spin_loop() }
        }
        missed
    };
    let light = || compiler_fence(std::sync::atomic::Ordering::SeqCst);
    thread::scope(|scope| {
        let hot = scope.spawn(|| (1..=rounds).map(|round| side(&a, &b, &light, round)).collect::<Vec<_>>());
        let cold: Vec<bool> = (1..=rounds).map(|round| side(&b, &a, &fence, round)).collect();
        cold.into_iter().zip(hot.join().unwrap()).filter(|(cold, hot)| *cold && *hot).count()
    })
}

#[test]
fn virtual_time_is_a_heavy_fence() {
    for with in [With::Bpf, With::FallBacks, With::StatAlone] {
        let Some(daemon) = Daemon::start(with) else { continue };
        let client = daemon.client();
        let rounds = if with == With::Bpf { 300 } else { 30 } * stress();
        assert_eq!(both_missed(rounds, || _ = pass(&client)), 0, "{with:?}");
    }
}

#[test]
fn polling_alone_is_a_heavy_fence() {
    let Some(daemon) = Daemon::start(With::Bpf) else { return };
    let client = daemon.client();
    let poll = || {
        let since = client.now();
        client.ask(since);
        let begun = Instant::now();
        while !client.has_passed(since) {
            assert!(begun.elapsed() < LIMIT);
            hint::spin_loop();
        }
    };
    assert_eq!(both_missed(100 * stress(), poll), 0);
}

#[test]
fn a_moment_passes_on_every_processor_and_not_before_it_is_drawn() {
    for with in [With::Bpf, With::FallBacks] {
        let Some(daemon) = Daemon::start(with) else { continue };
        let client = daemon.client();
        let (view, mut waited) = (client.view(), (false, false));
        for _ in 0..30 {
            let (since, since_ns) = (client.now(), monotonic_ns());
            let begun = Instant::now();
            loop {
                let passed = (client.has_passed(since), client.has_passed_clock(since_ns));
                assert!(!passed.0 || (0..view.cpus()).all(|cpu| view.virtual_time(cpu) > since.0), "{with:?}");
                assert!(!passed.1 || (0..view.cpus()).all(|cpu| view.time(cpu) > since_ns), "{with:?}, by the clock");
                waited = (waited.0 || !passed.0, waited.1 || !passed.1);
                if passed == (true, true) {
                    break;
                }
                assert!(begun.elapsed() < LIMIT, "{with:?}: {passed:?}");
                client.ask(client.now());
                // Wait a little, because the daemon may share a core with the client: if the client sent requests nonstop, the
                // daemon could not serve them.
                thread::sleep(Duration::from_micros(200));
            }
        }
        assert_eq!(waited, (true, true), "{with:?}: no fence passes while its moment is drawn");
    }
}

/// Returns the time, read after a full fence.
fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    // SAFETY: the call writes to a local variable of the type that it expects.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[test]
fn the_fence_by_the_clock_holds_as_well() {
    let Some(daemon) = Daemon::start(With::Bpf) else { return };
    let client = daemon.client();
    let by_clock = || {
        let since_ns = monotonic_ns();
        while !client.has_passed_clock(since_ns) {
            pass(&client);
        }
    };
    assert_eq!(both_missed(100 * stress(), by_clock), 0);
}

#[test]
fn no_time_goes_backwards_and_none_is_ahead() {
    for with in [With::Bpf, With::FallBacks] {
        let Some(daemon) = Daemon::start(with) else { continue };
        let client = daemon.client();
        let view = client.view();
        let mut last = vec![0; view.cpus()];
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(300) || last.contains(&0) {
            assert!(begun.elapsed() < LIMIT, "{with:?}: nothing passed: {last:?}");
            client.ask(client.now());
            let least = view.page().least_virtual.load(Acquire);
            for (cpu, last) in last.iter_mut().enumerate() {
                let time = view.virtual_time(cpu);
                assert!(time >= *last, "{with:?}: processor {cpu} went from {last} to {time}");
                assert!(time >= least, "{with:?}: processor {cpu} is behind the minimum");
                assert!(time <= client.now().0, "{with:?}: processor {cpu} is ahead of virtual time");
                *last = time;
            }
        }
    }
}

#[test]
fn a_moment_passes_within_the_bound_idle_and_busy() {
    let Some(daemon) = Daemon::start(With::Bpf) else { return };
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _end = Ends(&over);
        for busy in [0, thread::available_parallelism().unwrap().get()] {
            for _ in 0..busy {
                scope.spawn(|| {
                    while !over.load(Relaxed) {
                        hint::spin_loop();
                    }
                });
            }
            let client = daemon.client();
            let median = || {
                let mut times: Vec<Duration> = (0..200).map(|_| pass(&client)).collect();
                times.sort_unstable();
                times[100]
            };
            // Ticks are at most 10 ms apart. On a machine with other work, scheduling delays are added.
            let limit = Duration::from_millis(20);
            let median = least(&daemon, limit, median);
            assert!(median < limit, "{busy} busy threads: median {median:?}");
        }
    });
}

/// Measures a time repeatedly until it is below the limit. Returns that time, or the smallest one. The measuring thread and the
/// daemon get priority over other threads. If the system refuses this, the time is measured only once.
fn least(daemon: &Daemon, limit: Duration, mut time: impl FnMut() -> Duration + Send) -> Duration {
    let measure = || {
        let mut least = Duration::MAX;
        for _ in 0..if goes_first(daemon.process()) { 5 } else { 1 } {
            least = least.min(time());
            if least < limit {
                break;
            }
        }
        least
    };
    thread::scope(|scope| scope.spawn(measure).join().unwrap())
}

/// Gives this thread and all threads of a process priority over other threads. Returns whether the kernel permits it.
fn goes_first(process: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let numbers = threads.map(|thread| thread.unwrap().file_name().to_str().unwrap().parse().unwrap());
    let first = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameter is a local variable, and the threads are this test's own; 0 is the calling one.
    let may = |thread| unsafe { libc::sched_setscheduler(thread, libc::SCHED_RR, &raw const first) == 0 };
    let all_may = numbers.chain([0]).all(may);
    if !all_may {
        println!("no thread gets priority: {}", std::io::Error::last_os_error());
    }
    all_may
}

#[test]
fn a_fulfilled_request_advances_the_futexes() {
    for with in [With::Bpf, With::FallBacks] {
        let Some(daemon) = Daemon::start(with) else { continue };
        let client = daemon.client();
        let words = || [&client.view().page().turn, &client.view().page().least_turn].map(|word| word.load(Acquire));
        for _ in 0..10 {
            let before = words();
            client.ask(client.now());
            until("a futex word has not changed", || (0..2).all(|word| words()[word] != before[word]));
        }
    }
}

#[test]
fn a_moment_of_the_future_is_taken_for_the_present() {
    for with in [With::Bpf, With::FallBacks] {
        let Some(daemon) = Daemon::start(with) else { continue };
        for moment in [u64::MAX, 0] {
            let client = daemon.client();
            let before = client.view().page().turn.load(Acquire);
            client.ask(VirtualTime(moment));
            until("the request waits without end", || client.view().page().turn.load(Acquire) != before);
        }
    }
}

#[test]
fn the_program_wakes_the_daemon_before_it_looks_by_itself() {
    const KEPT: usize = 40;
    // The daemon cannot use up this share, so it serves each request at once.
    let daemon = Daemon::start_in(tempfile::tempdir().unwrap(), With::Bpf, &["--share", "100"]);
    if !daemon.about.contains("times by BPF") {
        println!("skipped: {}", daemon.about);
        return;
    }
    let client = daemon.client();
    let turn = || client.view().page().turn.load(Acquire);
    thread::scope(|scope| {
        let _busy = Busy::everywhere(scope);
        // The daemon and the client run on one processor. The other processors pass at their next tick, or earlier if the
        // scheduler moves a thread there. Without a ring, the daemon checks the processors only at once and after 8 ms.
        let cpu = (0..client.view().cpus()).find(|cpu| stay_on(*cpu, daemon.process())).expect("one that is allowed");
        let median = || {
            stay_on(cpu, 0);
            let asked = Instant::now();
            let mut kept = Vec::new();
            while kept.len() < KEPT && asked.elapsed() < LIMIT / 2 {
                let (before, begun) = (turn(), Instant::now());
                client.ask(client.now());
                until("the daemon announces no progress", || turn() != before);
                kept.extend(Some(begun.elapsed()).filter(|took| *took > Duration::from_millis(1)));
            }
            if kept.len() < KEPT {
                println!("skipped: nearly every moment has passed when the daemon looks for the first time");
                return Duration::ZERO;
            }
            kept.sort_unstable();
            println!("{kept:?}");
            kept[KEPT / 2]
        };
        let limit = Duration::from_millis(7);
        let median = least(&daemon, limit, median);
        assert!(median < limit, "{median:?}");
    });
}

#[test]
fn while_the_daemon_rests_a_waiting_client_looks_for_itself() {
    // The share is so small that the client rests after nearly each request.
    let daemon = Daemon::start_in(tempfile::tempdir().unwrap(), With::Bpf, &["--share", "0.01"]);
    if !daemon.about.contains("times by BPF") {
        println!("skipped: {}", daemon.about);
        return;
    }
    let client = daemon.client();
    let head = client.view().page();
    thread::scope(|scope| {
        let _busy = Busy::everywhere(scope);
        let mut alone = 0;
        until("it never rests, or the waiting client does not look meanwhile", || {
            let before = (client.rests(), head.turn.load(Acquire));
            let took = pass(&client);
            let after = (client.rests(), head.turn.load(Acquire));
            alone += u32::from(before == after && after.0 && took < Duration::from_millis(15));
            alone >= 10
        });

        // A request that the client sends while it rests is served afterwards.
        let (turn, begun) = (head.turn.load(Acquire), Instant::now());
        while begun.elapsed() < Duration::from_millis(200) || head.turn.load(Acquire) == turn {
            assert!(begun.elapsed() < LIMIT, "requests during a rest are lost");
            client.ask(client.now());
            thread::sleep(Duration::from_millis(1));
        }
        let heard = head.turn.load(Acquire).wrapping_sub(turn);
        assert!(
            u128::from(heard) < begun.elapsed().as_millis() / 10,
            "it was served {heard} times in {:?}",
            begun.elapsed()
        );
    });
}

/// Keeps every processor busy until dropped. Each processor has a thread of such low priority that any other thread runs first.
struct Busy {
    over: Arc<AtomicBool>,
    threads: Vec<libc::pid_t>,
}

impl Busy {
    fn everywhere<'s>(scope: &'s thread::Scope<'s, '_>) -> Busy {
        let mut busy = Busy { over: Arc::default(), threads: Vec::new() };
        let (started, numbers) = mpsc::channel();
        for _ in 0..thread::available_parallelism().unwrap().get() {
            let (over, started) = (Arc::clone(&busy.over), started.clone());
            scope.spawn(move || {
                // SAFETY: gettid has no preconditions.
                started.send(unsafe { libc::gettid() }).unwrap();
                while !over.load(Relaxed) {
                    hint::spin_loop();
                }
            });
            busy.threads.push(numbers.recv().unwrap());
        }
        busy.follow(libc::SCHED_IDLE);
        busy
    }

    fn follow(&self, policy: libc::c_int) {
        for thread in &self.threads {
            // SAFETY: the parameter is a local variable, and the threads belong to this process.
            unsafe { libc::sched_setscheduler(*thread, policy, &libc::sched_param { sched_priority: 0 }) };
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // At their low priority, the threads might take seconds to notice the end.
        self.follow(libc::SCHED_OTHER);
        self.over.store(true, Relaxed);
    }
}

/// Waits until `is_so` returns `true`.
#[track_caller]
fn until(otherwise: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "{otherwise}");
        thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn a_client_of_one_processor_looks_at_that_alone() {
    let Some(daemon) = Daemon::start(With::Bpf) else { return };
    let allowed = |cpu: &usize| pinned_to(*cpu, || true);
    for cpu in (0..daemon.client().view().cpus()).filter(allowed) {
        let client = daemon.client().on_cpus([cpu]);
        for _ in 0..50 {
            let since = client.now();
            // The processor passes, because it switches to this thread.
            pinned_to(cpu, || thread::sleep(Duration::from_micros(200)));
            assert!(client.view().times_cpu(cpu).virtual_time.load(Relaxed) > since.0);
            assert!(client.has_passed(since));
            pass(&client);
        }
    }
}

#[test]
#[should_panic(expected = "processors")]
fn a_processor_that_is_not_possible_is_refused() {
    let daemon = Daemon::start(With::FallBacks).unwrap();
    let _ = daemon.client().on_cpus([1 << 20]);
}

#[test]
fn many_clients_are_served_together() {
    let daemons = WITHOUT_BPF.into_iter().chain([With::Bpf]).filter_map(Daemon::start);
    for daemon in daemons {
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let client: Client = daemon.client();
                    (0..5).for_each(|_| _ = pass(&client));
                });
            }
        });
    }
}

/// Runs `run` in a thread that is pinned to this processor. Returns the default value if the thread may not run there.
fn pinned_to<T: Default + Send>(cpu: usize, run: impl FnOnce() -> T + Send) -> T {
    let pinned = move || {
        if stay_on(cpu, 0) { run() } else { T::default() }
    };
    thread::scope(|scope| scope.spawn(pinned).join().unwrap())
}

/// Pins a thread to this processor; 0 means the calling thread. Returns `false` if the thread may not run there.
fn stay_on(cpu: usize, thread: u32) -> bool {
    // SAFETY: all zeros are a valid set, and the call receives its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(thread as libc::pid_t, size_of_val(&set), &raw const set) == 0
    }
}
