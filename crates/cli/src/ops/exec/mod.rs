//! `exec`: runs a program for a unit.
//!
//! The program gets an argument vector, never a shell's idea of one (`shell = true` asks for `/bin/sh -c`), in a
//! process group of its own. The payload is written to its standard input while its standard output and error are read,
//! by one thread and one `poll`, so that the two sides cannot deadlock. Standard output becomes the
//! payload, a file that appears when the program has succeeded, or is left alone; of standard error the last
//! [`STDERR_TAIL`](millstream_command::program::STDERR_TAIL) bytes go into the failure's message.
//!
//! The run ends when the program has ended and no process holds its output any more, as a shell's `$(…)` does. When the
//! time limit passes or the flow is abandoned, the whole group gets SIGTERM, a moment later SIGKILL, and is gone when
//! the op returns; what still runs when the run ends gets SIGKILL ([`live::end`](millstream_command::program::live::end)). A descendant that has left the group
//! with `setsid` is its own master and is not followed.

mod program;
mod talk;

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use millstream_command::program::{Group, Tail, find, how, supervise};
use millstream_flow::{Cx, Failure};

use self::talk::Ending;
use super::failing::io_failure;
use super::place::{Existing, Placing};
use super::safe_path::PathTemplate;
use super::{Op, OpError};
use crate::file::model::{ExecStdin, ExecStdout};
use crate::file::template::Template;
use crate::record::Record;

/// See the [module](self).
pub(super) struct Exec {
    program: Program,
    arguments: Vec<Template>,
    stdin: ExecStdin,
    stdout: Stdout,
    env: Vec<(String, Template)>,
    dir: Option<PathTemplate>,
}

/// The program of the stage.
enum Program {
    /// Found on the search path before the first unit.
    Found { name: OsString, path: PathBuf },
    /// It has a slash in it, or differs from unit to unit.
    Named(Template),
}

enum Stdout {
    Payload,
    File(PathTemplate),
    Null,
    Inherit,
}

impl Exec {
    pub(super) fn new(
        argv: &[Template],
        shell: bool,
        stdin: ExecStdin,
        stdout: &ExecStdout,
        env: &[(String, Template)],
        dir: Option<&Template>,
    ) -> Result<Self, OpError> {
        let (program, arguments) = if shell {
            // `-c`, the script, what the script is called, and then its arguments.
            let word = |text| Template::parse(text).map_err(|error| OpError::new(error.message, error.help));
            let mut arguments = vec![word("-c")?];
            arguments.extend(argv.iter().take(1).cloned());
            arguments.push(word("sh")?);
            arguments.extend(argv.iter().skip(1).cloned());
            (Program::Found { name: "sh".into(), path: "/bin/sh".into() }, arguments)
        } else {
            let Some((program, arguments)) = argv.split_first() else {
                return Err(OpError::new(
                    "`exec` names no program",
                    "write it as `exec = [\"program\", \"argument\", …]`",
                ));
            };
            (Program::new(program)?, arguments.to_vec())
        };
        Ok(Self {
            program,
            arguments,
            stdin,
            stdout: match stdout {
                ExecStdout::Payload => Stdout::Payload,
                ExecStdout::File(path) => Stdout::File(PathTemplate::new(path)),
                ExecStdout::Null => Stdout::Null,
                ExecStdout::Inherit => Stdout::Inherit,
            },
            env: env.to_vec(),
            dir: dir.map(PathTemplate::new),
        })
    }

