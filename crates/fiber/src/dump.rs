//! The dump: every live fiber, and what it waits for.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::backtrace::Backtrace;
use crate::scheduler::core_ref::CoreRef;
use crate::scheduler::shared::Shared;
use crate::scheduler::state::{Phase, Reason};

/// The live fibers of a runtime at roughly one moment. [`Display`](fmt::Display) shows equal fibers as a group.
///
/// ```
/// use millstream_fiber::{Options, Runtime, Threads, park};
///
/// let runtime = Runtime::start(Options::new(Threads::One))?;
/// for _ in 0..3 {
///     runtime.spawn(|| park());
/// }
/// # while runtime.dump().to_string().contains("unstarted") {}
/// println!("{}", runtime.dump());
/// // 3 fibers
/// //      3 × (unnamed) parked at src/main.rs:5:23, for up to 2ms, stack up to 4 KiB
/// # drop(runtime); // cancels the fibers
/// # Ok::<(), millstream_fiber::StartError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Dump {
    /// The fibers, in the order of their numbers. Fibers that were spawned on one worker are in the order of their spawns.
    pub fibers: Vec<FiberReport>,
}

/// One fiber of a [`Dump`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FiberReport {
    /// The fiber's number.
    pub id: u64,
    /// The fiber's name.
    pub name: Option<Arc<str>>,
    /// The number of the work unit that the fiber serves, if the fiber has [set it](crate::Fiber::set_unit).
    pub unit: Option<u64>,
    /// The fiber's state.
    pub state: State,
    /// Whether the fiber will unwind at its next wait.
    pub is_cancelled: bool,
    /// The depth to which the fiber's stack has been touched, in bytes, rounded up to pages; `None` before the fiber starts. On
    /// a reused stack this includes the depth that earlier fibers reached.
    pub stack_used_bytes: Option<usize>,
    /// The fiber's backtrace, if the dump [has backtraces](crate::Runtime::dump_with_backtraces) and the fiber waits. Equal
    /// backtraces are shared.
    pub backtrace: Option<Arc<Backtrace>>,
}

/// The state of a fiber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// The fiber waits for a worker to start it.
    Unstarted,
    /// The fiber is in its worker's queue.
    Ready,
    /// The fiber runs.
    Running,
    /// The fiber waits.
    Waiting {
        /// The reason for the wait.
        reason: Reason,
        /// The call that waits.
        at: &'static Location<'static>,
        /// The length of the wait so far, accurate to about two milliseconds.
        since: Duration,
    },
}

/// The maximum number of fibers whose backtraces a dump requests.
const MAX_BACKTRACES: usize = 10_000;

impl Dump {
    /// Reports all live fibers. With a `limit`, also requests backtraces, and waits for them for at most `limit`.
    #[track_caller]
    pub(crate) fn of(shared: &Arc<Shared>, limit: Option<Duration>) -> Self {
        let mut cores = shared.fibers.all();
        cores.sort_unstable_by_key(|core| core.id);
        let now_ms = shared.clock.dump_ms();
        let running = shared.running();
        let report = |core: &CoreRef| FiberReport {
            id: core.id,
            name: core.name.clone(),
            unit: core.unit(),
            state: state(core, now_ms, running.as_deref()),
            is_cancelled: core.is_cancelled(),
            stack_used_bytes: core.state.stack().map(|[limit, _, top]| shared.pool.used_bytes((limit, top))),
            backtrace: None,
        };
        cores.retain(|core| core.state.phase() != Phase::Ended);
        // The backtraces come after the reports, because capturing them deepens the stacks.
        let mut fibers: Vec<_> = cores.iter().map(report).collect();
        if let Some(limit) = limit {
            let waits = |report: &FiberReport| matches!(report.state, State::Waiting { .. });
            let waiting =
                cores.iter().zip(&fibers).filter(|(_, report)| waits(report)).map(|(core, _)| CoreRef::clone(core));
            let asked: Vec<_> = waiting.take(MAX_BACKTRACES).collect();
            let mut found = shared.traces.ask(&asked, limit);
            fibers.iter_mut().for_each(|report| report.backtrace = found.remove(&report.id));
        }
        Dump { fibers }
    }
}

