//! What the daemon says and does before it serves.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;

use millstream_fence::barrierd::boot_id;
use millstream_fence::barrierd::layout::{MAGIC, SOURCE_BPF, SOURCE_NONE, VERSION};

use crate::support::{Daemon, With, command, pass};

fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions.
    unsafe { libc::geteuid() == 0 }
}

#[test]
fn it_says_what_it_runs_without() {
    let daemon = Daemon::start(With::FallBacks).unwrap();
    assert!(daemon.about.contains("without BPF (not asked for): fall-backs alone"), "{}", daemon.about);
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
fn chosen_tracepoints_are_enough() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start_in(folder, With::Bpf, &["--tracepoint", "sched_switch"]);
    if !daemon.about.contains("times by BPF on sched_switch") {
        return println!("skipped: {}", daemon.about);
    }
    // Without an event for idleness, fall-backs help.
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
fn it_gives_up_what_it_does_not_need() {
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
            for set in ["CapPrm", "CapEff", "CapInh"] {
                assert_eq!(value(set), "0000000000000000", "{set}");
            }
        }
    }
}

#[test]
fn nobody_else_can_write_what_clients_read() {
    for with in [With::Bpf, With::FallBacks] {
        let Some(daemon) = Daemon::start(with) else { continue };
        for name in ["page", "times"] {
            if let Ok(file) = fs::metadata(daemon.folder().join(name)) {
                assert_eq!(file.permissions().mode() & 0o777, 0o644, "{name}");
            }
        }
        // What a client was handed, it can't map for writing; not even root can, where it is the program's.
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
fn the_last_words_name_the_fall_backs() {
    let daemon = Daemon::start(With::StatAlone).unwrap();
    // SAFETY: ends the daemon, which is ours.
    unsafe { libc::kill(daemon.process() as i32, libc::SIGTERM) };
    let words = daemon.last_words();
    assert!(words.contains("no fall-back membarrier(GLOBAL): "), "{words}");
    assert!(words.contains("fall-back /proc/stat works"), "{words}");
}
