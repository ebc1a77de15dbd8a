//! The kernel: which system calls it has, and which cores it does not interrupt.

use std::{io, ptr};

use super::{Finding, line};
use crate::membarrier;

pub(super) fn findings() -> Vec<Finding> {
    let mut findings = vec![
        Finding::new("kernel", line("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned())),
        commands(),
        Finding::new("restartable sequences", has(rseq())),
        Finding::new("futex_waitv", has(futex_waitv())),
        Finding::new("io_uring", has(io_uring())),
        Finding::new("BPF maps", has(bpf())),
        huge_pages(),
    ];
    findings.extend(quiet_cores());
    findings
}

/// The commands of membarrier(2), each with the bit by which the kernel reports it.
const COMMANDS: [(libc::c_int, &str); 5] = [
    (libc::MEMBARRIER_CMD_GLOBAL, "GLOBAL"),
    (libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED, "GLOBAL_EXPEDITED"),
    (libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED, "PRIVATE_EXPEDITED"),
    (libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, "PRIVATE_EXPEDITED_SYNC_CORE"),
    (libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, "PRIVATE_EXPEDITED_RSEQ"),
];

fn commands() -> Finding {
    match membarrier::offered() {
        Ok(offered) => {
            let names: Vec<&str> =
                COMMANDS.iter().filter(|(bit, _)| offered & bit != 0).map(|(_, name)| *name).collect();
            Finding::new("membarrier", names.join(", "))
        }
        Err(reason) => {
            Finding::new("membarrier", reason).with_note("light fences are full fences, or depend on mprotect")
        }
    }
}

/// Says whether a system call exists, judging by its result for invalid arguments. A call that is refused because of its
/// arguments exists; a call that is unknown, or forbidden by a sandbox, does not.
fn has(outcome: io::Result<()>) -> String {
    match outcome {
        Ok(()) => "offered".to_owned(),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOSYS) => "not in this kernel".to_owned(),
            Some(libc::EPERM | libc::EACCES) => "forbidden to this process".to_owned(),
            _ => "offered".to_owned(),
        },
    }
}

fn outcome(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn rseq() -> io::Result<()> {
    const UNKNOWN_FLAG: libc::c_int = 1 << 30;
    // SAFETY: the kernel refuses the unknown flag before it uses the pointer.
    outcome(unsafe { libc::syscall(libc::SYS_rseq, ptr::null_mut::<u8>(), 0, UNKNOWN_FLAG, 0) })
}

fn futex_waitv() -> io::Result<()> {
    // SAFETY: the kernel refuses the call, because it names no futex.
    outcome(unsafe { libc::syscall(libc::SYS_futex_waitv, ptr::null::<u8>(), 0, 0, ptr::null::<u8>(), 0) })
}

fn io_uring() -> io::Result<()> {
    // SAFETY: the kernel refuses the call, because the pointer is null.
    outcome(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, ptr::null_mut::<u8>()) })
}

/// Creates an array of one word and closes it again.
fn bpf() -> io::Result<()> {
    const MAP_CREATE: libc::c_int = 0;
    const TYPE_ARRAY: u32 = 2;
    /// The type, the bytes of a key, the bytes of a value, the entries, and the flags. The kernel takes the remaining fields as
    /// zero.
    const ARRAY: [u32; 5] = [TYPE_ARRAY, 4, 8, 1, 0];
    // SAFETY: the kernel reads exactly the given number of bytes of the array.
    let map = unsafe { libc::syscall(libc::SYS_bpf, MAP_CREATE, ARRAY.as_ptr(), size_of_val(&ARRAY)) };
    outcome(map)?;
    // SAFETY: the descriptor is new and has no other owner.
    outcome(unsafe { libc::close(map as libc::c_int) }.into())
}

fn huge_pages() -> Finding {
    let transparent = line("/sys/kernel/mm/transparent_hugepage/enabled");
    // In a line such as "always [madvise] never", the brackets mark the current setting.
    let chosen = transparent.as_deref().and_then(|line| line.split(['[', ']']).nth(1)).unwrap_or("not offered");
    let reserved = line("/proc/sys/vm/nr_hugepages").unwrap_or_else(|| "0".to_owned());
    Finding::new("huge pages", format!("transparent: {chosen}; reserved: {reserved}"))
}

fn quiet_cores() -> [Finding; 2] {
    let cores = |name, path, note| {
        // The kernel writes "(null)" for an empty mask.
        match line(path).filter(|cores| cores != "(null)") {
            None => Finding::new(name, "none"),
            Some(cores) => Finding::new(name, cores).with_note(note),
        }
    };
    [
        cores(
            "isolated cores",
            "/sys/devices/system/cpu/isolated",
            "threads get there only by affinity; the scheduler does not balance them",
        ),
        cores(
            "tickless cores (nohz_full)",
            "/sys/devices/system/cpu/nohz_full",
            "a lone thread there may run for long without an interrupt: nothing that waits for one may count on it",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_refused_for_its_arguments_is_offered() {
        let error = |number| Err(io::Error::from_raw_os_error(number));
        assert_eq!(has(Ok(())), "offered");
        assert_eq!(has(error(libc::EINVAL)), "offered");
        assert_eq!(has(error(libc::ENOSYS)), "not in this kernel");
        assert_eq!(has(error(libc::EPERM)), "forbidden to this process");
    }
}