/// Returns a fiber's state. `running` lists the numbers of the running fibers; `None` means that each fiber has its own worker,
/// so no fiber waits in a queue.
fn state(core: &CoreRef, now_ms: u64, running: Option<&[u64]>) -> State {
    match core.state.waiting() {
        _ if core.state.phase() == Phase::Unstarted => State::Unstarted,
        Some(waiting) if core.wait.is_asleep() => State::Waiting {
            reason: waiting.reason,
            at: waiting.at,
            since: Duration::from_millis(now_ms.saturating_sub(waiting.since_ms)),
        },
        _ if running.is_none_or(|running| running.contains(&core.id)) => State::Running,
        _ => State::Ready,
    }
}

/// A group's key: the fibers' name, their state without its times, whether they are cancelled, and their backtrace.
type Key<'a> = (Option<&'a str>, u8, Option<(Reason, &'static Location<'static>)>, bool, Option<&'a Backtrace>);

impl FiberReport {
    fn key(&self) -> Key<'_> {
        let (order, wait) = match self.state {
            State::Running => (0, None),
            State::Ready => (1, None),
            State::Waiting { reason, at, .. } => (2, Some((reason, at))),
            State::Unstarted => (3, None),
        };
        (self.name.as_deref(), order, wait, self.is_cancelled, self.backtrace.as_deref())
    }
}

/// A group's size, its longest wait and its deepest stack.
#[derive(Default)]
struct Group {
    fibers: usize,
    longest: Option<Duration>,
    deepest_bytes: Option<usize>,
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut groups: BTreeMap<Key<'_>, Group> = BTreeMap::new();
        for fiber in &self.fibers {
            let group = groups.entry(fiber.key()).or_default();
            group.fibers += 1;
            group.deepest_bytes = group.deepest_bytes.max(fiber.stack_used_bytes);
            if let State::Waiting { since, .. } = fiber.state {
                group.longest = group.longest.max(Some(since));
            }
        }
        write!(f, "{} fiber{}", self.fibers.len(), if self.fibers.len() == 1 { "" } else { "s" })?;
        let mut groups: Vec<_> = groups.into_iter().collect();
        // The largest groups first; the sort is stable.
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.fibers));
        groups.iter().try_for_each(|(key, group)| write_group(f, key, group))
    }
}

fn write_group(f: &mut fmt::Formatter<'_>, key: &Key<'_>, group: &Group) -> fmt::Result {
    let (name, order, wait, is_cancelled, backtrace) = key;
    write!(f, "\n{:6} × ", group.fibers)?;
    match name {
        Some(name) => write!(f, "`{name}` ")?,
        None => f.write_str("(unnamed) ")?,
    }
    match wait {
        Some((reason, at)) => write!(f, "{reason} at {at}")?,
        None => f.write_str(["running", "ready", "", "unstarted"][usize::from(*order)])?,
    }
    if let Some(longest) = group.longest {
        write!(f, ", for up to {longest:?}")?;
    }
    if let Some(bytes) = group.deepest_bytes {
        write!(f, ", stack up to {} KiB", bytes / 1024)?;
    }
    if *is_cancelled {
        f.write_str(", cancelled")?;
    }
    let frames = backtrace.map(Backtrace::frames).unwrap_or_default();
    frames.iter().try_for_each(|frame| write!(f, "\n           {frame}"))
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(in_words(*self))
    }
}

fn in_words(reason: Reason) -> &'static str {
    match reason {
        Reason::Park => "parked",
        Reason::Sleep => "sleeping",
        Reason::Join => "joining a fiber",
        Reason::Scope => "ending a scope",
        Reason::Mutex => "locking a mutex",
        Reason::Event => "waiting for an event",
        Reason::Send => "sending",
        Reason::Receive => "receiving",
        Reason::Blocking => "in a blocking call",
        Reason::Readable => "waiting to read",
        Reason::Writable => "waiting to write",
        Reason::Poll => "polling descriptors",
        Reason::File => "reading or writing a file",
        Reason::Process => "waiting for a process",
    }
}
