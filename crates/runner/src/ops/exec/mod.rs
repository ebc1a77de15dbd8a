//! `exec`: runs a program for a unit.
//!
//! The program gets its argument vector directly, not through a shell (`shell = true` asks for `/bin/sh -c`), and runs
//! in a process group of its own. A single thread with a single `poll` writes the payload to standard input and reads
//! standard output and standard error, so the op and the program cannot deadlock. On a fiber, every wait suspends the
//! fiber, and the program is started on another thread. Standard output becomes the payload, is written to a file, is
//! printed, or is not captured. Standard error is printed or written to a file, and its last [`STDERR_TAIL`] bytes
//! become part of the failure's message. The outputs of an attempt that will be repeated are discarded.
//!
//! As with a shell's `$(…)`, the op ends when the program has exited and no process has its output open. When the time
//! limit passes or the flow is abandoned, the whole group gets SIGTERM and, a moment later, SIGKILL. When the op
//! returns, no process of the group remains. Programs that still run at the end of the run get SIGKILL
//! ([`live::end`](millstream_command::program::live::end)). A descendant that has left the group with `setsid` is not
//! followed.

mod program;
mod talk;

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{io, mem};

use millstream_command::program::{Group, Pipes, STDERR_TAIL, Tail, find, how, supervise};
use millstream_fiber::blocking;
use millstream_fiber::sync::Mutex;
use millstream_flow::{Cx, Failure};

use self::talk::{Complaints, Ending, Spoken};
use super::failing::io_failure;
use super::place::{Existing, Placing};
use super::safe_path::PathTemplate;
use super::{Op, OpError, Surroundings, trace_context};
use crate::file::model::{ExecSpec, ExecStderr, ExecStdin, ExecStdout};
use crate::file::template::{Field, Template};
use crate::machine::Machine;
use crate::printer::{self, Output, Printer};
use crate::record::Record;
use crate::stand_ins::StandInProgram;

/// The pause of a unit whose program would print while the run's standard output has no reader. The run halts before
/// the pause ends.
const PAUSE: Duration = Duration::from_secs(1);

/// The maximum number of concurrent starts of a stage on fibers: each start occupies a thread.
const STARTS: usize = 8;

/// See the [module](self).
pub(super) struct Exec {
    program: Program,
    arguments: Vec<Template>,
    stdin: ExecStdin,
    stdout: Stdout,
    stderr: Stderr,
    tag: Option<Template>,
    ordered: bool,
    env: Vec<(String, Template)>,
    dir: Option<PathTemplate>,
    printer: Arc<Printer>,
    machine: Arc<Machine>,
    /// The maximum number of attempts for a unit. The failure of the last attempt is final.
    attempts: u32,
    /// Permits for starts on fibers. The op holds a permit while it starts a program.
    starts: Option<[Mutex<()>; STARTS]>,
    /// The number of starts so far, from which the index of the next permit is computed.
    next_start: AtomicUsize,
    /// The stand-in that runs in place of the program.
    stand_in: Option<Arc<StandInProgram>>,
}

/// The program of the stage.
enum Program {
    /// A program that was found before the first unit.
    Found { name: OsString, path: PathBuf },
    /// A program whose name contains a slash, or differs from unit to unit.
    Named(Template),
}

enum Stdout {
    Payload,
    File { path: PathTemplate, failed: bool },
    Print,
    Null,
    Inherit,
}

enum Stderr {
    Message,
    File(PathTemplate),
    Print,
    Inherit,
}

