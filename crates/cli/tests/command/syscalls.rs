//! Simulates a file system that fails or does not respond: the test answers system calls of a command in place of the
//! kernel.
//!
//! The kernel passes the selected calls to the test (`seccomp` with a listener), whatever code of the command makes the
//! calls. The test may let a call proceed, make it fail, shorten a write, or never answer.

use std::fs::{self, File};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::{self, JoinHandle};

use libc::{c_long, c_uint};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// The system calls with which the command changes files.
pub(crate) const CHANGES: &[c_long] = &[
    libc::SYS_openat,
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_close,
    libc::SYS_ftruncate,
    libc::SYS_fsync,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
];

/// A system call that waits for the test's answer.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) number: c_long,
    /// The path in the call. For a rename, the new path.
    pub(crate) path: PathBuf,
    /// Whether the call creates the file or writes to it.
    pub(crate) writes: bool,
    /// For a write, the number of bytes.
    pub(crate) length: usize,
}

/// The answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The kernel executes the call.
    Go,
    /// The call fails with this error.
    Fail(i32),
    /// A write writes only this number of bytes.
    Short(usize),
    /// The call does not return.
    Never,
}

/// Starts `command` and answers its `calls` until it has ended. Calls of programs that the command starts are not
/// answered. If this kernel or sandbox does not allow that, prints the reason and returns `None`.
pub(crate) fn answer(
    command: &mut Command,
    calls: &[c_long],
    mut answer: impl FnMut(&Call) -> Answer + Send + 'static,
) -> Option<(Child, JoinHandle<()>)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets");
    let filter = filter(calls);
    // SAFETY: between fork and exec, the closure only makes system calls, and allocates nothing.
    unsafe { command.pre_exec(move || send(theirs.as_raw_fd(), listen(&filter)?)) };
    let skip = |error: io::Error| println!("skipped: system calls cannot be answered here: {error}");
    let mut child = command.spawn().map_err(skip).ok()?;
    let listener = receive(&ours).expect("the command has sent its listener");
    let pid = Pid::from_child(&child);
    if let Err(error) = reach(pid) {
        skip(error);
        child.kill().and_then(|()| child.wait()).expect("the child can be killed");
        return None;
    }
    let serving = thread::spawn(move || serve(&listener, pid, &mut answer));
    Some((child, serving))
}

/// Tries the accesses that the answers need: to the command's memory and to its open files. Containers may deny these
/// accesses.
fn reach(command: Pid) -> io::Result<()> {
    File::open(format!("/proc/{command}/mem"))?;
    let process = pidfd_open(command, PidfdFlags::empty())?;
    pidfd_getfd(&process, 0, PidfdGetfdFlags::empty())?;
    Ok(())
}

/// A filter program for the kernel: `calls` go to the listener, and all other calls proceed.
fn filter(calls: &[c_long]) -> Vec<libc::sock_filter> {
    let jump = |code: u32, k, jt| libc::sock_filter { code: code as u16, jt, jf: 0, k };
    let mut filter = vec![jump(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for (index, call) in calls.iter().enumerate() {
        let to_the_listener = u8::try_from(calls.len() - index).expect("a few calls");
        filter.push(jump(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, *call as u32, to_the_listener));
    }
    filter.push(jump(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0));
    filter.push(jump(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_USER_NOTIF, 0));
    filter
}

/// Runs in the child: installs the filter and returns its listener. `exec` closes the listener. (An explicit close
/// would be a filtered call, and would wait for an answer before the test has the listener.)
fn listen(filter: &[libc::sock_filter]) -> io::Result<i32> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER as c_uint;
    // SAFETY: the calls take numbers and a pointer to a program, which exists until the calls return.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        match libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) {
            -1 => Err(io::Error::last_os_error()),
            listener => Ok(listener as i32),
        }
    }
}

/// A buffer for the control message with one descriptor.
#[repr(C, align(8))]
struct Beside([u8; 64]);

fn send(socket: i32, listener: i32) -> io::Result<()> {
    let (mut byte, mut beside) = ([0_u8], Beside([0; 64]));
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: the parts of the message exist until the call returns, and there is room for a header and a descriptor.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        message.msg_control = (&raw mut beside).cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<i32>() as u32) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<i32>() as u32) as _;
        libc::CMSG_DATA(header).cast::<i32>().write_unaligned(listener);
        if libc::sendmsg(socket, &raw const message, 0) < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

