//! `millstream top` on a terminal: the screen, the keys, and the state of the terminal after each kind of end.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::steer::{GATE, gated, stop};
use crate::support::{Room, code, end_of, ended, heed_signals, signal, text, until};
use crate::terminal::{leave_the_terminal_of_the_tests, terminal};

/// The sequences that restore the screen.
const GIVEN_BACK: [&str; 2] = ["\x1b[?25h", "\x1b[?1049l"];

/// The command `millstream top` on a terminal.
struct Top {
    child: Child,
    keys: File,
    programs: OwnedFd,
    before: Termios,
    shown: Arc<Mutex<String>>,
}

impl Top {
    fn start(room: &Room, args: &[&str]) -> Self {
        let (screen, programs) = terminal();
        let before = tcgetattr(&programs).unwrap();
        let end = || Stdio::from(programs.try_clone().unwrap());
        let mut command = room.command(&[&["top"], args].concat());
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm").env("LANG", "C.UTF-8");
        heed_signals(&mut command);
        leave_the_terminal_of_the_tests(&mut command);
        let child = command.spawn().unwrap();
        drop(command);
        let shown = Arc::<Mutex<String>>::default();
        let (mut reader, all) = (screen.try_clone().unwrap(), Arc::clone(&shown));
        thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut chunk) {
                all.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..read]));
            }
        });
        Self { child, keys: screen, programs, before, shown }
    }

    fn sees(&self, what: &str) {
        until(&format!("{what:?} is on the screen"), || self.shown.lock().unwrap().contains(what));
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn forget(&self) {
        self.shown.lock().unwrap().clear();
    }

    /// Waits until the command has ended with this status, and checks that the terminal has its old state.
    fn leaves(mut self, expected: i32) {
        let status = end_of(&mut self.child);
        assert_eq!(code(status), expected, "{}", self.shown.lock().unwrap());
        until("the screen is given back", || {
            let shown = self.shown.lock().unwrap();
            GIVEN_BACK.iter().all(|sequence| shown.contains(sequence))
        });
        let after = tcgetattr(&self.programs).unwrap();
        let modes = |of: &Termios| format!("{:?} {:?} {:?}", of.input_modes, of.output_modes, of.local_modes);
        assert_eq!(modes(&after), modes(&self.before));
    }
}

#[test]
fn the_terminal_is_left_as_it_was_after_any_end() {
    let room = Room::new(GATE);
    let running = gated(&room, &[]);
    until("three wait", || room.status("gate")["resources"][0]["waiters"] == 3);
    for end in ["q", "\x03", "TERM", "HUP", "INT", "QUIT"] {
        let mut top = Top::start(&room, &["gate"]);
        top.sees("limited");
        top.sees("slot: 3 units wait");
        match end {
            "TERM" => signal(&top.child, libc::SIGTERM),
            "HUP" => signal(&top.child, libc::SIGHUP),
            "INT" => signal(&top.child, libc::SIGINT),
            "QUIT" => signal(&top.child, libc::SIGQUIT),
            key => top.press(key),
        }
        top.leaves(0);
    }
    stop(&room, running, 0);
}

#[test]
fn a_drain_and_a_change_are_recorded_in_the_report() {
    let room = Room::new(GATE);
    let running = gated(&room, &["--report", "report.json"]);
    until("three wait", || room.status("gate")["resources"][0]["waiters"] == 3);
    let mut top = Top::start(&room, &[]);
    top.sees("limited");
    top.press("i");
    top.sees("inflight is 4");
    top.press("\x7f9\r");
    top.sees("4 → 9");
    assert_eq!(room.status("gate")["inflight_cap"], 4, "nothing is changed before it is confirmed");
    top.press("y");
    until("it is changed", || room.status("gate")["inflight_cap"] == 9);
    top.sees("inflight=9 (was 4)");
    top.press("d");
    top.sees("y drains it");
    top.press("y");
    until("it drains", || room.status("gate")["phase"] == "draining");
    // The run ends, and its last numbers stay.
    top.forget();
    stop(&room, running, 3);
    top.sees("was limited by");
    top.press("q");
    top.leaves(0);
    let report = room.json("report.json");
    let steered = report["steered"].as_array().unwrap();
    assert_eq!(steered.len(), 2, "{report}");
    assert_eq!(steered[0]["did"][0], "inflight=9 (was 4)");
    assert!(steered[1]["did"][0].as_str().unwrap().contains("admission is closed"), "{report}");
    assert_eq!(steered[0]["user"], rustix::process::getuid().as_raw());
    assert!(steered[0]["process"].as_i64().unwrap() > 0 && steered[0]["at_s"].as_f64().is_some());
    assert_eq!(report["left"], 0);
}

#[test]
fn a_new_size_is_drawn_and_a_stop_restores_the_terminal_meanwhile() {
    let room = Room::new(GATE);
    let running = gated(&room, &[]);
    let mut top = Top::start(&room, &["gate"]);
    top.sees("limited");
    top.forget();
    let size = Winsize { ws_row: 10, ws_col: 40, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(top.programs.as_fd(), size).unwrap();
    signal(&top.child, libc::SIGWINCH);
    top.sees("limited");
    top.forget();
    signal(&top.child, libc::SIGTSTP);
    top.sees("\x1b[?1049l");
    signal(&top.child, libc::SIGCONT);
    top.sees("\x1b[?1049h");
    top.press("q");
    top.leaves(0);
    stop(&room, running, 0);
}

#[test]
fn a_terminal_that_is_gone_ends_it() {
    let room = Room::new(GATE);
    let running = gated(&room, &[]);
    let (screen, programs) = terminal();
    let end = || Stdio::from(programs.try_clone().unwrap());
    let mut command = room.command(&["top", "gate"]);
    command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm");
    let mut child = command.spawn().unwrap();
    drop((command, programs));
    let mut first = [0];
    (&screen).read_exact(&mut first).unwrap();
    // After this pause, the command waits for a key.
    thread::sleep(Duration::from_millis(300));
    drop(screen);
    // Without a terminal, any exit status is accepted, so only the end of the command is checked.
    end_of(&mut child);
    stop(&room, running, 0);
}

#[test]
fn without_a_terminal_it_is_refused_and_says_what_to_use() {
    let room = Room::new(GATE);
    let (_, err) = ended(&room.run(&["top"]), 2);
    assert!(err.contains("needs a terminal") && err.contains("millstream status"), "{err}");
    let (screen, programs) = terminal();
    let mut command = room.command(&["top", "nope"]);
    command.stdout(Stdio::from(programs)).env("TERM", "xterm");
    let output = command.stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    drop(screen);
    assert_eq!(code(output.status), 2);
    // Flows of other users may run on this machine.
    let err = text(&output.stderr);
    assert!(err.contains("no flow is running") || err.contains("there is no run nope"), "{err}");
}
