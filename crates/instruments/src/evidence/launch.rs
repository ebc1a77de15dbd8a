//! Starts one program again and again. Everything that is the same each time is prepared once.
//!
//! The measured time of a run should be the time of its program, so the launcher does as little as possible around the
//! program. The environment is copied once, no file is opened, and the child resets its signals with half of the usual
//! system calls. The child is started by `posix_spawn`, which does not copy this process.

use std::ffi::{CString, OsStr, OsString};
use std::fs::OpenOptions;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::ptr;

use libc::{c_char, c_int, c_short, posix_spawn_file_actions_t, posix_spawnattr_t, sigset_t};
use millstream_command::program::Group;
use millstream_command::program::supervise::{MARK, mark};
use millstream_command::signals::is_ignored;
use rustix::process::Pid;

/// The environment variable that tells a run its number, from 1 in the order of starts.
const RUN_NUMBER: &str = "MILLSTREAM_RUN";

/// A program, its arguments and its environment.
#[derive(Debug)]
pub(super) struct Launcher {
    path: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    attributes: Attributes,
    null: OwnedFd,
}

impl Launcher {
    /// # Errors
    /// Returns an error if a word contains a NUL byte, or the system refuses a resource.
    pub(super) fn new(path: &Path, name: &OsStr, arguments: &[OsString]) -> io::Result<Self> {
        let word = |word: &OsStr| CString::new(word.as_bytes()).map_err(io::Error::from);
        let assignment = |(name, value): (OsString, OsString)| {
            let mut bytes = name.into_vec();
            bytes.push(b'=');
            bytes.extend(value.as_bytes());
            CString::new(bytes).expect("the environment is made of strings that end with a zero byte")
        };
        Ok(Self {
            path: word(path.as_os_str())?,
            arguments: std::iter::once(name)
                .chain(arguments.iter().map(OsString::as_os_str))
                .map(word)
                .collect::<io::Result<_>>()?,
            environment: std::env::vars_os()
                .filter(|(name, _)| name != RUN_NUMBER && name != MARK)
                .chain([(MARK.into(), mark().into())])
                .map(assignment)
                .collect(),
            attributes: Attributes::new()?,
            null: OpenOptions::new().read(true).write(true).open("/dev/null")?.into(),
        })
    }

    /// Starts the program as the leader of a new process group, with an empty standard input. The standard output is
    /// discarded if `output` is `None`.
    pub(super) fn start(
        &self,
        number: u64,
        output: Option<BorrowedFd<'_>>,
        errors: BorrowedFd<'_>,
    ) -> io::Result<Group> {
        let number = CString::new(format!("{RUN_NUMBER}={number}")).expect("digits contain no NUL byte");
        let arguments = pointers(self.arguments.iter());
        let environment = pointers(self.environment.iter().chain([&number]));
        let mut actions = FileActions::new()?;
        for (from, to) in [(self.null.as_fd(), 0), (output.unwrap_or(self.null.as_fd()), 1), (errors, 2)] {
            actions.duplicate(from, to)?;
        }
        let mut leader = 0;
        // SAFETY: the strings end with a zero byte, and both lists of pointers to them end with a null pointer. All of
        // these live until the call returns, and the call does not write to them, although it takes mutable pointers.
        // The actions and attributes are initialised.
        let errno = unsafe {
            libc::posix_spawn(
                &raw mut leader,
                self.path.as_ptr(),
                &raw const actions.0,
                &raw const self.attributes.0,
                arguments.as_ptr(),
                environment.as_ptr(),
            )
        };
        check(errno)?;
        Ok(Group::of(Pid::from_raw(leader).expect("a child has a PID")))
    }
}

/// Returns the strings in the form that C expects: pointers, with a null pointer at the end.
fn pointers<'a>(strings: impl Iterator<Item = &'a CString>) -> Vec<*mut c_char> {
    strings.map(|string| string.as_ptr().cast_mut()).chain([ptr::null_mut()]).collect()
}

/// `posix_spawn` and related functions return an error's number.
fn check(errno: c_int) -> io::Result<()> {
    if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
}

/// The child's actions on its descriptors.
struct FileActions(posix_spawn_file_actions_t);

impl FileActions {
    fn new() -> io::Result<Self> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: the call initialises its argument, unless it fails.
        unsafe {
            check(libc::posix_spawn_file_actions_init(actions.as_mut_ptr()))?;
            Ok(Self(actions.assume_init()))
        }
    }

    fn duplicate(&mut self, from: BorrowedFd<'_>, to: c_int) -> io::Result<()> {
        // SAFETY: the actions are initialised; the call only records two numbers.
        check(unsafe { libc::posix_spawn_file_actions_adddup2(&raw mut self.0, from.as_raw_fd(), to) })
    }
}

impl Drop for FileActions {
    fn drop(&mut self) {
        // SAFETY: the actions are initialised, and are not used again.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
    }
}

/// The child's attributes: it leads a group, blocks no signal, and ignores only the signals that this process was
/// itself told to ignore.
#[derive(Debug)]
struct Attributes(posix_spawnattr_t);

impl Attributes {
    fn new() -> io::Result<Self> {
        let (mut attributes, mut none) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let flags = libc::POSIX_SPAWN_SETPGROUP | libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF;
        let defaults = default_signals();
        // SAFETY: the first two calls initialise their arguments, unless they fail. The other calls copy their
        // arguments.
        unsafe {
            check(libc::posix_spawnattr_init(attributes.as_mut_ptr()))?;
            let mut attributes = Self(attributes.assume_init());
            libc::sigemptyset(none.as_mut_ptr());
            check(libc::posix_spawnattr_setflags(&raw mut attributes.0, flags as c_short))?;
            check(libc::posix_spawnattr_setpgroup(&raw mut attributes.0, 0))?;
            check(libc::posix_spawnattr_setsigmask(&raw mut attributes.0, none.as_ptr()))?;
            check(libc::posix_spawnattr_setsigdefault(&raw mut attributes.0, &raw const defaults))?;
            Ok(attributes)
        }
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: the attributes are initialised, and are not used again.
        unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
    }
}

/// Returns the signals whose action in the child is the default: all signals that this process does not ignore (any exec resets
/// them), and SIGPIPE, which Rust's runtime ignores. `posix_spawn` need not ask for the action of these signals.
fn default_signals() -> sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call initialises the set. Adding a number that is not a signal has no effect.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in (1..=libc::SIGRTMAX()).filter(|&signal| !is_ignored(signal) || signal == libc::SIGPIPE) {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}
