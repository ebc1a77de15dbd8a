//! Tests of real overflows and other faults, each in a child process. They check the report and the signal that ends the process,
//! also with foreign handlers that were installed before or after this crate's handler.

use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};
use std::ptr;
use std::sync::OnceLock;

use millstream_fiber::{Builder, Guards, Options, Runtime, Threads, spawn, yield_now};

/// The environment variable that holds the child's task.
const TASK: &str = "MILLSTREAM_FIBER_TASK";

/// Runs a task in a child process, without core dumps.
fn child(task: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_child", "--nocapture"]).env(TASK, task).env_remove("RUST_BACKTRACE");
    command.output().unwrap()
}

/// The part that runs in the child. In the parent, this test does nothing.
#[test]
fn the_child() {
    let Ok(task) = std::env::var(TASK) else { return };
    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: sets a limit of this process.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core) };
    let words: Vec<&str> = task.split(' ').collect();
    match words[..] {
        ["overflow", threads, guards] => overflow(options(threads, guards), Some("get")),
        ["unnamed"] => overflow(Options::new(Threads::One), None),
        ["long"] => overflow(Options::new(Threads::One), Some(&"ü".repeat(4000))),
        ["large-frame"] => in_fiber(Options::new(Threads::One).guard_bytes(1), || {
            black_box([1u8; 300 << 10]);
        }),
        ["second"] => second_overflow(),
        ["fault"] => in_fiber(Options::new(Threads::One), fault),
        ["fault-on-thread"] => {
            let _runtime = Runtime::start(Options::new(Threads::One)).unwrap();
            fault();
        }
        ["thread-overflow"] => {
            let _runtime = Runtime::start(Options::new(Threads::One)).unwrap();
            std::thread::Builder::new().stack_size(64 << 10).spawn(|| recurse(1)).unwrap().join().unwrap();
        }
        ["foreign-guard"] => foreign_guard(),
        ["sent"] => {
            install("default");
            let _runtime = Runtime::start(Options::new(Threads::One)).unwrap();
            // SAFETY: sends a signal to this very thread.
            unsafe { libc::raise(libc::SIGSEGV) };
        }
        ["before", kind, what] => {
            install(kind);
            match what {
                "fault" => in_fiber(Options::new(Threads::One), fault),
                _ => overflow(Options::new(Threads::One), Some("get")),
            }
        }
        ["after", what] => {
            drop(Runtime::start(Options::new(Threads::One)).unwrap());
            install("chaining");
            match what {
                "fault" => in_fiber(Options::new(Threads::One), fault),
                _ => overflow(Options::new(Threads::One), Some("get")),
            }
        }
        _ => panic!("no task {task}"),
    }
    println!("still alive");
}

fn options(threads: &str, guards: &str) -> Options {
    let threads = match threads {
        "each" => Threads::OneEach,
        "one" => Threads::One,
        _ => Threads::Workers(2),
    };
    let guards = if guards == "marks" { Guards::best() } else { Guards::Mappings };
    Options::new(threads).guards(guards).stack_bytes(48 << 10)
}

fn in_fiber(options: Options, body: impl FnOnce() + Send + 'static) {
    let runtime = Runtime::start(options).unwrap();
    // Another fiber of the worker waits meanwhile.
    let _waiting = runtime.spawn(millstream_fiber::park);
    runtime.spawn(body).join().unwrap();
}

fn overflow(options: Options, name: Option<&str>) {
    let runtime = Runtime::start(options).unwrap();
    let builder = name.map_or_else(Builder::new, |name| Builder::new().name(name));
    let fiber = builder.spawn_on(&runtime, || {
        yield_now();
        recurse(1)
    });
    fiber.unwrap().join().unwrap();
}

/// Overflows a stack that is not new: another fiber has used it before.
fn second_overflow() {
    let runtime = Runtime::start(Options::new(Threads::One)).unwrap();
    let first = runtime.spawn(|| (0..100).for_each(|n| assert_eq!(spawn(move || n).join().unwrap(), n)));
    first.join().unwrap();
    Builder::new().name("second").spawn_on(&runtime, || recurse(1)).unwrap().join().unwrap();
}

/// Writes to the guard of a fiber that waits.
fn foreign_guard() {
    let runtime = Runtime::start(Options::new(Threads::One)).unwrap();
    runtime
        .spawn(|| {
            let (sender, receiver) = millstream_fiber::sync::channel(1);
            let _other = spawn(move || {
                let local = 0u8;
                sender.send(ptr::from_ref(&local) as usize).unwrap();
                millstream_fiber::park();
            });
            let inside = receiver.recv().unwrap();
            // The guard of 16 KiB is 64 KiB further down.
            let guard = (inside - (64 << 10)) as *mut u8;
            // SAFETY: unsound by design: the test relies on this write to fault.
            unsafe { ptr::write_volatile(guard, 1) };
        })
        .join()
        .unwrap();
}

#[expect(unconditional_recursion, reason = "the overflow under test")]
fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 16]);
    recurse(depth + 1) + black_box(frame)[3]
}

fn fault() {
    // SAFETY: unsound by design: the test relies on this read to fault.
    unsafe { ptr::read_volatile(black_box(64 as *const u8)) };
}

/// The action that `install("chaining")` has replaced.
static FORMER: OnceLock<libc::sigaction> = OnceLock::new();

fn say(text: &[u8]) {
    // SAFETY: writes a static text.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
}