fn receive(socket: &impl AsFd) -> io::Result<OwnedFd> {
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(socket, &mut [io::IoSliceMut::new(&mut byte)], &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    let rights = beside.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    rights.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

fn serve(listener: &OwnedFd, command: Pid, answer: &mut dyn FnMut(&Call) -> Answer) {
    loop {
        let mut events = [PollFd::new(listener, PollFlags::IN)];
        match poll(&mut events, None) {
            Err(rustix::io::Errno::INTR) => continue,
            answered => answered.expect("a listener can be polled"),
        };
        if !events[0].revents().contains(PollFlags::IN) {
            // All processes with this filter have ended.
            return;
        }
        // SAFETY: the kernel expects zeros.
        let mut asked: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes a notification to `asked`, which has room for one.
        if unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut asked) } != 0 {
            // The caller was killed meanwhile.
            continue;
        }
        // SAFETY: a reply of zeros is valid: it consists of integers.
        let mut reply: libc::seccomp_notif_resp = unsafe { std::mem::zeroed() };
        reply.id = asked.id;
        let caller = Caller { command, thread: asked.pid };
        let answer = caller.call(&asked.data).map_or(Answer::Go, |call| answer(&call));
        match answer {
            Answer::Never => continue,
            Answer::Go => reply.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
            Answer::Fail(errno) => reply.error = -errno,
            Answer::Short(most) => match caller.write(&asked.data, most) {
                Ok(written) => reply.val = written as i64,
                Err(error) => reply.error = -error.raw_os_error().expect("the kernel's error"),
            },
        }
        // SAFETY: the kernel only reads the reply. An error means that the caller was killed, and is ignored.
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const reply) };
    }
}

/// A thread of the command that waits for the answer to its call.
struct Caller {
    command: Pid,
    thread: u32,
}

impl Caller {
    /// The call; `None` if it comes from another process, or if it does not concern a file with a name.
    fn call(&self, asked: &libc::seccomp_data) -> Option<Call> {
        if !Path::new(&format!("/proc/{}/task/{}", self.command, self.thread)).exists() {
            return None;
        }
        let number = c_long::from(asked.nr);
        let of_descriptor = || fs::read_link(format!("/proc/{}/fd/{}", self.thread, asked.args[0])).ok();
        let (mut writes, mut length) = (true, 0);
        let path = match number {
            libc::SYS_write | libc::SYS_pwrite64 => {
                length = asked.args[2] as usize;
                of_descriptor()?
            }
            libc::SYS_close => {
                writes = self.is_to_be_written(asked.args[0]);
                of_descriptor()?
            }
            libc::SYS_ftruncate | libc::SYS_fsync | libc::SYS_read => of_descriptor()?,
            libc::SYS_openat => {
                writes = asked.args[2] as i32 & libc::O_ACCMODE != libc::O_RDONLY;
                self.path(asked.args[1])?
            }
            libc::SYS_renameat | libc::SYS_renameat2 | libc::SYS_linkat => self.path(asked.args[3])?,
            libc::SYS_unlinkat | libc::SYS_mkdirat => self.path(asked.args[1])?,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => self.path(asked.args[1])?,
            _ => self.path(asked.args[0])?,
        };
        Some(Call { number, path, writes, length })
    }

    /// Whether a descriptor is open for writing.
    fn is_to_be_written(&self, descriptor: u64) -> bool {
        let info = fs::read_to_string(format!("/proc/{}/fdinfo/{descriptor}", self.thread)).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        flags
            .and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok())
            .is_some_and(|flags| flags & libc::O_ACCMODE != 0)
    }

    fn memory(&self) -> io::Result<File> {
        File::open(format!("/proc/{}/mem", self.thread))
    }

    /// A path in the caller's memory.
    fn path(&self, at: u64) -> Option<PathBuf> {
        let mut text = Vec::new();
        let memory = self.memory().ok()?;
        loop {
            let mut byte = [0];
            memory.read_exact_at(&mut byte, at + text.len() as u64).ok()?;
            if byte[0] == 0 {
                return Some(PathBuf::from(std::ffi::OsStr::from_bytes(&text)));
            }
            text.push(byte[0]);
        }
    }

    /// Does a part of a write in place of the caller, on the caller's own open file.
    fn write(&self, asked: &libc::seccomp_data, most: usize) -> io::Result<usize> {
        let mut bytes = vec![0; most.min(asked.args[2] as usize)];
        self.memory()?.read_exact_at(&mut bytes, asked.args[1])?;
        let process = pidfd_open(self.command, PidfdFlags::empty())?;
        let file = pidfd_getfd(&process, asked.args[0] as i32, PidfdGetfdFlags::empty())?;
        Ok(rustix::io::write(&file, &bytes)?)
    }
}
