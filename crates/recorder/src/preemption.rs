//! Preemption: threads lose their processor at unlikely places.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fs, io, mem, process, ptr};

/// While it lives, the other threads of this process are preempted at arbitrary instructions.
///
/// A scheduler preempts a thread some hundred times a second, nearly always between two operations. A mistake that
/// shows only after a preemption in the middle of an operation, such as between a load and a compare-and-swap, needs
/// more frequent preemptions.
///
/// ```
/// use millstream_recorder::{Preemption, Recorder};
///
/// let preemption = Preemption::start()?;
/// let recorder = Recorder::new();
/// // ... the threads, each with a log ...
/// # std::thread::sleep(std::time::Duration::from_millis(1));
/// println!("{} preemptions", preemption.stops());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Every 20 to 80 µs, or less often if threads are few or processors scarce, the next thread in turn gets a signal,
/// SIGURG, whose handler yields the processor or sleeps for a moment. Interrupted system calls resume, except those
/// that never do (signal(7) lists them: sleeping, polling, sockets with a time-out); the standard library restarts its
/// own waits. A thread runs for at least 200 µs between two handlers, so that a sleep that is restarted each time still
/// ends. The handler stays installed afterwards. It affects all threads of the process, whether they record or not.
#[derive(Debug)]
pub struct Preemption {
    over: Arc<AtomicBool>,
    stopper: Option<JoinHandle<()>>,
    stops_before: u64,
    /// The process that started the thread, which a child of `fork` does not have.
    process: u32,
}

/// A signal that is ignored by default and rarely used.
const SIGNAL: libc::c_int = libc::SIGURG;

/// The number of handlers that have begun. Relaxed: a statistic.
static STOPS: AtomicU64 = AtomicU64::new(0);

/// The number of handlers that have ended. Relaxed: it only paces the signals.
static RESUMPTIONS: AtomicU64 = AtomicU64::new(0);

/// The least time that a thread runs between two handlers. An interrupted nanosleep returns the time that remains with
/// the kernel's timer slack included, 50 µs by default; more frequent signals would prolong a sleep faster than it passes.
const RUN: Duration = Duration::from_micros(200);

/// The longest wait for the end of a handler. A thread that ends, or that blocks signals, never enters it.
const MAX_HANDLER: Duration = Duration::from_millis(10);

impl Preemption {
    /// Preempts threads from now on. Costs one more thread, and a tenth of a processor.
    ///
    /// # Errors
    /// The program handles SIGURG itself (`ResourceBusy`), or the system has no thread left.
    pub fn start() -> io::Result<Self> {
        handle_signal()?;
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let stopper = thread::Builder::new().name("history-preempt".to_owned()).spawn(move || stop_all(&until))?;
        Ok(Preemption { over, stopper: Some(stopper), stops_before: STOPS.load(Relaxed), process: process::id() })
    }

    /// The number of preemptions in this process since the start.
    #[must_use]
    pub fn stops(&self) -> u64 {
        STOPS.load(Relaxed) - self.stops_before
    }
}

impl Drop for Preemption {
    fn drop(&mut self) {
        self.over.store(true, Release);
        if let Some(stopper) = self.stopper.take().filter(|_| self.process == process::id()) {
            stopper.join().expect("the thread does not panic");
        }
    }
}

