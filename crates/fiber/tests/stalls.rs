//! Tests of the reports of stalled workers: a report names the function that keeps the worker busy, and comes in time. It
//! disturbs neither the program's signal handlers nor its system calls.

use std::hint::black_box;
use std::io::Read;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{mem, ptr, thread};

use millstream_fiber::{Backtrace, Builder, NoBacktrace, Options, Report, Runtime, Threads};

/// The environment variable that holds the child's task.
const TASK: &str = "MILLSTREAM_FIBER_TASK";

const LIMIT: Duration = Duration::from_secs(60);

/// Runs a task in a child process, because the actions of signals belong to the whole process.
fn child(task: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_child", "--nocapture"]).env(TASK, task).output().unwrap()
}

fn succeeds(task: &str) {
    let output = child(task);
    assert!(output.status.success(), "{output:?}");
}

/// The part that runs in the child. In the parent, this test does nothing.
#[test]
fn the_child() {
    match std::env::var(TASK).as_deref() {
        Ok("computes") => computes(),
        Ok("handles") => handles(),
        Ok("blocks the signal") => blocks_the_signal(),
        Ok("reads") => reads(),
        Ok("is deep") => is_deep(),
        Ok("many") => many(),
        Ok(task) => panic!("{task}"),
        Err(_) => {}
    }
}

/// A report of a stall: the fiber, its frames, and the moment of the report.
#[derive(Debug)]
struct Stall {
    fiber: String,
    backtrace: Result<Backtrace, NoBacktrace>,
    text: String,
    named: Instant,
}

type Stalls = Arc<Mutex<Vec<Stall>>>;

fn runtime(threads: Threads) -> (Runtime, Stalls) {
    runtime_with(Options::new(threads))
}

fn runtime_with(options: Options) -> (Runtime, Stalls) {
    let stalls = Stalls::default();
    let theirs = Arc::clone(&stalls);
    let options = options.on_report(move |report| {
        if let Report::Stalled { fiber, backtrace, .. } = report {
            let (fiber, backtrace, text) = (fiber.clone(), backtrace.clone(), report.to_string());
            theirs.lock().unwrap().push(Stall { fiber, backtrace, text, named: Instant::now() });
        }
    });
    (Runtime::start(options).unwrap(), stalls)
}

/// Computes until `is_over` returns `true`. The inner loop makes no calls, so the innermost frame is usually that of this
/// function.
#[inline(never)]
fn grind(is_over: impl Fn(u64) -> bool) -> u64 {
    let mut sum = 1_u64;
    while !is_over(sum) {
        for n in 0..1000 {
            sum = black_box(sum.wrapping_mul(31) ^ n);
        }
    }
    sum
}

#[inline(never)]
fn keeps_its_worker(time: Duration) -> Instant {
    let began = Instant::now();
    black_box(grind(|_| began.elapsed() >= time));
    began
}

/// Keeps its worker busy until there are this many reports. The limit is long, because a busy machine may run the watch late, and
/// the first report of a program reads the names of all functions.
#[inline(never)]
fn keeps_its_worker_until_reported(stalls: &Stalls, reports: usize) {
    let began = Instant::now();
    black_box(grind(|_| stalls.lock().unwrap().len() >= reports || began.elapsed() >= LIMIT));
}

fn functions(backtrace: &Result<Backtrace, NoBacktrace>) -> Vec<String> {
    let frames = backtrace.as_ref().map(Backtrace::frames).unwrap_or_default();
    frames.into_iter().map(|frame| frame.function).collect()
}

fn action() -> libc::sighandler_t {
    // SAFETY: zeros are a valid structure, which the call fills.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        assert_eq!(libc::sigaction(libc::SIGURG, ptr::null(), &raw mut action), 0);
        action.sa_sigaction
    }
}

/// Returns whether the report has no backtrace because the machine was too busy to run the worker in time.
fn did_not_run(stall: &Stall) -> bool {
    matches!(stall.backtrace, Err(NoBacktrace::NoAnswer | NoBacktrace::Left))
}