    /// The command for one unit, and the name it has in messages.
    fn command(&self, record: &Record) -> Result<(Command, OsString), Failure> {
        let render = |template: &Template| match template.render(record) {
            Ok(bytes) => Ok(OsString::from_vec(bytes)),
            Err(error) => Err(Failure::from(error).to_permanent()),
        };
        let (mut command, name) = match &self.program {
            Program::Found { name, path } => {
                let mut command = Command::new(path);
                command.arg0(name);
                (command, name.clone())
            }
            Program::Named(template) => {
                let name = render(template)?;
                let path = from_here(&name).map_err(|error| not_started(&name, &error))?;
                let mut command = Command::new(path);
                command.arg0(&name);
                (command, name)
            }
        };
        for argument in &self.arguments {
            command.arg(render(argument)?);
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
}

impl Op for Exec {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let (mut command, name) = self.command(record)?;
        let made = match self.stdin {
            ExecStdin::Payload => record.payload.to_make(cx)?,
            ExecStdin::Null => 0,
        };
        let held = record.held() + made;
        if made > 0 {
            // Nothing runs yet, so the unit may wait whatever the program does.
            cx.reserve_first(held)?;
        }
        let input = match self.stdin {
            ExecStdin::Payload => record.payload.in_memory(made, cx)?,
            ExecStdin::Null => Cow::default(),
        };
        command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
        command.stderr(Stdio::piped());
        let mut placing = None;
        command.stdout(match &self.stdout {
            Stdout::Payload => Stdio::piped(),
            Stdout::Null => Stdio::null(),
            Stdout::Inherit => Stdio::inherit(),
            Stdout::File(path) => {
                let path = path.render_file(record)?;
                let (file_placing, file) = Placing::create_with(path.clone(), record.permissions())
                    .map_err(|error| io_failure("write", &path, &error))?;
                placing = Some(file_placing);
                file.into()
            }
        });
        let started = Group::spawn(&mut command).map_err(|error| not_started(&name, &error))?;
        // The command holds this side's copy of an output file, which must not outlive the program's.
        drop(command);
        let (ending, spoken) = talk::with(started, &input, held, cx)?;
        judge(&name, &ending, &spoken.stderr)?;
        if let Some(placing) = placing {
            let path = placing.target().to_owned();
            placing.put(Existing::Replace).map_err(|error| io_failure("write", &path, &error))?;
        }
        if matches!(self.stdout, Stdout::Payload) {
            record.payload = spoken.stdout.into();
            record.headroom = 0;
        }
        Ok(())
    }

    /// A program waits on its own time. Without a need that bounds them, as many run as the flow has workers.
    fn blocking(&self, has_needs: bool) -> bool {
        has_needs
    }
}

impl Program {
    /// The program that `template` names.
    fn new(template: &Template) -> Result<Self, OpError> {
        let Some(name) = template.constant() else { return Ok(Self::Named(template.clone())) };
        let name = OsString::from_vec(name.to_vec());
        if name.as_encoded_bytes().contains(&b'/') {
            let path = from_here(&name)
                .map_err(|error| OpError::new(format!("no program `{}`: {error}", name.display()), "check the path"))?;
            return program::check(Path::new(&name)).map(|()| Self::Found { name, path });
        }
        // Looked up once: the search costs a failed system call for each folder of the path that does not have it.
        match find(&name, std::env::var_os("PATH").as_deref()) {
            Some(path) => program::check(&path).map(|()| Self::Found { name, path }),
            None => Err(OpError::new(
                format!("no program `{}` is on the search path", name.display()),
                "install it, or give its path with a slash in it",
            )),
        }
    }
}

/// Where a program with a slash in its name lies: the name is of the folder the run began in, whatever folder the program
/// then runs in, or data that names that folder would also say what runs there. Other names are left to the search path.
fn from_here(name: &OsStr) -> io::Result<PathBuf> {
    if name.as_bytes().contains(&b'/') { std::path::absolute(name) } else { Ok(name.into()) }
}

/// Whether the program has succeeded.
fn judge(name: &OsString, ending: &Ending, stderr: &Tail) -> Result<(), Failure> {
    let name = Path::new(name).display();
    match ending {
        Ending::Exited(status) if status.success() => Ok(()),
        Ending::Exited(status) => Err(Failure::msg(format!("`{name}` {}{stderr}", how(*status)))),
        Ending::TimedOut => Err(Failure::timeout(format!("`{name}` and all it started were killed{stderr}"))),
        Ending::Cancelled(failure) => {
            Err(Failure::msg(format!("`{name}` and all it started were killed: {failure}{stderr}")).to_permanent())
        }
    }
}

fn not_started(name: &OsString, error: &io::Error) -> Failure {
    io_failure("run", Path::new(name), error)
}

#[cfg(test)]
mod tests;
