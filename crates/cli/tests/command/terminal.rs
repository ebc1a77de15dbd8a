//! The frame of a running flow on a terminal with 80 columns and 24 rows, and the text that remains after the run.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::support::{Room, code};

const COLUMNS: u16 = 80;
const ROWS: u16 = 24;
/// A text in each frame while the unit is in flight.
const IN_FLIGHT: &str = "in flight 1 of 256";

/// A flow with two stages. The first stage ends when there is a file `open`, or after a minute.
const SLOW: &str = r#"
name = "slow"
[source]
args = true
[[stage]]
name = "first-half"
op = "exec"
exec = ["sh", "-c", "for i in $(seq 1200); do if [ -e open ]; then exit; fi; sleep 0.05; done"]
[[stage]]
name = "second-half"
op = "exec"
exec = ["sleep", "0.5"]
"#;

/// Detaches a program from the terminal of the tests. Otherwise the size of that terminal could also have an effect.
pub(crate) fn leave_the_terminal_of_the_tests(command: &mut Command) {
    // SAFETY: between fork and exec, the closure only makes a system call.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            Ok(())
        });
    }
}

/// Both ends of a new terminal: the end for a screen, and the end for programs.
pub(crate) fn terminal() -> (File, OwnedFd) {
    // Programs that other tests start must not inherit the two ends. Otherwise a read of the screen's end would wait
    // until these programs end.
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let screen = openpt(flags).expect("a terminal");
    unlockpt(&screen).expect("a terminal");
    let programs = ioctl_tiocgptpeer(&screen, flags).expect("its other end");
    let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&programs, size).expect("a size");
    (File::from(screen), programs)
}

fn modes(of: &Termios) -> String {
    format!("{:?} {:?} {:?} {:?}", of.input_modes, of.output_modes, of.control_modes, of.local_modes)
}

/// A simulated terminal with the features that the command uses.
#[derive(Default)]
struct Screen {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// Whether a colour or a weight is set.
    painted: bool,
}

impl Screen {
    /// Shows `text`. Calls `replaced` with the screen each time before a frame is overwritten or removed.
    fn show(&mut self, text: &str, mut replaced: impl FnMut(&Self)) {
        let mut rest = text.chars();
        while let Some(character) = rest.next() {
            match character {
                '\r' => self.column = 0,
                '\n' => self.row += 1,
                '\x1b' => {
                    assert_eq!(rest.next(), Some('['), "no other escapes are used");
                    let mut number = String::new();
                    let end = rest.by_ref().find(|c| {
                        let ends = c.is_ascii_alphabetic();
                        if !ends {
                            number.push(*c);
                        }
                        ends
                    });
                    match end {
                        Some('A') => {
                            replaced(self);
                            let up: usize = number.parse().expect("a number of rows");
                            assert!(up < usize::from(ROWS), "{up} rows up is more than the screen has");
                            self.row = self.row.checked_sub(up).expect("not above where the command began");
                        }
                        Some(erase @ ('K' | 'J')) => {
                            let column = self.column;
                            self.line().truncate(column);
                            if erase == 'J' {
                                self.rows.truncate(self.row + 1);
                            }
                        }
                        Some('m') => self.painted = !matches!(number.as_str(), "" | "0"),
                        other => panic!("unknown escape {number}{other:?}"),
                    }
                }
                plain => {
                    if self.column == usize::from(COLUMNS) {
                        (self.row, self.column) = (self.row + 1, 0);
                    }
                    let column = self.column;
                    let line = self.line();
                    line.resize(line.len().max(column + 1), ' ');
                    line[column] = plain;
                    self.column += 1;
                }
            }
        }
    }

    fn line(&mut self) -> &mut Vec<char> {
        self.rows.resize_with(self.rows.len().max(self.row + 1), Vec::new);
        &mut self.rows[self.row]
    }

    fn text(&self) -> String {
        self.rows.iter().map(|row| row.iter().collect::<String>() + "\n").collect()
    }
}

#[test]
fn lines_that_are_typed_are_units() {
    let room = Room::new(
        "name = \"typed\"\n[source]\nlines = \"-\"\n[[stage]]\nname = \"keep\"\nop = \"append\"\npath = \"list\"\nline = \"{line}\"\n",
    );
    let (mut screen, programs) = terminal();
    let end = || Stdio::from(programs.as_fd().try_clone_to_owned().unwrap());
    let mut child = room.command(&["run", "flow.toml"]).stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    drop(programs);
    let mut shown = String::new();
    let mut chunk = [0; 4096];
    let mut typed = false;
    while let Ok(read @ 1..) = screen.read(&mut chunk) {
        shown += &String::from_utf8_lossy(&chunk[..read]);
        if !typed && shown.contains("type lines, ^D ends them") {
            screen.write_all(b"one\ntwo\n\x04").unwrap();
            typed = true;
        }
    }
    assert_eq!(code(child.wait().unwrap()), 0, "{shown}");
    // Two workers may append the lines in either order.
    let list = room.read("list");
    assert!(list == "one\ntwo\n" || list == "two\none\n", "{list:?}");
}

#[test]
fn a_terminal_shows_the_stages_and_is_left_as_it_was() {
    let room = Room::new(SLOW);
    let (mut screen, programs) = terminal();
    let before = modes(&tcgetattr(&programs).unwrap());
    let end = || Stdio::from(programs.as_fd().try_clone_to_owned().unwrap());
    let mut command = room.command(&["run", "flow.toml", "unit"]);
    let mut child =
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8").stdout(end()).stderr(end()).spawn().unwrap();
    drop(command);
    let open = room.path("open");
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut chunk = [0; 4096];
        // When the last program has closed the programs' end, a read of the screen's end fails.
        while let Ok(read @ 1..) = screen.read(&mut chunk) {
            bytes.extend_from_slice(&chunk[..read]);
            let drawn = bytes.windows(IN_FLIGHT.len()).filter(|text| *text == IN_FLIGHT.as_bytes()).count();
            if drawn >= 3 {
                File::create(&open).unwrap();
            }
        }
        bytes
    });
    let status = child.wait().unwrap();
    let after = modes(&tcgetattr(&programs).unwrap());
    drop(programs);
    let bytes = reader.join().unwrap();
    let shown = String::from_utf8(bytes).expect("the picture is UTF-8");
    assert_eq!(code(status), 0, "{shown}");
    assert_eq!(before, after, "the terminal's modes are as they were");

    let mut screen = Screen::default();
    let mut pictures = Vec::new();
    screen.show(&shown, |screen| pictures.push(screen.text()));
    assert!(pictures.len() >= 3, "it is drawn several times: {shown:?}");
    let drawn = |parts: &[&str]| pictures.iter().any(|picture| parts.iter().all(|part| picture.contains(part)));
    // After the source has yielded its only unit, the flow is in the phase `finishing`.
    assert!(drawn(&["slow finishing", "first-half", "second-half", "held by", IN_FLIGHT]), "{pictures:#?}");
    let left = screen.text();
    assert!(left.contains("admitted 1 = retired 1"), "the report is what is left: {left}");
    assert!(!left.contains("held by") && !left.contains("slow finishing"), "no picture is left behind: {left}");
    assert!(!screen.painted, "no colour is left in force");
    assert_eq!(screen.column, 0, "the prompt starts a line of its own");
}
