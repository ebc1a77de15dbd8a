//! The start of the daemon: from the arguments to a server that is locked down.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use millstream_fence::barrierd::layout::{
    Hello, MAGIC, MAX_CLIENTS, MAX_CPUS, PageHead, SOURCE_BPF, SOURCE_NONE, VERSION, page_bytes, times_bytes,
};
use millstream_fence::barrierd::{Access, View, boot_id};

use crate::args::Args;
use crate::barrier::Barrier;
use crate::bpf::Bpf;
use crate::clients::Limits;
use crate::descriptors;
use crate::folder::{Folder, FolderError, at};
use crate::lockdown::{LockdownError, drop_privileges, filter_calls};
use crate::poll::Poll;
use crate::processors::{self, Online};
use crate::server::{Gift, Server};
use crate::socket::listen;
use crate::stat::Stat;

/// The reason why the daemon does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("this machine can have {0} processors, more than the {MAX_CPUS} of the page's layout")]
    TooManyProcessors(usize),
    #[error("no fallback works here, so nothing reports when processors pass: {0}")]
    Nothing(String),
    #[error(transparent)]
    Lockdown(#[from] LockdownError),
    #[error("{what}: {error}")]
    Io { what: &'static str, error: io::Error },
}

fn io_error(what: &'static str) -> impl FnOnce(io::Error) -> StartError {
    move |error| StartError::Io { what, error }
}

/// Sets the daemon up and serves. Returns only with an error.
pub(crate) fn start(args: &Args) -> Result<Infallible, StartError> {
    let cpus = processors::possible().map_err(io_error("the possible processors"))?;
    if cpus > MAX_CPUS {
        return Err(StartError::TooManyProcessors(cpus));
    }
    let folder = Folder::claim(&args.folder)?;
    let bpf = load(args, cpus);
    let page = folder.file("page", page_bytes(cpus))?;
    let times = match &bpf {
        Ok(_) => None,
        Err(_) => Some(folder.file("times", times_bytes(cpus))?),
    };
    let (our_times, readable_times) = match (&bpf, &times) {
        (Ok(bpf), _) => ((bpf.times(), Access::Read), bpf.times()),
        (Err(_), Some(file)) => ((file.ours.as_fd(), Access::Write), file.readable.as_fd()),
        (Err(_), None) => unreachable!("without BPF the times are a file"),
    };
    let source = if bpf.is_ok() { SOURCE_BPF } else { SOURCE_NONE };
    write_head(&page.ours, cpus, source).map_err(io_error("the page"))?;
    // SAFETY: both files are as long as the layout requires, and no process shortens them.
    let view =
        unsafe { View::map((page.ours.as_fd(), Access::Write), our_times, cpus) }.map_err(io_error("the page"))?;
    let view = Arc::new(view);
    let readable_times: OwnedFd = readable_times.try_clone_to_owned().map_err(io_error("the times"))?;

    let socket = folder.socket();
    let listener = listen(&socket).map_err(at(&socket))?;
    let all = descriptors::room_for(MAX_CLIENTS).map_err(io_error("the limit of open files"))?;
    drop_privileges(&args.user)?;

    // From here on, the daemon needs no privileges, and the threads that it starts have none.
    let barrier = Barrier::start(&view);
    let stat = Stat::open(cpus);
    if let (Err(_), Err(barrier), Err(stat)) = (&bpf, &barrier, &stat) {
        return Err(StartError::Nothing(format!("membarrier(GLOBAL): {barrier}; /proc/stat: {stat}")));
    }
    tell(args, &bpf, &barrier, &stat);
    let server = Server {
        view,
        gift: Gift {
            hello: Hello { magic: MAGIC, version: VERSION, cpus: cpus as u32, client: 0 },
            page: page.readable.into(),
            times: readable_times,
        },
        listener,
        bpf: bpf.ok(),
        barrier: barrier.ok(),
        stat: stat.ok(),
        online: Online::open().ok(),
        share: args.share / 100.0,
        limits: Limits { all, of_a_user: args.connections.into() },
        poll: Poll::new().map_err(io_error("epoll"))?,
    };
    filter_calls()?;
    server.serve().map_err(io_error("waiting for events"))
}

/// Loads the program. The error says in words why there is no program.
fn load(args: &Args, cpus: usize) -> Result<Bpf, String> {
    if args.without_bpf {
        return Err("disabled by an option".to_owned());
    }
    Bpf::start(cpus, &args.tracepoints).map_err(|error| error.to_string())
}

/// Writes the constant words of the page's head.
fn write_head(page: &File, cpus: usize, source: u32) -> io::Result<()> {
    use std::mem::offset_of;
    let mut head = [0; size_of::<PageHead>()];
    let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
    put(offset_of!(PageHead, magic), &MAGIC.to_ne_bytes());
    put(offset_of!(PageHead, version), &VERSION.to_ne_bytes());
    put(offset_of!(PageHead, cpus), &(cpus as u32).to_ne_bytes());
    put(offset_of!(PageHead, boot_id), &boot_id()?);
    put(offset_of!(PageHead, source), &source.to_ne_bytes());
    put(offset_of!(PageHead, daemon), &std::process::id().to_ne_bytes());
    page.write_all_at(&head, 0)
}

/// Reports the mechanisms that the daemon uses.
fn tell<B, S>(args: &Args, bpf: &Result<Bpf, String>, barrier: &io::Result<B>, stat: &io::Result<S>) {
    // The folder's name is quoted, because it may contain control sequences for a terminal.
    let folder = &args.folder;
    say(&match bpf {
        Ok(bpf) => format!("{folder:?}: times by BPF on {}", bpf.about),
        Err(reason) => format!("{folder:?}: without BPF ({reason}): fallbacks alone, slower"),
    });
    say(&match barrier {
        Ok(_) => "fallback membarrier(GLOBAL) works".to_owned(),
        Err(error) => format!("no fallback membarrier(GLOBAL): {error}"),
    });
    say(&match stat {
        Ok(_) => "fallback /proc/stat works".to_owned(),
        Err(error) => format!("no fallback /proc/stat: {error}"),
    });
}

/// Writes a line to standard error. A failure is ignored, because the daemon must also run if nothing reads its standard error.
#[expect(clippy::disallowed_methods, reason = "the lines quote what is not the daemon's own")]
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "barrierd: {line}");
}
