//! Tests of processes for which the kernel provides no descriptor: the kernel refuses the call, or the process has ended and left
//! no zombie.

#[path = "support/refused.rs"]
mod refused;

use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use millstream_fiber::{JoinError, Options, Runtime, Threads, process};
use refused::refuse;

/// One test at a time, since the disposition of a signal belongs to the process.
static TURN: Mutex<()> = Mutex::new(());

#[test]
fn a_process_without_a_descriptor_is_waited_for_and_the_wait_is_cancelled() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    refuse(libc::SYS_pidfd_open);
    let runtime = Runtime::start(Options::new(Threads::One)).unwrap();
    let output = runtime.spawn(|| process::output(Command::new("sh").args(["-c", "sleep 0.02; echo x; exit 3"])));
    let output = output.join().unwrap().unwrap();
    assert_eq!((&*output.stdout, output.status.code()), (&b"x\n"[..], Some(3)));
    let mut child = process::spawn(Command::new("sleep").arg("1000")).unwrap();
    let pid = child.id().to_string();
    let waiting = runtime.spawn(move || drop(child.wait()));
    std::thread::sleep(Duration::from_millis(20));
    waiting.cancel();
    assert!(matches!(waiting.join(), Err(JoinError::Cancelled)));
    assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
}

#[test]
fn processes_start_while_their_ends_are_ignored() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: `SIG_IGN` is a valid disposition, which installs no handler.
    let before = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    let runtime = Runtime::start(Options::new(Threads::One)).unwrap();
    for _ in 0..50 {
        // Some of the processes end before `spawn` returns. None of them leaves an exit status.
        let waited = runtime.spawn(|| process::spawn(&mut Command::new("true")).unwrap().wait());
        assert_eq!(waited.join().unwrap().unwrap_err().raw_os_error(), Some(libc::ECHILD));
    }
    // SAFETY: restores this process's former disposition, which is not a handler.
    unsafe { libc::signal(libc::SIGCHLD, before) };
}