extern "C" fn detailed(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid structure, and the signal is a fault.
    let address = unsafe { (*info).si_addr() } as usize;
    say(if address == 64 { b"other library: fault at 64\n" } else { b"other library: elsewhere\n" });
    // SAFETY: ends the process.
    unsafe { libc::_exit(42) };
}

extern "C" fn plain(_: libc::c_int) {
    say(b"other library: plain\n");
    // SAFETY: ends the process.
    unsafe { libc::_exit(43) };
}

extern "C" fn chaining(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    say(b"other library: first\n");
    // SAFETY: `install` stored this crate's action, whose handler has this signature.
    unsafe {
        let former = FORMER.get().unwrap().sa_sigaction;
        let former: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = std::mem::transmute(former);
        former(signal, info, context);
    }
}

fn install(kind: &str) {
    // SAFETY: zeros are a valid action, and the handlers have the signature that the flags ask for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_flags = libc::SA_ONSTACK;
        match kind {
            "plain" => action.sa_sigaction = plain as *const () as usize,
            "ignored" => action.sa_sigaction = libc::SIG_IGN,
            "default" => action.sa_sigaction = libc::SIG_DFL,
            _ => {
                let handler = if kind == "chaining" { chaining as *const () } else { detailed as *const () };
                action.sa_sigaction = handler as usize;
                action.sa_flags |= libc::SA_SIGINFO;
            }
        }
        let mut former: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGSEGV, ptr::null(), &raw mut former);
        let _ = FORMER.set(former);
        libc::sigaction(libc::SIGSEGV, &raw const action, ptr::null_mut());
    }
}

/// Returns the child's standard error and the signal that ended it.
fn ending(task: &str) -> (String, Option<i32>) {
    let output = child(task);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!String::from_utf8_lossy(&output.stdout).contains("still alive"), "{task}: {text}");
    (text, output.status.signal())
}

#[test]
fn an_overflow_names_the_fiber_and_its_stack_under_each_model_and_guard() {
    for threads in ["each", "one", "many"] {
        for guards in ["marks", "mappings"] {
            let (text, signal) = ending(&format!("overflow {threads} {guards}"));
            assert_eq!(signal, Some(libc::SIGABRT), "{text}");
            assert!(text.contains("fiber `get` (#"), "{text}");
            let sizes = "overflowed its stack of 49152 bytes; raise `Options::stack_bytes` to 98304";
            assert!(text.contains(sizes), "{text}");
        }
    }
}

#[test]
fn an_overflow_of_an_unnamed_fiber_gives_its_number() {
    let (text, signal) = ending("unnamed");
    assert_eq!(signal, Some(libc::SIGABRT));
    assert!(text.contains("fiber #1 overflowed its stack of 65536 bytes"), "{text}");
}

#[test]
fn a_long_name_is_clipped_between_characters() {
    let (text, signal) = ending("long");
    assert_eq!(signal, Some(libc::SIGABRT));
    assert!(text.contains(&format!("fiber `{}` (#1) overflowed", "ü".repeat(64))), "{text}");
}

#[test]
fn a_frame_larger_than_the_guard_does_not_jump_over_it() {
    let (text, signal) = ending("large-frame");
    assert_eq!(signal, Some(libc::SIGABRT), "{text}");
    assert!(text.contains("overflowed its stack"), "{text}");
}

#[test]
fn an_overflow_on_a_reused_stack_names_its_present_fiber() {
    let (text, signal) = ending("second");
    assert_eq!(signal, Some(libc::SIGABRT));
    assert!(text.contains("fiber `second`"), "{text}");
}

#[test]
fn other_faults_end_the_process_as_they_would_without_this_crate() {
    for task in ["fault", "fault-on-thread", "sent", "foreign-guard"] {
        let (text, signal) = ending(task);
        assert_eq!(signal, Some(libc::SIGSEGV), "{task}: {text}");
        assert!(!text.contains("overflowed"), "{task}: {text}");
    }
}

#[test]
fn the_standard_library_reports_an_overflow_of_a_thread() {
    let (text, signal) = ending("thread-overflow");
    assert_eq!(signal, Some(libc::SIGABRT));
    assert!(text.contains("has overflowed its stack") && !text.contains("fiber `"), "{text}");
}

#[test]
fn an_earlier_handler_gets_faults_but_no_overflows() {
    for (kind, word, status) in [("detailed", "fault at 64", 42), ("plain", "plain", 43)] {
        let output = child(&format!("before {kind} fault"));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(status) && text.contains(word), "{kind}: {text}");
        let (text, signal) = ending(&format!("before {kind} overflow"));
        assert!(signal == Some(libc::SIGABRT) && text.contains("fiber `get`"), "{kind}: {text}");
        assert!(!text.contains("other library"), "{kind}: {text}");
    }
    for kind in ["default", "ignored"] {
        assert_eq!(ending(&format!("before {kind} fault")).1, Some(libc::SIGSEGV));
        assert_eq!(ending(&format!("before {kind} overflow")).1, Some(libc::SIGABRT));
    }
}

#[test]
fn a_later_handler_can_pass_everything_on() {
    let (text, signal) = ending("after overflow");
    assert!(
        signal == Some(libc::SIGABRT) && text.contains("other library: first") && text.contains("fiber `get`"),
        "{text}"
    );
    let (text, signal) = ending("after fault");
    assert!(signal == Some(libc::SIGSEGV) && text.contains("other library: first"), "{text}");
}
