//! Runs the command in a folder of its own, with its own `XDG_RUNTIME_DIR`.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The time limit of waits. No test takes this long, even on a busy machine, so a test that reaches the limit hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// A folder with a flow file, in which commands run.
pub(crate) struct Room {
    folder: tempfile::TempDir,
}

impl Room {
    /// A room with `flow.toml` in it.
    pub(crate) fn new(flow: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("runtime")).expect("a folder");
        fs::write(folder.path().join("flow.toml"), flow).expect("a flow file");
        Self { folder }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("a file");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Renames the only partial list, `NAME.RUN.DEAD.partial`, to its final name.
    pub(crate) fn take_partial(&self, name: &str) {
        assert!(!self.path(name).exists(), "a list with gaps has no such name");
        let entries = fs::read_dir(self.folder.path()).expect("a folder").flatten().map(|entry| entry.file_name());
        let names = entries.filter_map(|name| name.into_string().ok());
        let partial: Vec<String> =
            names.filter(|found| found.starts_with(&format!("{name}.")) && found.ends_with(".partial")).collect();
        assert_eq!(partial.len(), 1, "{partial:?}");
        fs::rename(self.path(&partial[0]), self.path(name)).expect("it is there");
    }

    /// The values in a file of JSON lines.
    pub(crate) fn json_lines(&self, name: &str) -> Vec<Value> {
        self.read(name).lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    /// `millstream ARGS…`
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
        command.args(args);
        self.at_home(&mut command);
        command
    }

    /// Gives a program the environment of this room, without variables from the environment of the tests.
    pub(crate) fn at_home(&self, command: &mut Command) {
        command
            .current_dir(self.folder.path())
            .env("XDG_RUNTIME_DIR", self.path("runtime"))
            .env_remove("NO_COLOR")
            .env_remove("TERM")
            .stdin(Stdio::null());
        heed_signals(command);
    }

    /// Runs `millstream ARGS…` to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the command starts")
    }

    /// Starts `millstream ARGS…` and waits until its control socket exists.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::start(self.command(args))
    }

    /// The output of `millstream status RUN`.
    pub(crate) fn status(&self, run: &str) -> Value {
        let (out, _) = ended(&self.run(&["status", run, "--json"]), 0);
        serde_json::from_str(&out).expect("JSON")
    }

    /// Waits until a program has written its process id to a file.
    pub(crate) fn process(&self, name: &str) -> Process {
        let mut process = None;
        until(&format!("{name} holds a number"), || {
            let text = fs::read_to_string(self.path(name)).unwrap_or_default();
            process = text.ends_with('\n').then(|| Process(text.trim().to_owned()));
            process.is_some()
        });
        process.expect("found")
    }

    pub(crate) fn wait_for(&self, name: &str) {
        until(&format!("{name} is there"), || self.path(name).exists());
    }
}

/// Gives a program the default signal handling, as in an interactive shell. The tests may have been started with some
/// signals ignored, for example in the background of a script or under `nohup`.
pub(crate) fn heed_signals(command: &mut Command) {
    // SAFETY: between fork and exec, the closure only makes system calls.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTERM, libc::SIGXFSZ] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
}

/// Sends a signal to a child that has not been reaped.
pub(crate) fn signal(child: &Child, signal: i32) {
    let pid = i32::try_from(child.id()).expect("a process id");
    // SAFETY: `kill` takes two numbers. The process is a child that has not been reaped.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

/// Waits for a child's end.
pub(crate) fn end_of(child: &mut Child) -> ExitStatus {
    let mut status = None;
    until("the command ends", || {
        status = child.try_wait().expect("a child");
        status.is_some()
    });
    status.expect("ended")
}

/// The id of a process.
pub(crate) struct Process(pub(crate) String);

impl Process {
    /// Whether the process still runs. A zombie does not count.
    pub(crate) fn runs(&self) -> bool {
        fs::read_to_string(format!("/proc/{}/stat", self.0)).is_ok_and(|stat| !stat.contains(") Z"))
    }
}

/// A flow that is running.
pub(crate) struct Running {
    pub(crate) child: Child,
    /// The control socket.
    pub(crate) control: PathBuf,
    stderr: Receiver<String>,
    seen: String,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
        let (send, stderr) = channel();
        let lines = BufReader::new(child.stderr.take().expect("piped"));
        thread::spawn(move || lines.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        let mut running = Self { child, control: PathBuf::new(), stderr, seen: String::new() };
        let line = running.line_with("control socket");
        let path =
            line.split_whitespace().find(|word| word.starts_with('/')).unwrap_or_else(|| panic!("no path: {line}"));
        running.control = PathBuf::from(path);
        running
    }

    /// Waits for a line on standard error that contains `text`.
    pub(crate) fn line_with(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.stderr.recv_timeout(left) {
                Ok(line) => {
                    self.seen += &format!("{line}\n");
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(_) => panic!("no line with {text:?} on standard error, only:\n{}", self.seen),
            }
        }
    }

    pub(crate) fn signal(&self, number: i32) {
        signal(&self.child, number);
    }

    /// Waits for the end. Returns the exit status, standard output and standard error.
    pub(crate) fn end(mut self) -> (ExitStatus, String, String) {
        let status = end_of(&mut self.child);
        let mut stdout = String::new();
        self.child.stdout.take().expect("piped").read_to_string(&mut stdout).expect("UTF-8");
        for line in &self.stderr {
            self.seen += &format!("{line}\n");
        }
        (status, stdout, self.seen.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until the condition is true.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?}, and not until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The exit status. The process must not have been killed by a signal.
pub(crate) fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| panic!("ended by signal {:?}", status.signal()))
}

/// Checks the exit status of a command, and returns standard output and standard error.
pub(crate) fn ended(output: &Output, expected: i32) -> (String, String) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(code(output.status), expected, "standard output:\n{out}\nstandard error:\n{err}");
    assert!(!err.contains("panicked"), "{err}");
    (out, err)
}

/// Waits for the end of a run, which must have this exit status. Returns the run's maximum resident memory.
pub(crate) fn peak_bytes(mut child: Child, expected: i32) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    until("the run ends", || {
        // `VmHWM` never decreases, so it can be read at any moment before the process ends.
        let found = fs::read_to_string(&status).unwrap_or_default();
        let line = found.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0) << 10);
        child.try_wait().expect("a child").is_some()
    });
    ended(&child.wait_with_output().expect("a child"), expected);
    assert!(peak > 0, "the process could be looked at");
    peak
}
