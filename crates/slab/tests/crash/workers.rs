//! Jobs shared among several processes: each job forks, traces and kills children of its own, so it must run alone in
//! its process.

use std::io::{PipeWriter, Read, Write, pipe};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Kills children, and returns the number of kills.
pub(crate) type Job = Box<dyn Fn() -> usize>;

/// Runs all jobs, in order, on all processors; returns the sum of their results.
///
/// # Panics
/// When a job has panicked.
pub(crate) fn share(jobs: &[Job]) -> usize {
    // An idle worker takes the next number out of a pipe.
    let (todo, mut list) = pipe().unwrap();
    for number in 0..jobs.len() {
        list.write_all(&number.to_ne_bytes()).unwrap();
    }
    drop(list);
    let (mut told, telling) = pipe().unwrap();
    let workers: Vec<_> = (0..std::thread::available_parallelism().map_or(1, usize::from))
        .map(|_| fork(|| work(jobs, &todo, &telling)))
        .collect();
    drop(telling);
    // The results, which fit into the pipe, are read only after all workers have ended: a failed worker may leave
    // children that hold the other end of the pipe.
    for worker in workers {
        let mut status = 0;
        // SAFETY: the process is this one's own child, and the status points to a local variable.
        let ended = unsafe { libc::waitpid(worker, &raw mut status, 0) };
        assert_eq!((ended, status), (worker, 0), "a job failed, see above");
    }
    let mut numbers = Vec::new();
    told.read_to_end(&mut numbers).unwrap();
    assert_eq!(numbers.len(), jobs.len() * size_of::<usize>(), "every job was done");
    numbers.chunks_exact(size_of::<usize>()).map(|number| usize::from_ne_bytes(number.try_into().unwrap())).sum()
}

fn work(jobs: &[Job], mut todo: impl Read, mut telling: &PipeWriter) {
    let mut number = [0; size_of::<usize>()];
    while todo.read_exact(&mut number).is_ok() {
        let killed = jobs[usize::from_ne_bytes(number)]();
        telling.write_all(&killed.to_ne_bytes()).unwrap();
    }
}

/// Forks a process that runs `work` and that ends no later than its parent.
pub(crate) fn fork(work: impl FnOnce()) -> libc::pid_t {
    // SAFETY: this test has one thread, so the child inherits no lock held by another one.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        // A panic must not unwind into the parent's code, which both processes have now.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the request only asks for a signal at the parent's death; it touches no memory.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            work();
        }));
        // SAFETY: `_exit` ends the child at once and runs no code of the parent.
        unsafe { libc::_exit(if outcome.is_ok() { 0 } else { 101 }) }
    }
    pid
}
