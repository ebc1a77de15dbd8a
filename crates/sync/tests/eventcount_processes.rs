//! Event counts in memory shared between processes: hand-offs, and processes that are killed.
//!
//! The program starts itself as the other process, as `PROGRAM ROLE KIND FILE`.

#[cfg(not(loom))]
#[path = "support/asleep.rs"]
mod asleep;

#[cfg(loom)]
fn main() {}

#[cfg(not(loom))]
fn main() {
    processes::main();
}

#[cfg(not(loom))]
mod processes {
    use std::fs::{self, File};
    use std::os::fd::AsRawFd;
    use std::path::Path;
    use std::process::{Child, Command};
    use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
    use std::time::{Duration, Instant};

    use millstream_sync::eventcount::parameters::{InPlace, Kind, Many, Shared, TwoWord};
    use millstream_sync::eventcount::{Count, SpinPolicy};

    use crate::asleep::{thread_number, until_asleep};
    use millstream_verify_random::{Random, stress};

    const LONG: Duration = Duration::from_secs(60);
    /// The hand-offs end after this time multiplied by `MILLSTREAM_STRESS`, unless there were fewer than
    /// [`MIN_ROUNDS`].
    const RUN_TIME: Duration = Duration::from_secs(10);
    const MIN_ROUNDS: u64 = 500;
    /// The largest number of waits that may take a second because the machine is busy.
    const MAX_LATE: u64 = 3;
    const KINDS: [&str; 5] = ["many-64", "sole-32", "sole-64", "two-word-32", "two-word-64"];

    /// The state that the processes share; zeroed memory is its initial state.
    #[repr(C)]
    struct Board<K: Kind> {
        ping: Count<K, Shared>,
        pong: Count<K, Shared>,
        /// The thread of the other process that is about to wait; 0 before that.
        waiting: AtomicU32,
        /// The last round of hand-offs; 0 while there are more.
        last: AtomicU64,
    }

