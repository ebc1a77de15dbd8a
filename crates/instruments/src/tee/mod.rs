//! `millstream tee`: gives one input to several commands, and names the command that is stuck.
//!
//! The usual `tee` gives a block to one command after the other, so one command that does not read stops all commands.
//! If that command waits for the output of the others, they deadlock. Here each command has its own position in the
//! input, and `tee` keeps the part of the input between the first and the last position.
//!
//! - [`args`]: the command line;
//! - `log`: the kept part of the input;
//! - `branch`: a command with its position.

pub(crate) mod args;
mod branch;
mod log;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use millstream_command::program::how;
use millstream_command::screen::{out, text};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use self::args::TeeArgs;
use self::branch::Branch;
use self::log::{Log, PIECE};

/// A command failed or was stuck, or something could not be read or written.
const FAILED: u8 = 1;
/// A command could not be started.
const WRONG: u8 = 2;

/// `millstream tee`.
pub(crate) fn tee(args: &TeeArgs) -> ExitCode {
    let mut branches = Vec::new();
    for words in args.commands.split(|word| word == ":::") {
        match start(words) {
            Ok(branch) => branches.push(branch),
            Err(message) => {
                branches.iter_mut().for_each(Branch::kill);
                out::complain(format!("error: {message}"));
                return ExitCode::from(WRONG);
            }
        }
    }
    let mut tee =
        Tee { log: Log::new(args.buffer, args.spill.clone()), branches, patience: args.patience, ended: false };
    if let Err(message) = tee.run() {
        tee.branches.iter_mut().for_each(Branch::kill);
        out::complain(format!("error: {message}"));
        return ExitCode::from(FAILED);
    }
    ExitCode::from(tee.statuses())
}

fn start(words: &[OsString]) -> Result<Branch, String> {
    let Some(name) = words.first() else {
        return Err("a command is missing beside `:::`; expected CMD ::: CMD".to_owned());
    };
    Branch::start(words)
        .map_err(|error| format!("cannot start `{}`: {error}", text::printable(&name.to_string_lossy())))
}

struct Tee {
    log: Log,
    branches: Vec<Branch>,
    patience: Duration,
    /// Whether the input has ended.
    ended: bool,
}

impl Tee {
    /// Feeds the commands until each has the whole input, or has stopped reading.
    fn run(&mut self) -> Result<(), String> {
        let mut block = vec![0; PIECE];
        loop {
            for branch in &mut self.branches {
                branch.feed(&self.log).map_err(|error| format!("cannot read the spilled input: {error}"))?;
                if self.ended && branch.needs() == Some(self.log.end()) {
                    branch.close();
                }
            }
            let Some(first) = self.branches.iter().filter_map(Branch::needs).min() else { return Ok(()) };
            self.log.drop_before(first);
            let wants_input = !self.ended && !self.log.is_full();
            if !wants_input && let Some(stuck) = self.stuck() {
                return Err(self.about(stuck));
            }
            if self.wait(wants_input)? {
                match rustix::io::read(rustix::stdio::stdin(), &mut block) {
                    Ok(0) => self.ended = true,
                    Ok(read) => self.log.push(&block[..read]).map_err(|error| {
                        format!("cannot spill the input: {error}; the commands have received only a part of it")
                    })?,
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    Err(error) => return Err(format!("cannot read standard input: {}", io::Error::from(error))),
                }
            }
        }
    }

    /// Waits until the input can be read, a command can take input, or a command may have taken no input for too long.
    /// Returns whether the input can be read.
    fn wait(&self, wants_input: bool) -> Result<bool, String> {
        let stdin = rustix::stdio::stdin();
        let mut fds = Vec::with_capacity(self.branches.len() + 1);
        if wants_input {
            fds.push(PollFd::from_borrowed_fd(stdin, PollFlags::IN));
        }
        let pipes = self.branches.iter().filter_map(|branch| branch.waiting(&self.log));
        fds.extend(pipes.map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::OUT)));
        let most = self.patience.min(Duration::from_secs(1));
        let most = Timespec::try_from(most).map_err(|error| error.to_string())?;
        match poll(&mut fds, (!wants_input).then_some(&most)) {
            Ok(_) => Ok(wants_input && !fds[0].revents().is_empty()),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(format!("cannot wait for the commands: {}", io::Error::from(error))),
        }
    }

    /// Returns the command that takes no input while all others wait for it.
    fn stuck(&self) -> Option<usize> {
        let last =
            |branch: &Branch| branch.needs() == Some(self.log.first()) && branch.moved.elapsed() >= self.patience;
        // Before the end of the input, only the command that is furthest behind holds up the others. After the end,
        // any command may be stuck.
        self.branches.iter().position(|branch| if self.ended { self.is_idle(branch) } else { last(branch) })
    }

    fn is_idle(&self, branch: &Branch) -> bool {
        branch.waiting(&self.log).is_some() && branch.moved.elapsed() >= self.patience
    }

    fn about(&self, stuck: usize) -> String {
        let branch = &self.branches[stuck];
        let most = self.branches.iter().map(|branch| branch.bytes).max().unwrap_or(0);
        let since = Instant::now().saturating_duration_since(branch.moved).as_secs_f64();
        format!(
            "command {} of {}, `{}`, is stuck: it has taken nothing for {}, and is {} behind the fastest; let it \
             read on, or give a larger --buffer, --spill DIR, or more --patience",
            stuck + 1,
            self.branches.len(),
            branch.name,
            text::seconds(since),
            text::bytes(most - branch.bytes),
        )
    }

    /// Waits for all commands, and returns the exit status of `tee`.
    fn statuses(&mut self) -> u8 {
        let mut status = 0;
        for branch in &mut self.branches {
            let failed = match branch.wait() {
                Ok(ended) if ended.success() => continue,
                Ok(ended) => how(ended),
                Err(error) => error.to_string(),
            };
            out::complain(format!("error: `{}`: {failed}", branch.name));
            status = FAILED;
        }
        status
    }
}
