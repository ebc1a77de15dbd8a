//! The names of control sockets in the [run-time folder](millstream_runner::runtime_folder), and the search for sockets on which runs
//! listen.
//!
//! The name of a socket consists of the flow's name and the run's process id: `archive-4711`. If a run is killed, its
//! socket remains and refuses connections. The next run removes such a socket, and so does a command that lists the
//! runs.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use millstream_command::screen::text;
use millstream_runner::runtime_folder::{folders, make_private, own_folders};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use rustix::process::{Pid, test_kill_process};

use super::socket;

/// The maximum length of a flow's name in a socket's name. The whole path of a socket may have only about 100 bytes.
const NAME_BYTES: usize = 40;

/// Removes the sockets of runs that were killed. Such a socket refuses connections, and its process does not exist.
pub(crate) fn remove_dead_sockets() {
    for folder in own_folders() {
        for run in sockets_in(&folder).filter(Run::is_gone) {
            run.is_live();
        }
    }
}

/// The name of this process's run of a flow.
pub(crate) fn run_name(flow: &str, pid: u32) -> String {
    let mut name: String =
        flow.chars().map(|c| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' }).collect();
    while name.len() > NAME_BYTES {
        name.pop();
    }
    // A socket whose name starts with a dot would be hidden.
    if name.starts_with('.') {
        name.replace_range(..1, "_");
    }
    format!("{name}-{pid}")
}

/// A control socket in one of the folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// The run's name, which consists of the flow's name and the process id.
    pub name: String,
    /// The socket.
    pub path: PathBuf,
}

impl Run {
    fn pid(&self) -> Option<Pid> {
        self.name.rsplit_once('-').and_then(|(_, pid)| pid.parse().ok()).and_then(Pid::from_raw)
    }

    fn flow(&self) -> &str {
        self.name.rsplit_once('-').map_or(&self.name, |(flow, _)| flow)
    }

    /// Whether no process has the run's process id.
    fn is_gone(&self) -> bool {
        self.pid().is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH))
    }

    /// Whether a run listens on the socket. The socket of a dead run is removed.
    fn is_live(&self) -> bool {
        match connect(&self.path) {
            Ok(_) => true,
            // The run exists, but its queue of waiting connections is full.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
            Err(error) => {
                // Connections are also refused by a run that has created its socket and does not listen yet. The
                // process of such a run exists.
                if error.kind() == io::ErrorKind::ConnectionRefused && self.is_gone() {
                    socket::remove_dead(&self.path);
                }
                false
            }
        }
    }
}

/// Connects without blocking. A stopped run accepts no connections, so a blocking `connect` would wait forever once the
/// run's backlog is full.
///
/// # Errors
/// No run listens, or the run's backlog is full ([`WouldBlock`](io::ErrorKind::WouldBlock)).
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &address)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// The runs that listen now, sorted by name.
pub(crate) fn runs() -> Vec<Run> {
    folders().iter().flat_map(|folder| runs_in(folder)).collect()
}

fn runs_in(folder: &Path) -> Vec<Run> {
    // A folder of another user is ignored.
    if !folder.exists() || make_private(folder).is_err() {
        return Vec::new();
    }
    let mut runs: Vec<_> = sockets_in(folder).filter(Run::is_live).collect();
    runs.sort_by(|a, b| a.name.cmp(&b.name));
    runs
}

fn sockets_in(folder: &Path) -> impl Iterator<Item = Run> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()))
        .map(|entry| Run { name: entry.file_name().to_string_lossy().into_owned(), path: entry.path() })
}

/// The reason why RUN does not identify exactly one run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoRun {
    /// No flow is running.
    #[error("no flow is running{}", asked.as_ref().map_or_else(String::new, |run| format!(": there is no run {}", text::printable(run))))]
    None {
        /// The RUN of the command line.
        asked: Option<String>,
    },
    /// Only other flows are running.
    #[error("there is no run {}; running now: {}", text::printable(asked), text::printable(&names.join(", ")))]
    Unknown {
        /// The RUN of the command line.
        asked: String,
        /// The runs that exist.
        names: Vec<String>,
    },
    /// Several runs match.
    #[error("{} runs {} times; name one of: {}", text::printable(asked), names.len(), text::printable(&names.join(", ")))]
    Ambiguous {
        /// The RUN of the command line.
        asked: String,
        /// The runs that match.
        names: Vec<String>,
    },
}

