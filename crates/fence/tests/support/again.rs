//! Runs one test of this program again, in a separate process under other conditions.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// The environment variable that names the conditions in the child.
const WORLD: &str = "MILLSTREAM_TEST_WORLD";

/// Returns whether this process is the child that [`again`] has started for these conditions.
pub(crate) fn is_again(world: &str) -> bool {
    std::env::var(WORLD).is_ok_and(|is| is == world)
}

/// Runs the test with this name in a child. Sets `MILLSTREAM_FENCE` to `fence` unless that is empty. If `without_membarrier`, a
/// seccomp filter makes every membarrier(2) fail with EPERM.
pub(crate) fn again(test: &str, world: &str, fence: &str, without_membarrier: bool) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(WORLD, world).env("MILLSTREAM_FENCE", fence);
    if without_membarrier {
        // SAFETY: the closure makes two system calls on its own memory, which is allowed between fork and exec.
        unsafe { child.pre_exec(forbid_membarrier) };
    }
    let output = child.output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Makes every membarrier(2) of this thread, and of all threads that it starts, fail with EPERM.
pub(crate) fn forbid_membarrier() -> std::io::Result<()> {
    forbid(libc::SYS_membarrier)
}

/// Makes a system call of this thread, and of all threads that it starts, fail with EPERM.
pub(crate) fn forbid(call: libc::c_long) -> std::io::Result<()> {
    const NUMBER: u32 = 0; // offset of the system call's number in seccomp_data
    let instruction = |code: u32, jump_if_true, jump_if_false, k: u32| libc::sock_filter {
        code: code as u16,
        jt: jump_if_true,
        jf: jump_if_false,
        k,
    };
    let mut filter = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, NUMBER),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call as u32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program outlives the calls, which copy it.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
    };
    if refused { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}