    pub(crate) fn main() {
        let args: Vec<String> = std::env::args().skip(1).collect();
        match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [role, kind, file] if !role.starts_with('-') => with_kind(kind, role, Path::new(file)),
            _ => run_all(),
        }
    }

    fn run_all() {
        for kind in KINDS {
            // The processes that do not register for heavy fences: none, both, the incrementer of `ping`.
            for (here, there) in [("", ""), ("symmetric", "symmetric"), ("symmetric", "")] {
                for scene in ["hand-offs", "stopped", "waiter-killed", "incrementer-killed"] {
                    let folder = tempfile::tempdir().unwrap();
                    let began = Instant::now();
                    let file = folder.path().join("board");
                    // The scenario runs in its own process, because it needs its own fences.
                    let mut scene_process = start(scene, kind, &file, here, there);
                    assert!(scene_process.wait().unwrap().success(), "{kind} {scene} {here:?} {there:?}");
                    println!("{kind} {scene} fences {here:?} {there:?}: ok, {:?}", began.elapsed());
                }
            }
        }
    }

    /// The environment variable that selects the fences.
    const FENCE: &str = "MILLSTREAM_FENCE";
    const THERE: &str = "MILLSTREAM_TEST_FENCE_THERE";

    fn start(role: &str, kind: &str, file: &Path, fence: &str, there: &str) -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(role).arg(kind).arg(file).env(FENCE, fence).env(THERE, there);
        command.spawn().unwrap()
    }

    fn start_other(role: &str, kind: &str, file: &Path) -> Child {
        start(role, kind, file, &std::env::var(THERE).unwrap(), "")
    }

    fn with_kind(kind: &str, role: &str, file: &Path) {
        match kind {
            "many-64" => play::<Many<u64>>(kind, role, file),
            "sole-32" => play::<InPlace<u32>>(kind, role, file),
            "sole-64" => play::<InPlace<u64>>(kind, role, file),
            "two-word-32" => play::<TwoWord<u32>>(kind, role, file),
            "two-word-64" => play::<TwoWord<u64>>(kind, role, file),
            _ => panic!("no kind {kind}"),
        }
    }

    fn play<K: Attach>(kind: &str, role: &str, file: &Path) {
        let board = map::<K>(file);
        match role {
            "hand-offs" => {
                let mut other = start_other("answer", kind, file);
                hand_offs(board, Side::First(other.id()), |_| ());
                assert!(other.wait().unwrap().success());
            }
            "stopped" => stopped(board, kind, file),
            "answer" => hand_offs(board, Side::Second, |_| ()),
            "waiter-killed" => waiter_killed(board, kind, file),
            "incrementer-killed" => incrementer_killed(board, kind, file),
            "wait" => wait_once(board),
            _ => panic!("no role {role}"),
        }
    }

    fn map<K: Kind>(file: &Path) -> &'static Board<K> {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(file).unwrap();
        file.set_len(4096).unwrap();
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: the mapping is new, at an address of the kernel's choice, and is never unmapped.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, file.as_raw_fd(), 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        // SAFETY: the page is aligned and larger than a board; zeros are a valid board, and it holds only atomics.
        unsafe { &*memory.cast::<Board<K>>() }
    }

    /// The way in which a process becomes the incrementer of a count.
    trait Attach: Kind {
        fn attach(count: &'static Count<Self, Shared>) -> Box<dyn FnMut()>
        where
            Self: Sized;
    }

    impl Attach for Many<u64> {
        fn attach(count: &'static Count<Self, Shared>) -> Box<dyn FnMut()> {
            Box::new(|| count.increment())
        }
    }

    macro_rules! attach_sole {
        ($($kind:ty)*) => {$(
            impl Attach for $kind {
                fn attach(count: &'static Count<Self, Shared>) -> Box<dyn FnMut()> {
                    // SAFETY: each process increments its own one of the two counts.
                    let mut incrementer = unsafe { millstream_sync::eventcount::Incrementer::new(count) };
                    Box::new(move || incrementer.increment())
                }
            }
        )*};
    }
    attach_sole!(TwoWord<u32> TwoWord<u64>);
    #[cfg(target_arch = "x86_64")]
    attach_sole!(InPlace<u32> InPlace<u64>);

    fn wait_until<K: Kind>(count: &Count<K, Shared>, value: u64) {
        let deadline = Instant::now() + LONG;
        let reached = || (count.value() >= value).then_some(());
        let woken = count.wait_for_with(reached, Some(deadline), SpinPolicy::NONE);
        assert!(woken.is_some(), "a wake-up was lost at {value}");
    }

    fn rounds() -> u64 {
        5_000 * stress()
    }

    /// The side of a process in a hand-off; the first knows the second by its process id.
    #[derive(Clone, Copy)]
    enum Side {
        First(u32),
        Second,
    }

    /// Alternately adds to the process's own count and waits for the other count. The first process begins, and
    /// announces the last round. Each wait must be shorter than the second after which a shared waiter checks the count
    /// on its own; the time for which a thread waited for a processor does not count.
    fn hand_offs<K: Attach>(board: &'static Board<K>, side: Side, before_round: impl Fn(u64)) {
        let enough = Instant::now() + RUN_TIME * u32::try_from(stress()).unwrap_or(u32::MAX);
        let (is_first, own, other, process) = match side {
            Side::First(process) => (true, &board.ping, &board.pong, process),
            Side::Second => (false, &board.pong, &board.ping, std::os::unix::process::parent_id()),
        };
        let queued = || queued(std::process::id()) + queued(process);
        let mut increment = K::attach(own);
        let (mut late, mut queued_before) = (0, Duration::ZERO);
        for round in 1.. {
            before_round(round);
            // Only some rounds check this, because it takes longer than a hand-off.
            if round % 64 == 1 {
                queued_before = queued();
            }
            if is_first {
                if round == rounds() || (round >= MIN_ROUNDS && Instant::now() > enough) {
                    board.last.store(round, SeqCst);
                }
                increment();
            }
            let began = Instant::now();
            wait_until(other, round);
            let took = began.elapsed();
            if took > TOO_LONG && took.saturating_sub(queued().saturating_sub(queued_before)) > TOO_LONG {
                late += 1;
            }
            assert!(late <= MAX_LATE, "{late} waits ended only when the waiter checked for itself");
            let ends = board.last.load(SeqCst) == round;
            if !is_first {
                increment();
            }
            if ends {
                break;
            }
        }
    }

    /// Slightly less than the second after which a shared waiter checks the count on its own.
    const TOO_LONG: Duration = Duration::from_millis(900);

    /// The time for which the threads of a process have waited for a processor so far; zero if the kernel does not
    /// report it.
    fn queued(process: u32) -> Duration {
        let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        let queued_ns = |thread: fs::DirEntry| {
            let times = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            times.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()
        };
        Duration::from_nanos(threads.filter_map(queued_ns).sum())
    }

    /// Hand-offs with a process that is stopped at any instruction and continues later.
    fn stopped<K: Attach>(board: &'static Board<K>, kind: &str, file: &Path) {
        let mut random = Random::new(millstream_verify_random::seed());
        let other = start_other("answer", kind, file);
        let process = other.id();
        let (ended, stops) = (AtomicBool::new(false), AtomicU32::new(0));
        let mut other = std::thread::scope(|scope| {
            let (ended, stops) = (&ended, &stops);
            let end = End(ended);
            let stopper = scope.spawn(move || {
                while !ended.load(SeqCst) {
                    std::thread::sleep(Duration::from_micros(random.below(2000)));
                    signal(&other, libc::SIGSTOP);
                    stops.fetch_add(1, SeqCst);
                    std::thread::sleep(Duration::from_micros(random.below(2000)));
                    signal(&other, libc::SIGCONT);
                }
                other
            });
            // Even if the hand-offs are few and fast, some stops happen during them.
            let stopped_before = |round| {
                while u64::from(stops.load(SeqCst)) < 5 * round / MIN_ROUNDS {
                    std::thread::sleep(Duration::from_micros(100));
                }
            };
            hand_offs(board, Side::First(process), stopped_before);
            drop(end);
            stopper.join().unwrap()
        });
        assert!(other.wait().unwrap().success());
        assert!(stops.into_inner() > 3, "the process was hardly ever stopped");
    }

    /// When dropped, tells the stopping thread that the hand-offs are over, even if they have failed.
    struct End<'a>(&'a AtomicBool);

    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, SeqCst);
        }
    }

    fn signal(child: &Child, signal: libc::c_int) {
        // SAFETY: the process is our child and has not been waited for, so its id is still its own.
        assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, signal) }, 0);
    }

    fn wait_once<K: Kind>(board: &Board<K>) {
        board.waiting.store(thread_number() as u32, SeqCst);
        wait_until(&board.ping, 1);
    }

    /// A process that waits for `ping` and is asleep.
    fn waiter<K: Kind>(board: &Board<K>, kind: &str, file: &Path) -> Child {
        board.waiting.store(0, SeqCst);
        let child = start_other("wait", kind, file);
        let began = Instant::now();
        while board.waiting.load(SeqCst) == 0 {
            assert!(began.elapsed() < LONG, "the other process did not start");
            std::thread::sleep(Duration::from_millis(1));
        }
        let thread = board.waiting.load(SeqCst) as i32;
        until_asleep(child.id() as i32, thread);
        child
    }

    /// A waiter that dies asleep leaves only a flag.
    fn waiter_killed<K: Attach>(board: &'static Board<K>, kind: &str, file: &Path) {
        let mut increment = K::attach(&board.ping);
        let mut killed = waiter(board, kind, file);
        killed.kill().unwrap();
        killed.wait().unwrap();
        let mut patient = waiter(board, kind, file);
        increment();
        assert!(patient.wait().unwrap().success());
        assert_eq!(board.ping.value(), 1);
    }

    /// An incrementer dies between its addition and the wake-up: the waiter finds out within a second or two.
    fn incrementer_killed<K: Attach>(board: &'static Board<K>, kind: &str, file: &Path) {
        drop(K::attach(&board.ping));
        let mut waiting = waiter(board, kind, file);
        let first_word = (&raw const board.ping).cast::<AtomicU32>();
        // SAFETY: the count begins with its word, whose low half is first on this machine; the value is above the flag
        // where the flag is the lowest bit, as in `Many`.
        unsafe { (*first_word).fetch_add(2, SeqCst) };
        let began = Instant::now();
        assert!(waiting.wait().unwrap().success());
        assert!(began.elapsed() < LONG);
    }
}
