//! The processors that this process may run on, and pinning to one of them.

use std::io;
use std::thread;

/// The number of processors for which a `cpu_set_t` has room.
const MAX_CPUS: usize = libc::CPU_SETSIZE as usize;

/// Returns the processors to which a thread of this process can be pinned. The thread's current affinity does not matter.
pub(crate) fn reachable() -> Vec<usize> {
    // A separate thread tries to pin itself to each processor, so that the affinity of the calling thread does not change.
    let probe = thread::Builder::new().name("history-cpus".to_owned());
    probe
        .spawn(|| (0..configured()).filter(|&cpu| pin(cpu).is_ok()).collect())
        .and_then(|thread| thread.join().map_err(|_| io::Error::other("the probing thread panicked")))
        .expect("a thread to probe the processors")
}

/// Pins the calling thread to one processor.
///
/// # Errors
/// Returns an error if the processor does not exist, or if this process may not use it.
pub(crate) fn pin(cpu: usize) -> io::Result<()> {
    // SAFETY: a cpu_set_t of zeros is an empty set; `cpu` is below its size; the call only reads the set.
    let refused = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if refused == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn configured() -> usize {
    // SAFETY: sysconf has no preconditions.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    usize::try_from(count).unwrap_or(1).clamp(1, MAX_CPUS)
}

#[cfg(test)]
mod tests {
    use std::thread;

    #[test]
    fn a_reachable_processor_can_be_run_on() {
        let reachable = super::reachable();
        assert!(!reachable.is_empty());
        for cpu in reachable {
            let ran_on = thread::spawn(move || {
                super::pin(cpu).unwrap();
                // SAFETY: sched_getcpu has no preconditions.
                unsafe { libc::sched_getcpu() }
            });
            assert_eq!(ran_on.join().unwrap(), i32::try_from(cpu).unwrap());
        }
    }
}