#[test]
fn a_function_that_computes_for_long_is_named_in_time() {
    succeeds("computes");
}

fn computes() {
    const TURNS: usize = 9;
    let (runtime, stalls) = runtime(Threads::Workers(2));
    let mut delays = Vec::new();
    for _ in 0..TURNS {
        let hog = Builder::new().name("hog").spawn_on(&runtime, || keeps_its_worker(Duration::from_millis(200)));
        let began = hog.unwrap().join().unwrap();
        for stall in mem::take(&mut *stalls.lock().unwrap()) {
            if stall.fiber == "hog" && !did_not_run(&stall) {
                let functions = functions(&stall.backtrace);
                assert!(functions.iter().any(|name| name.contains("keeps_its_worker")), "{stall:?} {functions:?}");
                assert!(stall.text.contains("keeps_its_worker"), "{}", stall.text);
                delays.push(stall.named - began);
            }
        }
    }
    delays.sort_unstable();
    println!("named after {delays:?}");
    assert!(delays.len() > TURNS / 2, "{delays:?}");
    // The limit is generous, because a busy machine runs the watch late.
    assert!(delays[delays.len() / 2] < Duration::from_millis(150), "{delays:?}");
    assert_eq!(action(), libc::SIG_DFL, "the signal is the program's again");
}

static HANDLED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn handler(_: libc::c_int) {
    HANDLED.fetch_add(1, SeqCst);
}

#[test]
fn a_handler_of_the_program_stays_and_the_report_says_why_there_are_no_frames() {
    succeeds("handles");
}

fn handles() {
    // SAFETY: the handler only increments a number.
    unsafe { libc::signal(libc::SIGURG, handler as *const () as libc::sighandler_t) };
    let (runtime, stalls) = runtime(Threads::One);
    runtime.spawn(|| keeps_its_worker(Duration::from_millis(100))).join().unwrap();
    let stalls = mem::take(&mut *stalls.lock().unwrap());
    assert_eq!(stalls[0].backtrace, Err(NoBacktrace::SignalTaken));
    assert!(stalls[0].text.ends_with("no frames: the program handles SIGURG itself"), "{stalls:?}");
    assert_eq!(HANDLED.load(SeqCst), 0);
    // SAFETY: sends a signal to this very thread.
    unsafe { libc::raise(libc::SIGURG) };
    assert_eq!((HANDLED.load(SeqCst), action()), (1, handler as *const () as libc::sighandler_t));
}

#[test]
fn a_fiber_that_blocks_the_signal_is_reported_without_frames() {
    succeeds("blocks the signal");
}

fn blocks_the_signal() {
    let (runtime, stalls) = runtime(Threads::One);
    let change = |how| {
        // SAFETY: the set is valid, and only this thread's mask changes.
        unsafe {
            let mut signals: libc::sigset_t = mem::zeroed();
            libc::sigemptyset(&raw mut signals);
            libc::sigaddset(&raw mut signals, libc::SIGURG);
            libc::pthread_sigmask(how, &raw const signals, ptr::null_mut());
        }
    };
    let theirs = Arc::clone(&stalls);
    let blocker = runtime.spawn(move || {
        change(libc::SIG_BLOCK);
        keeps_its_worker_until_reported(&theirs, 1);
        change(libc::SIG_UNBLOCK);
    });
    blocker.join().unwrap();
    // The late signal does no harm, and the next report has the right backtrace.
    let theirs = Arc::clone(&stalls);
    runtime.spawn(move || keeps_its_worker_until_reported(&theirs, 2)).join().unwrap();
    let stalls = mem::take(&mut *stalls.lock().unwrap());
    assert_eq!(stalls[0].backtrace, Err(NoBacktrace::NoAnswer));
    let named = |stall: &Stall| functions(&stall.backtrace).iter().any(|name| name.contains("keeps_its_worker"));
    assert!(stalls[1..].iter().any(|stall| named(stall) || did_not_run(stall)), "{stalls:?}");
}