/// Finds the run for a RUN of the command line. RUN is the path of a socket (anything with a `/`), the run's name, its
/// process id, or the name of its flow if that flow has only one run.
///
/// # Errors
/// [`NoRun`], which names the existing runs.
pub(crate) fn find(asked: &Path) -> Result<Run, NoRun> {
    let text = asked.to_string_lossy();
    if text.contains('/') {
        let name = asked.file_name().map_or_else(|| text.clone().into_owned(), |n| n.to_string_lossy().into_owned());
        return Ok(Run { name, path: asked.to_owned() });
    }
    choose(&text, &runs())
}

fn choose(asked: &str, runs: &[Run]) -> Result<Run, NoRun> {
    if runs.is_empty() {
        return Err(NoRun::None { asked: Some(asked.to_owned()) });
    }
    if let Some(run) = runs.iter().find(|run| run.name == asked) {
        return Ok(run.clone());
    }
    let names = |runs: &[Run]| runs.iter().map(|run| run.name.clone()).collect();
    let pid = |run: &Run| run.pid().map(|pid| pid.as_raw_nonzero().to_string());
    let fitting: Vec<_> =
        runs.iter().filter(|run| run.flow() == asked || pid(run).as_deref() == Some(asked)).cloned().collect();
    match fitting.as_slice() {
        [run] => Ok(run.clone()),
        [] => Err(NoRun::Unknown { asked: asked.to_owned(), names: names(runs) }),
        _ => Err(NoRun::Ambiguous { asked: asked.to_owned(), names: names(&fitting) }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn run(name: &str) -> Run {
        Run { name: name.to_owned(), path: PathBuf::from(name) }
    }

    #[test]
    fn a_run_name_is_a_file_name_of_bounded_length() {
        assert_eq!(run_name("archive", 7), "archive-7");
        assert_eq!(run_name("../a b/c", 7), "_._a_b_c-7");
        assert_eq!(run_name("日本語", 7), "日本語-7");
        assert!(run_name(&"ü".repeat(1000), u32::MAX).len() <= NAME_BYTES + 11);
    }

    #[test]
    fn dead_sockets_are_removed_and_live_ones_listed() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("millstream");
        make_private(&folder).unwrap();
        let own = std::process::id();
        // This id is above the kernel's maximum, so no process can have it.
        drop(UnixListener::bind(folder.join("gone-2147483647")).unwrap());
        drop(UnixListener::bind(folder.join(format!("starting-{own}"))).unwrap());
        let _live = UnixListener::bind(folder.join(format!("live-{own}"))).unwrap();
        fs::write(folder.join("no-socket-1"), "").unwrap();
        let names: Vec<_> = runs_in(&folder).into_iter().map(|run| run.name).collect();
        assert_eq!(names, [format!("live-{own}")]);
        assert!(!folder.join("gone-2147483647").exists(), "a dead socket is removed");
        assert!(folder.join(format!("starting-{own}")).exists(), "a socket whose process lives is left alone");
        assert!(folder.join("no-socket-1").exists());
    }

    #[test]
    fn a_run_is_found_by_name_flow_or_process() {
        let runs = vec![run("archive-7"), run("fetch-8"), run("fetch-9")];
        assert_eq!(choose("fetch-9", &runs).unwrap().name, "fetch-9");
        assert_eq!(choose("archive", &runs).unwrap().name, "archive-7");
        assert_eq!(choose("8", &runs).unwrap().name, "fetch-8");
        assert!(matches!(choose("fetch", &runs), Err(NoRun::Ambiguous { names, .. }) if names.len() == 2));
        let error = choose("nope", &runs).unwrap_err().to_string();
        assert!(error.contains("archive-7, fetch-8, fetch-9"), "{error}");
        assert!(matches!(choose("nope", &[]), Err(NoRun::None { .. })));
        assert_eq!(find(Path::new("./x")).unwrap().path, Path::new("./x"));
    }
}
