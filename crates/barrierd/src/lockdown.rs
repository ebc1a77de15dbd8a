//! The lock-down after set-up: another user, no capabilities, and only about three dozen system calls.

use std::ffi::CString;
use std::io;

/// A step of the lock-down has failed. The daemon then does not run.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {error}")]
pub(crate) struct LockdownError {
    step: String,
    error: io::Error,
}

fn check(outcome: libc::c_long, step: &str) -> Result<(), LockdownError> {
    if outcome == 0 { Ok(()) } else { Err(LockdownError { step: step.to_owned(), error: io::Error::last_os_error() }) }
}

/// If the daemon is root, changes to this user. Gives up all capabilities, whatever their origin, and makes it impossible to gain
/// any. This applies to this thread and to the threads that it starts.
pub(crate) fn drop_privileges(user: &str) -> Result<(), LockdownError> {
    let (mut real, mut effective, mut saved) = (0, 0, 0);
    // SAFETY: the three pointers point to local variables.
    let outcome = unsafe { libc::getresuid(&raw mut real, &raw mut effective, &raw mut saved) };
    check(outcome.into(), "own users")?;
    if [real, effective, saved].contains(&0) {
        become_user(user)?;
    }
    give_up_capabilities()?;
    // SAFETY: this prctl takes integers only.
    let outcome = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    check(outcome.into(), "no new privileges")
}

/// Gives up the capabilities that a change of the user does not remove: a process that was never root may have capabilities from
/// its file or from its parent, and root keeps its own if `SECBIT_NO_SETUID_FIXUP` is set.
fn give_up_capabilities() -> Result<(), LockdownError> {
    /// The version of capset(2) in which each set consists of two 32-bit words.
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0];
    let sets = [0_u32; 6];
    // SAFETY: the prctl takes integers only; capset reads a header and two entries of three words, which are local
    // variables of these sizes.
    unsafe {
        let cleared = libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        check(cleared.into(), "ambient capabilities")?;
        check(libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()), "capabilities")
    }
}

fn become_user(user: &str) -> Result<(), LockdownError> {
    let step = format!("user {user}");
    let unknown = |error| LockdownError { step: step.clone(), error };
    let name = CString::new(user).map_err(|error| unknown(error.into()))?;
    // SAFETY: the name is NUL-terminated. No other thread of this process looks up users, so the entry stays as it is while it
    // is read. The other calls take integers, and setgroups with 0 reads no list.
    unsafe {
        let entry = libc::getpwnam(name.as_ptr());
        if entry.is_null() {
            return Err(unknown(io::Error::new(io::ErrorKind::NotFound, "no such user")));
        }
        let (user, group) = ((*entry).pw_uid, (*entry).pw_gid);
        // The calls below need root as the effective user, but root may be only the real or the saved user.
        check(libc::seteuid(0).into(), &step)?;
        check(libc::setgroups(0, std::ptr::null()).into(), "groups")?;
        check(libc::setresgid(group, group, group).into(), &step)?;
        check(libc::setresuid(user, user, user).into(), &step)
    }
}

/// The system calls that the loop, the barrier thread, the allocator and the exit of the process need.
const ALLOWED: &[libc::c_long] = &[
    libc::SYS_accept4,
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Debug builds of the standard library check descriptors with this call.
    #[cfg(debug_assertions)]
    libc::SYS_fcntl,
    libc::SYS_futex,
    libc::SYS_getcpu,
    libc::SYS_getrandom,
    libc::SYS_getsockopt,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_pread64,
    libc::SYS_read,
    libc::SYS_recvfrom,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_yield,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_write,
];

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Installs a filter that allows the calls in [`ALLOWED`]. From then on, if any thread makes another system call, the kernel ends
/// the process.
pub(crate) fn filter_calls() -> Result<(), LockdownError> {
    let mut filter = filter(ALLOWED);
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program and its filter outlive the call, which copies them.
    let outcome = unsafe {
        let flags = libc::SECCOMP_FILTER_FLAG_TSYNC;
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    };
    check(outcome, "seccomp filter")
}

/// Returns a filter that allows these calls on this architecture. Any other call ends the process.
fn filter(allowed: &[libc::c_long]) -> Vec<libc::sock_filter> {
    /// The offsets of the architecture and of the call's number in `seccomp_data`.
    const ARCHITECTURE_AT: u32 = 4;
    const NUMBER_AT: u32 = 0;
    let instruction = |code: u32, yes: usize, no: usize, k: u32| libc::sock_filter {
        code: code as u16,
        jt: yes as u8,
        jf: no as u8,
        k,
    };
    let load = |at| instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at);
    let equal = |value, yes, no| instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, yes, no, value);
    let answer = |value| instruction(libc::BPF_RET | libc::BPF_K, 0, 0, value);

    let mut filter = vec![load(ARCHITECTURE_AT), equal(ARCHITECTURE, 1, 0), answer(libc::SECCOMP_RET_KILL_PROCESS)];
    filter.push(load(NUMBER_AT));
    for (place, call) in allowed.iter().enumerate() {
        // Jumps over the remaining comparisons and the refusal.
        filter.push(equal(*call as u32, allowed.len() - place, 0));
    }
    filter.extend([answer(libc::SECCOMP_RET_KILL_PROCESS), answer(libc::SECCOMP_RET_ALLOW)]);
    filter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_allowed_call_jumps_to_the_last_instruction() {
        let filter = filter(ALLOWED);
        let last = filter.len() - 1;
        assert_eq!(filter[last].k, libc::SECCOMP_RET_ALLOW);
        for (place, instruction) in filter.iter().enumerate().skip(4).take(ALLOWED.len()) {
            assert_eq!(place + 1 + usize::from(instruction.jt), last);
            assert_eq!(instruction.jf, 0);
        }
    }
}