#[test]
fn a_read_that_blocks_its_worker_is_named_and_goes_on() {
    succeeds("reads");
}

#[inline(never)]
fn reads_without_a_fiber(file: &mut impl Read) -> u8 {
    let mut byte = [0];
    // An end with `EINTR` would be an error here.
    assert_eq!(file.read(&mut byte).unwrap(), 1);
    black_box(byte[0])
}

fn reads() {
    let (runtime, stalls) = runtime(Threads::One);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let fiber = runtime.spawn(move || reads_without_a_fiber(&mut reader));
    let began = Instant::now();
    while stalls.lock().unwrap().is_empty() {
        assert!(began.elapsed() < LIMIT);
        thread::sleep(Duration::from_millis(1));
    }
    std::io::Write::write_all(&mut { writer }, &[7]).unwrap();
    assert_eq!(fiber.join().unwrap(), 7);
    let stall = &stalls.lock().unwrap()[0];
    let names = functions(&stall.backtrace);
    assert!(names.iter().any(|name| name.contains("reads_without_a_fiber")) || did_not_run(stall), "{stall:?}");
}

#[test]
fn the_innermost_frames_of_a_deep_stack_are_shown() {
    succeeds("is deep");
}

#[inline(never)]
fn descends(frames: u32, stalls: &Stalls) -> u64 {
    let frame = black_box([frames; 32]);
    if frames == 0 {
        keeps_its_worker_until_reported(stalls, 1);
        return 0;
    }
    descends(frames - 1, stalls) + u64::from(black_box(&frame)[7])
}

fn is_deep() {
    const FRAMES: u32 = 400;
    let (runtime, stalls) = runtime_with(Options::new(Threads::One).stack_bytes(1 << 20));
    let theirs = Arc::clone(&stalls);
    runtime.spawn(move || descends(FRAMES, &theirs)).join().unwrap();
    let stall = &stalls.lock().unwrap()[0];
    let names = functions(&stall.backtrace);
    let depth = names.iter().filter(|name| name.contains("descends")).count();
    assert!(
        did_not_run(stall) || depth > 50 && names.iter().any(|name| name.contains("keeps_its_worker")),
        "{names:?}"
    );
}

#[test]
fn fibers_of_several_runtimes_are_not_confused() {
    succeeds("many");
}

#[inline(never)]
fn mills(time: Duration) {
    black_box(keeps_its_worker(time));
}

#[inline(never)]
fn weighs(time: Duration) {
    black_box((keeps_its_worker(time), 1));
}

fn many() {
    let runtimes = [runtime(Threads::Workers(2)), runtime(Threads::One)];
    let time = Duration::from_millis(16);
    for _ in 0..20 {
        let fibers = runtimes.each_ref().map(|(runtime, _)| {
            let mill = Builder::new().name("mills").spawn_on(runtime, move || mills(time)).unwrap();
            [mill, Builder::new().name("weighs").spawn_on(runtime, move || weighs(time)).unwrap()]
        });
        fibers.into_iter().flatten().for_each(|fiber| fiber.join().unwrap());
    }
    let stalls: Vec<_> = runtimes.iter().flat_map(|(_, stalls)| mem::take(&mut *stalls.lock().unwrap())).collect();
    assert!(!stalls.is_empty());
    for stall in stalls.iter().filter(|stall| !did_not_run(stall)) {
        let names = functions(&stall.backtrace);
        let is_in = |function: &str| names.iter().any(|name| name.ends_with(function));
        // At the very end of a turn, the fiber may be outside the function.
        let others = ["mills", "weighs"].into_iter().filter(|&name| name != stall.fiber);
        assert!(others.into_iter().all(|other| !is_in(&format!("::{other}"))), "{stall:?} {names:?}");
    }
}