fn handle_signal() -> io::Result<()> {
    let handler: extern "C" fn(libc::c_int) = stop;
    let handler = handler as libc::sighandler_t;
    // SAFETY: sigaction reads one structure and fills another, for both of which zeros are valid; the handler is
    // async-signal-safe.
    unsafe {
        let (mut action, mut before): (libc::sigaction, libc::sigaction) = (mem::zeroed(), mem::zeroed());
        if libc::sigaction(SIGNAL, ptr::null(), &raw mut before) != 0 {
            return Err(io::Error::last_os_error());
        }
        if ![libc::SIG_DFL, libc::SIG_IGN, handler].contains(&before.sa_sigaction) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "the program handles SIGURG itself"));
        }
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        if libc::sigaction(SIGNAL, &raw const action, ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Yields, which lets threads on the same processor run first, or sleeps, which lets those on other processors get
/// ahead as well.
extern "C" fn stop(_signal: libc::c_int) {
    let number = STOPS.fetch_add(1, Relaxed);
    // SAFETY: both calls are plain system calls, which a signal handler may make, and the thread finds its error number
    // as it left it.
    unsafe {
        let error = libc::__errno_location();
        let before = *error;
        // The choice does not alternate: of two threads that get signals in turn, one would never sleep.
        if number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 0 {
            libc::sched_yield();
        } else {
            // The kernel adds some 50 µs.
            let moment = libc::timespec { tv_sec: 0, tv_nsec: 1000 };
            libc::nanosleep(&raw const moment, ptr::null_mut());
        }
        *error = before;
    }
    RESUMPTIONS.fetch_add(1, Relaxed);
}

/// Signals each thread in its turn, and looks for new and ended threads every few turns.
fn stop_all(over: &AtomicBool) {
    const TURNS: u64 = 16;
    // SAFETY: the calls take integers. Without the first one the kernel would let this thread sleep some 50 µs longer;
    // it may refuse.
    let (process, me) = unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64);
        (libc::getpid(), libc::gettid())
    };
    let mut threads = Vec::new();
    for turn in 0_u64.. {
        if over.load(Acquire) {
            return;
        }
        if turn.is_multiple_of(TURNS) {
            threads = other_threads(me);
        }
        if let Some(&thread) = threads.get(turn as usize % threads.len().max(1)) {
            let resumptions = RESUMPTIONS.load(Relaxed);
            // SAFETY: the call takes integers. The kernel refuses the number of an ended thread, and `process` confines
            // the signal to this process.
            let is_sent = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, SIGNAL) } == 0;
            let sent = Instant::now();
            while is_sent && RESUMPTIONS.load(Relaxed) == resumptions && sent.elapsed() < MAX_HANDLER {
                thread::sleep(Duration::from_micros(10));
            }
        }
        // Weyl's sequence: it has no rhythm with which a loop could synchronise.
        let jitter = Duration::from_micros(turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 60);
        let share = RUN / u32::try_from(threads.len().max(1)).unwrap_or(u32::MAX);
        thread::sleep(share.max(Duration::from_micros(20)) + jitter);
    }
}

/// The numbers of this process's threads but one; empty if the system does not report them.
fn other_threads(me: libc::pid_t) -> Vec<libc::pid_t> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let number = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    threads.filter_map(number).filter(|&thread| thread != me).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::Preemption;
    use crate::cpus;

    #[test]
    fn threads_are_preempted_in_the_middle_of_an_operation() {
        let processor = cpus::reachable()[0];
        let count = AtomicU64::new(0);
        let preemption = Preemption::start().unwrap();
        let began = Instant::now();
        let mut rounds = 0;
        // An addition is lost where a thread is preempted between its load and its store, and the other one adds meanwhile.
        while preemption.stops() < 500 || count.load(Relaxed) == 2_000_000 * rounds {
            assert!(
                began.elapsed() < Duration::from_secs(300),
                "{} stops in {rounds} rounds, and no addition is lost",
                preemption.stops()
            );
            rounds += 1;
            let start = Barrier::new(2);
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        // Both run on one processor: one gets in between only when the other is preempted there.
                        cpus::pin(processor).unwrap();
                        start.wait();
                        (0..1_000_000).for_each(|_| count.store(count.load(Relaxed) + 1, Relaxed));
                    });
                }
            });
        }
    }

    #[test]
    fn handlers_do_not_prolong_a_sleep_faster_than_it_passes() {
        let sleep = Duration::from_millis(20);
        let _preemption = Preemption::start().unwrap();
        // On a busy machine a sleep is long for other reasons, too; the shortest one is not.
        let shortest = (0..20).map(|_| {
            let began = Instant::now();
            thread::sleep(sleep);
            began.elapsed()
        });
        let shortest = shortest.min().unwrap();
        assert!(shortest < 5 * sleep, "{shortest:?}");
    }

    #[test]
    fn dropping_it_ends_its_thread() {
        let preemption = Preemption::start().unwrap();
        let over = std::sync::Arc::clone(&preemption.over);
        drop(preemption);
        assert_eq!(std::sync::Arc::strong_count(&over), 1, "the thread has ended");
    }
}