impl Exec {
    pub(super) fn new(spec: &ExecSpec, around: &Surroundings<'_>) -> Result<Self, OpError> {
        let (program, arguments) = if spec.shell && around.stand_ins.is_none() {
            // The shell's arguments are `-c`, the script, the name of the script, and then the script's arguments.
            let word = |text| Template::parse(text).map_err(|error| OpError::new(error.message, error.help));
            let mut arguments = vec![word("-c")?];
            arguments.extend(spec.argv.iter().take(1).cloned());
            arguments.push(word("sh")?);
            arguments.extend(spec.argv.iter().skip(1).cloned());
            (Program::shell(), arguments)
        } else {
            let Some((program, arguments)) = spec.argv.split_first() else {
                return Err(OpError::new(
                    "`exec` names no program",
                    "write it as `exec = [\"program\", \"argument\", …]`",
                ));
            };
            match around.stand_ins {
                // The stand-in gets the script as it is in the flow file.
                Some(_) if spec.shell => (Program::shell(), spec.argv.clone()),
                Some(_) => (Program::Named(program.clone()), arguments.to_vec()),
                None => (Program::new(program)?, arguments.to_vec()),
            }
        };
        Ok(Self {
            program,
            arguments,
            stdin: spec.stdin,
            stdout: match &spec.stdout {
                ExecStdout::Payload => Stdout::Payload,
                ExecStdout::File { path, failed } => Stdout::File { path: PathTemplate::new(path), failed: *failed },
                ExecStdout::Print => Stdout::Print,
                ExecStdout::Null => Stdout::Null,
                ExecStdout::Inherit => Stdout::Inherit,
            },
            stderr: match &spec.stderr {
                ExecStderr::Message => Stderr::Message,
                ExecStderr::File(path) => Stderr::File(PathTemplate::new(path)),
                ExecStderr::Print => Stderr::Print,
                ExecStderr::Inherit => Stderr::Inherit,
            },
            tag: spec.tag.clone(),
            ordered: spec.ordered,
            env: spec.env.clone(),
            dir: spec.dir.as_ref().map(PathTemplate::new),
            printer: Arc::clone(around.printer),
            machine: Arc::clone(around.machine),
            attempts: around.attempts,
            starts: around.fibers.then(Default::default),
            next_start: AtomicUsize::new(0),
            stand_in: around.stand_ins.map(|stand_ins| Arc::clone(&stand_ins.program)),
        })
    }

    fn inherits_stdout(&self) -> bool {
        matches!(self.stdout, Stdout::Inherit)
    }

    fn prints(&self) -> bool {
        matches!(self.stdout, Stdout::Print) || matches!(self.stderr, Stderr::Print)
    }

    /// The command for one unit, and the program's name in messages.
    fn command(&self, record: &Record) -> Result<(Command, OsString), Failure> {
        let render = |template: &Template| match template.render(record) {
            Ok(bytes) => Ok(OsString::from_vec(bytes)),
            Err(error) => Err(Failure::from(error).to_permanent()),
        };
        let (mut command, name) = match &self.program {
            Program::Found { name, path } => (Command::new(path), name.clone()),
            Program::Named(template) => {
                let name = render(template)?;
                let path = from_here(&name).map_err(|error| not_started(&name, &error))?;
                (Command::new(path), name)
            }
        };
        match &self.stand_in {
            Some(stand_in) => command = stand_in.command(self.program.word(&name)),
            None => drop(command.arg0(&name)),
        }
        for argument in &self.arguments {
            match record.items().filter(|_| argument.is_only(&Field::Items)) {
                Some(items) => drop(command.args(items.map(OsStr::from_bytes))),
                None => drop(command.arg(render(argument)?)),
            }
        }
        if let Some(context) = trace_context::of_attempt() {
            command.env(trace_context::VARIABLE, context);
        }
        for (name, value) in &self.env {
            command.env(name, render(value)?);
        }
        command.env(supervise::MARK, supervise::mark());
        if let Some(dir) = &self.dir {
            command.current_dir(dir.render(record)?);
        }
        Ok((command, name))
    }

    /// Starts the program.
    fn start(&self, command: &mut Command) -> io::Result<(Group, Pipes)> {
        // Relaxed: any permit will do.
        let turn = || self.next_start.fetch_add(1, Ordering::Relaxed) % STARTS;
        let _start = self.starts.as_ref().map(|starts| starts[turn()].lock());
        blocking(|| Group::spawn(command))
    }

