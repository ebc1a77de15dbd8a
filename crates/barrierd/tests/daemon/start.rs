//! Tests of the daemon's messages, and of its steps before it serves clients.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Child;

use millstream_fence::barrierd::boot_id;
use millstream_fence::barrierd::layout::{MAGIC, SOURCE_BPF, SOURCE_NONE, VERSION};

use crate::support::{Daemon, With, command, pass};

fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions.
    unsafe { libc::geteuid() == 0 }
}

#[test]
fn it_reports_the_missing_mechanisms() {
    let daemon = Daemon::start(With::FallBacks).unwrap();
    assert!(daemon.about.contains("without BPF (disabled by an option): fallbacks alone"), "{}", daemon.about);
    let daemon = Daemon::start(With::StatAlone).unwrap();
    assert!(
        daemon.about.contains("without BPF (") && daemon.about.contains("Operation not permitted"),
        "{}",
        daemon.about
    );
}

#[test]
fn an_unknown_tracepoint_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start_in(folder, With::Bpf, &["--tracepoint", "no_such_event"]);
    let about = &daemon.about;
    assert!(about.contains("tracepoint no_such_event: ") || about.contains("Operation not permitted"), "{about}");
    pass(&daemon.client());
}

#[test]
fn chosen_tracepoints_suffice() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start_in(folder, With::Bpf, &["--tracepoint", "sched_switch"]);
    if !daemon.about.contains("times by BPF on sched_switch") {
        return println!("skipped: {}", daemon.about);
    }
    // The daemon has no tracepoint for idleness here, so it must use fallbacks.
    (0..10).for_each(|_| _ = pass(&daemon.client()));
}

#[test]
fn the_page_s_head_is_filled_in() {
    for (with, source) in [(With::Bpf, SOURCE_BPF), (With::FallBacks, SOURCE_NONE)] {
        let Some(daemon) = Daemon::start(with) else { continue };
        let client = daemon.client();
        let page = client.view().page();
        assert_eq!((page.magic, page.version, page.source), (MAGIC, VERSION, source));
        assert_eq!((page.boot_id, page.daemon), (boot_id().unwrap(), daemon.process()));
        assert_eq!(page.cpus as usize, client.view().cpus());
    }
}

#[test]
fn one_daemon_has_a_folder() {
    let daemon = Daemon::start(With::FallBacks).unwrap();
    let mut second = command(daemon.folder(), With::FallBacks, &[]).spawn().unwrap();
    let mut words = String::new();
    second.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    assert!(!second.wait().unwrap().success());
    assert!(words.contains("another barrierd has this folder"), "{words}");
    pass(&daemon.client());
}

#[test]
fn it_gives_up_privileges() {
    for with in [With::Bpf, With::FallBacks] {
        let Some(daemon) = Daemon::start(with) else { continue };
        pass(&daemon.client());
        let status = fs::read_to_string(format!("/proc/{}/status", daemon.process())).unwrap();
        let value = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(":\t"));
            line.unwrap_or_else(|| panic!("no {key} in {status}"))
        };
        assert_eq!((value("NoNewPrivs"), value("Seccomp")), ("1", "2"));
        if is_root() {
            assert!(value("Uid").split('\t').all(|user| user != "0"), "{}", value("Uid"));
        }
        assert_no_capability(daemon.process());
    }
}

#[test]
fn it_gives_up_capabilities_granted_to_a_user_other_than_root() {
    if !is_root() {
        return println!("skipped: only root gives capabilities away");
    }
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), Some(NOT_ROOT), None).unwrap();
    let mut command = command(folder.path(), With::FallBacks, &[]);
    // SAFETY: between fork and exec, the closure only makes system calls on its own memory.
    unsafe { command.pre_exec(|| become_user_with_capability(NOT_ROOT)) };
    let mut child = match command.spawn() {
        Ok(child) => Killed(child),
        Err(error) => return println!("skipped: user {NOT_ROOT} can't be used, or can't reach the program: {error}"),
    };
    let child = &mut child.0;
    let mut said = BufReader::new(child.stderr.take().unwrap());
    // The daemon reports its mechanisms only after it has given up all privileges.
    let mut about = String::new();
    said.read_line(&mut about).unwrap();
    let given = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    assert!(given.contains(&format!("Uid:\t{NOT_ROOT}\t")), "{about}{given}");
    assert_no_capability(child.id());
}

/// Kills its process when dropped, even if an assertion fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A user without permissions.
const NOT_ROOT: u32 = 65_534;

/// Changes to this user, and keeps a capability that survives an exec.
fn become_user_with_capability(user: u32) -> io::Result<()> {
    const NET_ADMIN: u32 = 12;
    let header = [0x2008_0522_u32, 0];
    let all_three = [1_u32 << NET_ADMIN, 1 << NET_ADMIN, 1 << NET_ADMIN, 0, 0, 0];
    let raise = libc::PR_CAP_AMBIENT_RAISE;
    // SAFETY: the calls take integers, and two arrays of the expected sizes, which outlive the calls.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0
            || libc::setresuid(user, user, user) != 0
            || libc::syscall(libc::SYS_capset, header.as_ptr(), all_three.as_ptr()) != 0
            || libc::prctl(libc::PR_CAP_AMBIENT, raise, NET_ADMIN, 0, 0) != 0
    };
    if refused { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Checks every thread of the daemon.
#[track_caller]
fn assert_no_capability(process: u32) {
    for thread in fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert!(status.contains(&format!("{set}:\t0000000000000000")), "{set}: {status}");
        }
    }
}

#[test]
fn only_the_daemon_can_write_the_clients_memory() {
    for with in [With::Bpf, With::FallBacks] {
        let Some(daemon) = Daemon::start(with) else { continue };
        for name in ["page", "times"] {
            if let Ok(file) = fs::metadata(daemon.folder().join(name)) {
                assert_eq!(file.permissions().mode() & 0o777, 0o644, "{name}");
            }
        }
        // A client can't map its descriptors for writing. If the memory is that of the program's map, not even root can.
        let client = daemon.client();
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let places = [(&raw const *client.view().page()).addr(), (&raw const *client.view().times()).addr()];
        for place in places {
            let is_there = |line: &&str| {
                let (first, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
                let [first, end] = [first, end].map(|address| usize::from_str_radix(address, 16).unwrap());
                (first..end).contains(&place)
            };
            let line = maps.lines().find(is_there).unwrap();
            assert!(line.contains(" r--s "), "{line}");
        }
    }
}

#[test]
fn a_user_that_does_not_exist_ends_it() {
    if !is_root() {
        return println!("skipped: only root becomes another user");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut child = command(folder.path(), With::FallBacks, &["--user", "no-such-user"]).spawn().unwrap();
    let mut words = String::new();
    child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    assert!(!child.wait().unwrap().success());
    assert!(words.contains("user no-such-user"), "{words}");
}

#[test]
fn its_later_output_names_the_fall_backs() {
    let daemon = Daemon::start(With::StatAlone).unwrap();
    // SAFETY: kill takes two integers, and the daemon is this test's own.
    unsafe { libc::kill(daemon.process() as i32, libc::SIGTERM) };
    let words = daemon.last_words();
    assert!(words.contains("no fallback membarrier(GLOBAL): "), "{words}");
    assert!(words.contains("fallback /proc/stat works"), "{words}");
}
