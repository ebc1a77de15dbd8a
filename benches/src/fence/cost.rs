//! The daemon's cost: its processor time over a minute.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::args::Args;
use crate::error::Error;
use crate::fence::daemon::Daemon;
use crate::fence::load::Load;
use crate::fence::method::{DAEMON, Methods};
use crate::table;

/// The duration of the observation in each case.
const WATCH: Duration = Duration::from_secs(60);
const QUICK_WATCH: Duration = Duration::from_millis(200);
/// After a rest, the daemon may use more processor time for a burst. The observation begins after this time.
const BURST: Duration = Duration::from_secs(2);

/// Prints the daemon's share of a processor on an idle and on a busy machine, without a waiter and with a thread that
/// only waits.
///
/// # Errors
/// Fails if the daemon ends.
pub fn run(args: &Args, daemon: &Daemon) -> Result<(), Error> {
    if !"cost".contains(&args.part) {
        return Ok(());
    }
    let mut rows = Vec::new();
    for load in [Load::Idle, Load::Busy] {
        let _busy = load.start();
        for waiters in [0, 1] {
            rows.push(watch(args, daemon, load, waiters)?);
        }
    }
    println!("### cost: the daemon's processor time\n");
    println!("{}\n", table::render(["machine, waiters", "seconds", "% of a processor", "fences a second"], rows));
    Ok(())
}

fn watch(args: &Args, daemon: &Daemon, load: Load, waiters: usize) -> Result<[String; 4], Error> {
    let (time, burst) = if args.quick { (QUICK_WATCH, Duration::ZERO) } else { (WATCH, BURST) };
    let (over, fences) = (AtomicBool::new(false), AtomicU64::new(0));
    let (seconds, used_ns, passed) = thread::scope(|scope| {
        for _ in 0..waiters {
            let methods = Methods::new(daemon)?;
            let (over, fences) = (&over, &fences);
            scope.spawn(move || {
                let methods = methods;
                while !over.load(Ordering::Relaxed) && methods.pass(DAEMON[1]).is_ok() {
                    fences.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        thread::sleep(burst);
        let (begun, before, fences_before) = (Instant::now(), used_ns(daemon), fences.load(Ordering::Relaxed));
        thread::sleep(time);
        let seconds = begun.elapsed().as_secs_f64();
        let used = used_ns(daemon)?.saturating_sub(before?);
        let passed = fences.load(Ordering::Relaxed) - fences_before;
        over.store(true, Ordering::Relaxed);
        Ok::<_, Error>((seconds, used, passed))
    })?;
    let waiting = if waiters == 0 { "no waiter" } else { "one thread, always" };
    Ok([
        format!("{}, {waiting}", load.title()),
        format!("{seconds:.1}"),
        format!("{:.3}", used_ns as f64 / seconds / 1e7),
        format!("{:.0}", passed as f64 / seconds),
    ])
}

/// The processor time of the daemon so far.
fn used_ns(daemon: &Daemon) -> Result<u64, Error> {
    let failed = || Error::new("the daemon's clock cannot be read: has it ended?");
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both pointers come from references to locals of the types that the calls fill.
    let outcome = unsafe {
        libc::clock_getcpuclockid(daemon.process() as libc::pid_t, &raw mut clock)
            | libc::clock_gettime(clock, &raw mut time)
    };
    if outcome != 0 { Err(failed()) } else { Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64) }
}