    /// Prints the program's outputs.
    fn print(&self, record: &Record, spoken: &mut Spoken) -> Result<(), Failure> {
        let mut output = Output::default();
        if matches!(self.stdout, Stdout::Print) {
            output.stdout = mem::take(&mut spoken.stdout);
        }
        if let Complaints::All(all) = &mut spoken.stderr {
            output.stderr = mem::take(all);
        }
        if let Some(tag) = &self.tag {
            output.tag = Some(tag.render(record).map_err(|error| Failure::from(error).to_permanent())?);
        }
        self.printer.print(output, record.place.as_deref().filter(|_| self.ordered));
        Ok(())
    }
}

impl Op for Exec {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        if self.prints() {
            self.printer.await_room(cx)?;
        }
        if self.inherits_stdout() && !printer::is_read() {
            self.printer.reader_is_gone();
            return Err(Failure::requeue("standard output has no reader").not_before(PAUSE));
        }
        self.machine.await_start(cx)?;
        let (mut command, name) = self.command(record)?;
        let made = match self.stdin {
            ExecStdin::Payload => record.payload.to_make(cx)?,
            ExecStdin::Items | ExecStdin::Null => 0,
        };
        let held = record.held() + made;
        if made > 0 {
            // The program has not been started, so the unit can still wait for memory.
            cx.reserve_first(held)?;
        }
        let input = match self.stdin {
            ExecStdin::Payload => record.payload.in_memory(made, cx)?,
            ExecStdin::Items => match record.block_bytes() {
                Some(block) => block.into(),
                None => record.items().map(lines).unwrap_or_default().into(),
            },
            ExecStdin::Null => Cow::default(),
        };
        command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
        let mut output_file = None;
        command.stdout(match &self.stdout {
            Stdout::Payload | Stdout::Print => Stdio::piped(),
            Stdout::Null => Stdio::null(),
            Stdout::Inherit => Stdio::inherit(),
            Stdout::File { path, .. } => {
                let (file, placing) = OutputFile::create(path, record)?;
                output_file = Some(placing);
                file.into()
            }
        });
        let mut error_file = None;
        command.stderr(match &self.stderr {
            Stderr::Message | Stderr::Print => Stdio::piped(),
            Stderr::Inherit => Stdio::inherit(),
            Stderr::File(path) => {
                let (file, placing) = OutputFile::create(path, record)?;
                error_file = Some(placing);
                file.into()
            }
        });
        let started = self.start(&mut command).map_err(|error| not_started(&name, &error))?;
        // The command has a copy of the output file's descriptor. Without this drop, the file would stay open after the
        // program has closed it.
        drop(command);
        let kept = match &self.stderr {
            Stderr::Print => Complaints::All(Vec::new()),
            Stderr::Message | Stderr::File(_) | Stderr::Inherit => Complaints::End(Tail::default()),
        };
        let (ending, mut spoken) = talk::with(started, &input, held, kept, cx)?;
        if let Some(file) = &error_file {
            spoken.stderr = Complaints::End(file.end());
        }
        let verdict = judge(&name, &ending, &spoken.stderr.end());
        let is_cancelled = matches!(ending, Ending::Cancelled(_));
        if let Some(file) = error_file {
            file.put()?;
        }
        if let Stdout::File { failed, .. } = self.stdout
            && let Some(file) = output_file.filter(|_| verdict.is_ok() || failed)
        {
            file.put()?;
        }
        if self.prints() && (verdict.is_ok() || is_cancelled || cx.attempt() >= self.attempts) {
            self.print(record, &mut spoken)?;
        }
        verdict?;
        if matches!(self.stdout, Stdout::Payload) {
            record.payload = spoken.stdout.into();
            record.headroom = 0;
        }
        Ok(())
    }

    /// The op uses little processor time itself, so its stage may have threads of its own if a need bounds their
    /// number. Otherwise the stage runs on the flow's workers, and no more programs run at once than there are workers.
    fn blocking(&self, has_needs: bool) -> bool {
        has_needs
    }
}

