//! Processors: the possible ones, the online ones, and the one that this thread runs on.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{Ordering, fence};
use std::{fs, io, mem};

const FOLDER: &str = "/sys/devices/system/cpu";

/// Returns the number of processors that this machine can have: one more than the largest processor number.
pub(crate) fn possible() -> io::Result<usize> {
    let list = fs::read_to_string(format!("{FOLDER}/possible"))?;
    let last = parse(&list).last().copied();
    last.map(|last| last + 1).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no possible processor"))
}

/// The list of online processors. Each call of [`look`](Self::look) reads a small file again.
#[derive(Debug)]
pub(crate) struct Online {
    file: File,
}

impl Online {
    pub(crate) fn open() -> io::Result<Online> {
        Ok(Online { file: File::open(format!("{FOLDER}/online"))? })
    }

    /// Returns a list that reads this file instead of the kernel's. For tests.
    #[cfg(test)]
    pub(crate) fn of(file: File) -> Online {
        Online { file }
    }

    /// Returns, for each of `cpus` processors, whether it is online. If a processor goes offline during the call, the result
    /// for it may be `true`.
    pub(crate) fn look(&self, cpus: usize) -> io::Result<Vec<bool>> {
        let mut text = [0; 4096];
        let length = self.file.read_at(&mut text, 0)?;
        let mut online = vec![false; cpus];
        for cpu in parse(&String::from_utf8_lossy(&text[..length])) {
            if let Some(online) = online.get_mut(cpu) {
                *online = true;
            }
        }
        Ok(online)
    }
}

/// Parses a list such as "0-3,8".
pub(crate) fn parse(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse::<usize>().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// Returns those of the first `below` processors that this process may use.
pub(crate) fn allowed(below: usize) -> Vec<usize> {
    // SAFETY: all zeros are a valid set, and the call receives its size.
    let set = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &raw mut set);
        set
    };
    // SAFETY: the number is below CPU_SETSIZE, the size of the set.
    (0..libc::CPU_SETSIZE as usize).take(below).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

/// Pins this thread to one processor, if the process may use it.
pub(crate) fn stay_on(cpu: usize) {
    // SAFETY: all zeros are a valid set, the number comes from such a set, and the call receives its size.
    unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}

/// Returns the kernel's id of this thread.
pub(crate) fn thread_number() -> libc::pid_t {
    // SAFETY: gettid has no preconditions.
    unsafe { libc::gettid() }
}

/// Lets this thread run only on processors that would otherwise be idle.
pub(crate) fn only_when_idle() {
    follow(0, libc::SCHED_IDLE);
}

/// Gives a thread of this process the normal scheduling policy again, if the kernel permits it.
pub(crate) fn as_usual(thread: libc::pid_t) {
    follow(thread, libc::SCHED_OTHER);
}

fn follow(thread: libc::pid_t, policy: libc::c_int) {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are a local variable, which outlives the call.
    unsafe { libc::sched_setscheduler(thread, policy, &raw const parameters) };
}

/// Returns a processor on which this thread has just passed a full barrier. The thread ran there before and after the barrier.
///
/// The switch from the previous thread to this thread comes before that barrier, and the switch to the next thread after it.
/// This is also true if this thread migrates between the two readings of its processor number and comes back before the second:
/// the processor has then switched to this thread in between.
pub(crate) fn here() -> Option<usize> {
    // SAFETY: sched_getcpu has no preconditions.
    let current = || usize::try_from(unsafe { libc::sched_getcpu() }).ok();
    loop {
        let before = current()?;
        fence(Ordering::SeqCst);
        if current()? == before {
            return Some(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_ranges_and_single_numbers() {
        assert_eq!(parse("0-2,5,7-8\n"), [0, 1, 2, 5, 7, 8]);
        assert_eq!(parse("0\n"), [0]);
        assert_eq!(parse("\n"), [0_usize; 0]);
    }

    #[test]
    fn this_processor_is_possible_and_online() {
        let cpus = possible().unwrap();
        let here = here().unwrap();
        assert!(here < cpus && allowed(cpus).contains(&here));
        assert!(Online::open().unwrap().look(cpus).unwrap()[here]);
    }
}
