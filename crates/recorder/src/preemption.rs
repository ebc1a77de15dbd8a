//! Preemption: interrupts threads at instructions where the scheduler rarely interrupts them.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fs, io, mem, process, ptr};

/// As long as this value exists, the other threads of this process are preempted at arbitrary instructions.
///
/// The scheduler preempts a thread about a hundred times a second, nearly always between two operations. Some mistakes show only
/// if a thread is preempted in the middle of an operation, for example between a load and a compare-and-swap. Finding them takes
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
/// Every 20 to 80 µs, one thread gets the signal SIGURG, and the threads take turns. If there are few threads, or processors are
/// scarce, the signals come less often. The handler yields the processor, or sleeps for a moment. All threads of the process get
/// signals, whether they record or not.
///
/// The kernel restarts interrupted system calls, except for some kinds that signal(7) lists: sleeping, polling, sockets with a
/// timeout. The standard library repeats its own waits. A thread runs for at least 200 µs between two handlers, so that a sleep
/// ends even if it is continued after each signal. The handler stays installed after this value has been dropped.
#[derive(Debug)]
pub struct Preemption {
    over: Arc<AtomicBool>,
    stopper: Option<JoinHandle<()>>,
    stops_before: u64,
    /// The process that started the signalling thread. A child of `fork` does not have that thread.
    process: u32,
}

/// The signal. It is ignored by default and rarely used.
const SIGNAL: libc::c_int = libc::SIGURG;

/// The number of handlers that have begun. Relaxed: a statistic.
static STOPS: AtomicU64 = AtomicU64::new(0);

/// The number of handlers that have ended. Relaxed: the number is only used to pace the signals.
static RESUMPTIONS: AtomicU64 = AtomicU64::new(0);

/// The minimum time that a thread runs between two handlers. When nanosleep is interrupted, the remaining time that it returns
/// includes the kernel's timer slack, 50 µs by default. With more frequent signals, a sleep that is continued after each signal
/// would never end.
const RUN: Duration = Duration::from_micros(200);

/// The maximum time to wait for the end of a handler. A thread that ends, or that blocks the signal, never runs the handler.
const MAX_HANDLER: Duration = Duration::from_millis(10);

impl Preemption {
    /// Starts to preempt threads. This uses one more thread, and a tenth of a processor.
    ///
    /// # Errors
    /// Returns `ResourceBusy` if the program handles SIGURG itself, or the system's error if no thread can be started.
    pub fn start() -> io::Result<Self> {
        handle_signal()?;
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let stopper = thread::Builder::new().name("history-preempt".to_owned()).spawn(move || stop_all(&until))?;
        Ok(Preemption { over, stopper: Some(stopper), stops_before: STOPS.load(Relaxed), process: process::id() })
    }

    /// Returns the number of preemptions since this value was created.
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

/// The handler. It either yields, so that other threads on the same processor run first, or sleeps, so that threads on other
/// processors get ahead as well.
extern "C" fn stop(_signal: libc::c_int) {
    let number = STOPS.fetch_add(1, Relaxed);
    // SAFETY: both calls are plain system calls, which a signal handler may make. The thread's error number is restored.
    unsafe {
        let error = libc::__errno_location();
        let before = *error;
        // The choice is a hash rather than an alternation: if it alternated, one of two threads that get signals in turn would
        // never sleep.
        if number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 0 {
            libc::sched_yield();
        } else {
            // In fact the sleep takes about 50 µs longer, because of the kernel's timer slack.
            let moment = libc::timespec { tv_sec: 0, tv_nsec: 1000 };
            libc::nanosleep(&raw const moment, ptr::null_mut());
        }
        *error = before;
    }
    RESUMPTIONS.fetch_add(1, Relaxed);
}

/// Signals the threads one after the other, and updates the list of threads every few turns.
fn stop_all(over: &AtomicBool) {
    const TURNS: u64 = 16;
    // SAFETY: the calls take integers. The first one reduces this thread's timer slack, since sleeps would otherwise be about
    // 50 µs longer; the kernel may refuse it.
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
            // SAFETY: the call takes integers. If the thread has ended, the kernel returns an error. Because of `process`, the
            // signal cannot reach another process.
            let is_sent = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, SIGNAL) } == 0;
            let sent = Instant::now();
            while is_sent && RESUMPTIONS.load(Relaxed) == resumptions && sent.elapsed() < MAX_HANDLER {
                thread::sleep(Duration::from_micros(10));
            }
        }
        // Weyl's sequence: its values have no rhythm with which a loop could synchronise.
        let jitter = Duration::from_micros(turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 60);
        let share = RUN / u32::try_from(threads.len().max(1)).unwrap_or(u32::MAX);
        thread::sleep(share.max(Duration::from_micros(20)) + jitter);
    }
}

/// Returns the ids of all threads of this process except `me`; empty if the system does not report them.
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
        // An addition is lost if a thread is preempted between its load and its store, and the other thread adds in between.
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
                        // Both threads run on one processor, so one can add in between only if the other is preempted there.
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
        // On a busy machine a sleep may be long for other reasons, but the shortest of many sleeps is not.
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