impl Program {
    fn shell() -> Self {
        Self::Found { name: "sh".into(), path: "/bin/sh".into() }
    }

    /// The program's name, which a stand-in gets as its first word. `None` for a script, since its stand-in does not
    /// get the shell's name.
    fn word<'a>(&self, name: &'a OsStr) -> Option<&'a OsStr> {
        matches!(self, Self::Named(_)).then_some(name)
    }

    /// The program that `template` names.
    fn new(template: &Template) -> Result<Self, OpError> {
        let Some(name) = template.constant() else { return Ok(Self::Named(template.clone())) };
        let name = OsString::from_vec(name.to_vec());
        if name.as_encoded_bytes().contains(&b'/') {
            let path = from_here(&name)
                .map_err(|error| OpError::new(format!("no program `{}`: {error}", name.display()), "check the path"))?;
            return program::check(Path::new(&name)).map(|()| Self::Found { name, path });
        }
        // The program is looked up only once, because each folder on the search path without the program costs a failed
        // system call.
        match find(&name, std::env::var_os("PATH").as_deref()) {
            Some(path) => program::check(&path).map(|()| Self::Found { name, path }),
            None => Err(OpError::new(
                format!("no program `{}` is on the search path", name.display()),
                "install it, or give its path with a slash in it",
            )),
        }
    }
}

/// The path for a program's name. A name with a slash is relative to the folder in which the run began, not to the
/// program's working folder: otherwise data that chooses the working folder would also choose the program. A name
/// without a slash is returned as it is, and is later looked up on the search path.
fn from_here(name: &OsStr) -> io::Result<PathBuf> {
    if name.as_bytes().contains(&b'/') { std::path::absolute(name) } else { Ok(name.into()) }
}

/// The items, one per line.
fn lines<'a>(items: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    items.flat_map(|item| [item, b"\n"]).collect::<Vec<_>>().concat()
}

/// A file to which a program writes. The file has a temporary name until the program has ended.
struct OutputFile(Placing);

impl OutputFile {
    fn create(path: &PathTemplate, record: &Record) -> Result<(File, Self), Failure> {
        let path = path.render_file(record)?;
        let (placing, file) = Placing::create_with(path.clone(), record.permissions())
            .map_err(|error| io_failure("write", &path, &error))?;
        Ok((file, Self(placing)))
    }

    fn put(self) -> Result<(), Failure> {
        let path = self.0.target().to_owned();
        self.0.put(Existing::Replace).map_err(|error| io_failure("write", &path, &error))
    }

    /// The end of the file, for the failure's message. It is empty if the file cannot be read.
    fn end(&self) -> Tail {
        // One byte more than a message shows is read, to detect a longer file.
        let mut end = vec![0; STDERR_TAIL + 1];
        let read = File::open(self.0.temporary()).and_then(|file| {
            let from = file.metadata()?.len().saturating_sub(end.len() as u64);
            file.read_at(&mut end, from)
        });
        Tail::of(&end[..read.unwrap_or(0)])
    }
}

/// Whether the program has succeeded.
fn judge(name: &OsString, ending: &Ending, stderr: &Tail) -> Result<(), Failure> {
    let name = Path::new(name).display();
    match ending {
        Ending::Exited(status) if status.success() => Ok(()),
        Ending::Exited(status) => Err(Failure::msg(format!("`{name}` {}{stderr}", how(*status)))),
        Ending::TimedOut => Err(Failure::timeout(format!("`{name}` and its process group were killed{stderr}"))),
        Ending::Cancelled(failure) => {
            Err(Failure::msg(format!("`{name}` and its process group were killed: {failure}{stderr}")).to_permanent())
        }
    }
}

fn not_started(name: &OsString, error: &io::Error) -> Failure {
    io_failure("run", Path::new(name), error)
}

#[cfg(test)]
mod tests;
