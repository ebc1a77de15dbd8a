//! Fibers at the limits of a process: threads, stacks, address space. Each task runs in its own process.

use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use millstream_fiber::sleep;
use millstream_flow::Flow;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

/// The environment variable that names the child's task.
const TASK: &str = "MILLSTREAM_FLOW_TASK";

fn child(task: &str) -> (Output, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_child", "--nocapture"]).env(TASK, task).env_remove("RUST_BACKTRACE");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned();
    (output, text)
}

/// The child's side. In the parent, this test does nothing.
#[test]
fn the_child() {
    let Ok(task) = std::env::var(TASK) else { return };
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).unwrap();
    match task.as_str() {
        "sleepers" => sleepers(),
        "overflow" => overflow(),
        "few-stacks" => few_stacks(),
        task => panic!("no task `{task}`"),
    }
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// 10,000 units sleep at once.
fn sleepers() {
    const UNITS: u64 = 10_000;
    let before = threads();
    let mut flow = Flow::builder::<u64>("sleepers");
    flow.inflight(UNITS).fiber_threads(1);
    let (wait, done) = (flow.inlet::<u64>("wait"), flow.retire());
    flow.stage(wait, |n: &mut u64, _| {
        sleep(Duration::from_millis(1500));
        Ok(*n)
    })
    .fibers(UNITS as usize)
    .to(done);
    let service = flow.build(wait).unwrap().start();
    let control = service.control();
    let tickets: Vec<_> = (0..UNITS).map(|n| service.submit(n).unwrap()).collect();
    let mut most = (0, 0);
    while control.snapshot().retired == 0 {
        let now = control.snapshot();
        most = most.max((now.workers_busy, threads() - before));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(most.0, UNITS, "all sleep at once");
    // The three threads are the timekeeper, the thread of the fibers, and the watchdog of that thread.
    assert!(most.1 <= 3, "{} threads in addition to the caller's", most.1);
    tickets.into_iter().for_each(|ticket| assert!(ticket.wait().is_ok()));
    assert_eq!(service.drain().retired, UNITS);
    assert_eq!(threads(), before, "a drain ends all threads");
}

#[test]
fn ten_thousand_units_asleep_take_three_threads() {
    let (output, text) = child("sleepers");
    assert!(output.status.success(), "{text}");
}

fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 128]);
    if depth == 0 { 0 } else { recurse(depth + 1) + frame[7] }
}

/// Unit 3 needs a larger stack than its fiber has.
fn overflow() {
    let mut flow = Flow::builder::<u64>("deep");
    let (wait, done) = (flow.inlet::<u64>("dig"), flow.retire());
    flow.stage(wait, |n: &mut u64, _| Ok(if *n == 3 { recurse(1) } else { *n })).fibers(2).stack(96 << 10).to(done);
    flow.build(wait).unwrap().run(0..10);
}

#[test]
fn an_overflow_names_the_stage_the_unit_and_the_setting() {
    let (output, text) = child("overflow");
    assert_eq!(output.status.signal(), Some(Signal::ABORT.as_raw()), "{text}");
    let (about, setting) = ("fiber `dig` (#", "which served unit 3, overflowed its stack of 98304 bytes; set ");
    assert!(text.contains(about) && text.contains(setting), "{text}");
    assert!(text.contains("`stack = \"192KiB\"`") && text.contains("`StageBuilder::stack(196608)`"), "{text}");
}

/// The process has address space for only a few stacks. The system refuses more stacks, and units wait for the existing
/// ones.
fn few_stacks() {
    const STACK: usize = 1 << 30;
    let mut flow = Flow::builder::<u64>("large");
    flow.inflight(1000).fiber_threads(1);
    let (wait, done) = (flow.inlet::<u64>("wait"), flow.retire());
    flow.stage(wait, |n: &mut u64, _| {
        sleep(Duration::from_millis(20));
        Ok(*n)
    })
    .fibers(1000)
    .stack(STACK)
    .to(done);
    let flow = flow.build(wait).unwrap();
    let control = flow.control();
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
    // Room for the first chunk of stacks, but not for a second one.
    let most = pages * rustix::param::page_size() as u64 + 120 * STACK as u64;
    setrlimit(Resource::As, Rlimit { current: Some(most), ..getrlimit(Resource::As) }).unwrap();
    let began = Instant::now();
    let report = flow.run(0..1000);
    assert_eq!(report.retired, 1000);
    let trouble = control.fibers().trouble;
    assert!(trouble.refused > 0, "the limit has no effect, so the test tests nothing");
    assert_eq!(report.refused_fibers, trouble.refused);
    assert_eq!(report.latest_refusal, trouble.latest_refusal);
    let reason = trouble.latest_refusal.unwrap();
    assert!(reason.contains("fiber `wait` never ran") && reason.contains("address space"), "{reason}");
    assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
}

#[test]
fn units_wait_for_a_stack_while_the_system_has_none() {
    let (output, text) = child("few-stacks");
    assert!(output.status.success(), "{text}");
}
