//! File descriptors: the system limits their number per process, and units share them like any other resource.
//!
//! A run that could use more descriptors than its soft limit allows, or that starts no programs, raises the soft limit
//! to the hard limit. Programs get the original soft limit, since some cannot cope with a higher one. If stages could
//! still use more descriptors at once than the limit allows, each unit acquires the descriptors of its op before a
//! worker is spent on it; the plan and the start of the run say so.

use std::fs;

use millstream_command::program::descriptors::raise;
use millstream_command::screen::text;
use millstream_flow::Plan;
use rustix::process::{Resource, Rlimit, getrlimit};

use crate::file::model::{FlowFile, OpSpec, ResourceKind, StageSpec};

/// The name of the resource in reports and in `millstream status`. The name of a resource in a flow file contains no
/// space, so it cannot be this one.
pub const NAME: &str = "file descriptors";

/// The number of descriptors that a run opens in addition to those of its units: for its control socket and the
/// socket's clients, the files of the report, of dead letters and of lists, and the folders of a walk.
const BESIDE: u64 = 8;

/// The number of descriptors of the two threads that run fibers: two for each thread.
const OF_FIBERS: u64 = 4;

/// The number of descriptors that a process is assumed to have open if `/proc` cannot be read.
const USUALLY_OPEN: u64 = 16;

/// The maximum number of idle connections that one stage keeps.
const MAX_IDLE: u64 = 256;

/// The maximum number of files that an `append` keeps open.
const MAX_LISTS: u64 = 32;

/// The assumed maximum number of threads of a blocking stage, if nothing else bounds them.
const MAX_THREADS: u64 = millstream_flow::MAX_WORKERS_BY_NEEDS as u64;

/// The limits on the descriptors of a process.
#[derive(Debug, Clone, Copy)]
struct Limits {
    soft: u64,
    hard: u64,
}

impl Limits {
    fn of_this_process() -> Self {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        Limits { soft: current.unwrap_or(u64::MAX), hard: maximum.unwrap_or(u64::MAX) }
    }
}

/// The descriptors of a flow's units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Whether the run raises its soft limit to the hard limit.
    raises: bool,
    /// The number of descriptors that the units could use at once.
    wanted: u64,
    /// The limit on the descriptors of the process.
    limit: u64,
    /// The number of descriptors that the limit leaves for units.
    left: u64,
    /// The maximum number of descriptors that one unit has open.
    each: u64,
    /// The smallest limit that would leave as many descriptors as the units could use.
    enough: u64,
}

impl Share {
    /// The number of descriptors that the units share; `None` if there are enough for all units that can run at once.
    pub fn to_share(self) -> Option<u64> {
        // The units share enough descriptors for at least one unit at a time, whatever the limit leaves.
        self.is_short().then_some(self.left.max(self.each))
    }

    fn is_short(self) -> bool {
        self.left < self.wanted
    }

    /// Raises the soft limit of this process if the run needs a higher one.
    pub fn raise(self) {
        if self.raises {
            // If the limit cannot be raised, it stays as it was, and units wait for descriptors.
            let _ = raise();
        }
    }

    /// The maximum number of descriptors that a unit has open while the op runs on it.
    pub fn needed(self, op: &OpSpec) -> u64 {
        needed(op, self.raises)
    }

    /// A sentence about a limit that is too small; `None` if the limit suffices.
    pub fn warning(self) -> Option<String> {
        let Share { wanted, limit, left, each, enough, .. } = self;
        let then = if left < each {
            format!("fewer than the {} that one unit takes, so units may fail", text::count(each))
        } else {
            "so some wait".to_owned()
        };
        self.is_short().then(|| {
            format!(
                "the flow's units could use {} at once, and the hard limit of {} leaves {} for them, {then}: raise it \
                 (`ulimit -Hn {enough}` as root, `LimitNOFILE={enough}` in a service), or give stages fewer `workers`.",
                text::counted(wanted, "file descriptor"),
                text::count(limit),
                text::count(left),
            )
        })
    }
}

/// The [warning](Share::warning) about the flow of a plan.
pub fn warning(file: &FlowFile, plan: &Plan) -> Option<String> {
    let blocking: Vec<bool> = plan.stages.iter().map(|stage| stage.blocking).collect();
    share(file, plan.workers as usize, &blocking).warning()
}

/// The maximum number of descriptors that a unit has open while the op runs on it. `raised` says that programs get a
/// limit other than that of this process.
fn needed(op: &OpSpec, raised: bool) -> u64 {
    match op {
        // Never two at once: a name lookup closes its socket before the connection opens.
        OpSpec::Read { .. } | OpSpec::Http(_) => 1,
        // The file and its folder.
        OpSpec::Write { .. } => 2,
        // Both ends of three pipes while the program starts, and of a fourth pipe if the program gets a limit of its
        // own.
        OpSpec::Exec(_) if raised => 8,
        OpSpec::Exec(_) => 6,
        // These ops open no descriptor for a unit. An `append` keeps its file open for the whole run, which [`lists`]
        // counts, and the printer has its own descriptors.
        OpSpec::Append { .. }
        | OpSpec::Print { .. }
        | OpSpec::Set { .. }
        | OpSpec::Stream { .. }
        | OpSpec::Blake3
        | OpSpec::Sha256
        | OpSpec::Zstd { .. }
        | OpSpec::Gzip { .. }
        | OpSpec::Parse { .. }
        | OpSpec::Split(_)
        | OpSpec::Gather(_)
        | OpSpec::Filter { .. }
        | OpSpec::Unique { .. }
        | OpSpec::Check { .. } => 0,
    }
}

/// The number of files that each `append` may keep open if its path differs from unit to unit.
pub fn open_lists(file: &FlowFile) -> usize {
    let stages = file.stages.iter().filter(|stage| has_many_lists(&stage.op)).count() as u64;
    // The files of these stages get a quarter of the descriptors, since units, connections and programs need
    // descriptors as well.
    let share = Limits::of_this_process().hard.saturating_sub(USUALLY_OPEN + BESIDE) / 4 / stages.max(1);
    share.clamp(1, MAX_LISTS) as usize
}

fn has_many_lists(op: &OpSpec) -> bool {
    matches!(op, OpSpec::Append { path, .. } if path.fields().next().is_some())
}

/// The number of files that the op keeps open in addition to those of its units. An `append` whose path differs from
/// unit to unit keeps `open_lists` files open.
fn lists(op: &OpSpec, open_lists: usize) -> u64 {
    match op {
        op if has_many_lists(op) => open_lists as u64,
        OpSpec::Append { .. } => 1,
        _ => 0,
    }
}

/// The number of idle connections that an `http-get` stage may keep.
#[cfg(feature = "http")]
pub fn idle_connections() -> usize {
    // A run that raises the soft limit has done so by now, so this soft limit is the final one.
    idle_under(Limits::of_this_process().soft) as usize
}

/// The number of idle connections that a stage may keep if the process may have `limit` descriptors: an eighth of them,
/// since the units need the others, and at most [`MAX_IDLE`].
fn idle_under(limit: u64) -> u64 {
    (limit / 8).clamp(1, MAX_IDLE)
}

/// The descriptors of a flow with this number of shared workers. `blocking` says which stages have threads of their
/// own.
pub fn share(file: &FlowFile, workers: usize, blocking: &[bool]) -> Share {
    Limits::of_this_process().share(file, workers, blocking, in_use())
}

impl Limits {
    fn share(self, file: &FlowFile, workers: usize, blocking: &[bool], in_use: u64) -> Share {
        let of = |limit, raised| share_of(file, workers, blocking, limit, in_use, raised);
        let with_soft = of(self.soft, false);
        // A run without programs always raises its limit: no program needs the lower one, and each client of the page
        // of the run takes a descriptor.
        let starts_programs = file.stages.iter().any(|stage| matches!(stage.op, OpSpec::Exec(_)));
        let raises = self.hard > self.soft && (with_soft.is_short() || !starts_programs);
        let share = if raises { of(self.hard, true) } else { with_soft };
        // A higher limit also allows more idle connections, so the units get only a part of each increase. The loop
        // therefore raises the limit until the units have enough.
        let mut larger = of(share.limit, true);
        while larger.is_short() {
            larger = of(larger.limit.saturating_add(larger.wanted - larger.left), true);
        }
        Share { enough: larger.limit, ..share }
    }
}

/// The descriptors of a flow under a limit.
fn share_of(file: &FlowFile, workers: usize, blocking: &[bool], limit: u64, in_use: u64, raised: bool) -> Share {
    let uses = || file.stages.iter().zip(blocking).map(|(stage, blocks)| (stage, *blocks, needed(&stage.op, raised)));
    let shared = uses().filter(|(_, blocks, _)| !blocks).map(|(.., each)| each).max().unwrap_or(0) * workers as u64;
    let beside = uses().map(|(stage, blocks, each)| match blocks {
        true => at_once(file, stage, workers).saturating_mul(each),
        false => stage.workers.map_or(0, |(floor, _)| floor.resolve(workers) as u64) * each,
    });
    let wanted = beside.fold(shared, u64::saturating_add);
    let lists: u64 = file.stages.iter().map(|stage| lists(&stage.op, open_lists(file))).sum();
    let printer = u64::from(file.stages.iter().any(|stage| stage.op.prints()));
    let fetches = file.stages.iter().filter(|stage| matches!(stage.op, OpSpec::Http(_))).count() as u64;
    let idle = fetches * idle_under(limit);
    let fibers = if file.stages.iter().any(|stage| stage.fibers.is_some()) { OF_FIBERS } else { 0 };
    let left = limit.saturating_sub(in_use + BESIDE + fibers + 2 * (lists + printer) + idle);
    let each = uses().map(|(.., each)| each).max().unwrap_or(0);
    Share { raises: raised, wanted, limit, left, each, enough: limit }
}

/// The maximum number of units that a stage with threads of its own runs at once.
fn at_once(file: &FlowFile, stage: &StageSpec, workers: usize) -> u64 {
    let threads = stage.workers.map_or(MAX_THREADS, |(_, ceiling)| ceiling.resolve(workers) as u64);
    let ceiling = stage.fibers.map_or(threads, |fibers| fibers.most as u64);
    let by_needs = stage.needs.iter().filter_map(|need| {
        let resource = file.resources.iter().find(|resource| resource.name == need.resource)?;
        match resource.kind {
            ResourceKind::Tokens(tokens) => Some(tokens / need.amount.max(1)),
            _ => None,
        }
    });
    by_needs.min().unwrap_or(u64::MAX).min(ceiling).min(file.inflight)
}

/// The number of descriptors that are open now.
fn in_use() -> u64 {
    fs::read_dir("/proc/self/fd").map_or(USUALLY_OPEN, |open| open.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::{Limits, Share, needed};
    use crate::file::model::FlowFile;
    use crate::file::parse::parse;

    fn flow(stages: &str) -> FlowFile {
        let text = format!("[resources]\nnet = 16\n[source]\nlines = \"-\"\n{stages}");
        parse("f.toml".as_ref(), &text, &[]).unwrap()
    }

    /// The number of descriptors that the units share if the limit cannot be raised.
    fn share(file: &FlowFile, workers: usize, blocking: &[bool], limit: u64, in_use: u64) -> Option<u64> {
        Limits { soft: limit, hard: limit }.share(file, workers, blocking, in_use).to_share()
    }

    #[test]
    fn descriptors_are_a_resource_only_where_they_may_run_out() {
        let fetch = flow(
            "[[stage]]\nname = \"get\"\nop = \"http-get\"\nurl = \"{line}\"\nneeds = { net = 1 }\n\
             [[stage]]\nname = \"keep\"\nop = \"write\"\npath = \"out/{name}\"\n",
        );
        // 16 requests and 4 writing workers need 24 descriptors; 10 are open, 8 are reserved for the run, and an
        // eighth of the limit is for idle connections.
        assert_eq!(share(&fetch, 4, &[true, false], 1 << 20, 10), None);
        assert_eq!(share(&fetch, 4, &[true, false], 48, 10), None);
        assert_eq!(share(&fetch, 4, &[true, false], 46, 10), Some(46 - 10 - 8 - 5));
        assert_eq!(share(&fetch, 4, &[true, false], 8, 10), Some(2), "one unit at a time always gets its own");
        let hash = flow("[[stage]]\nname = \"parse\"\nop = \"parse\"\n");
        assert_eq!(share(&hash, 4, &[false], 8, 10), None);
    }

    #[test]
    fn every_op_that_opens_files_says_how_many() {
        let flow = flow(
            "[[stage]]\nname = \"run\"\nop = \"exec\"\nexec = [\"true\"]\n[[stage]]\nname = \"keep\"\nop = \"write\"\npath = \"out/{name}\"\n",
        );
        assert_eq!(flow.stages.iter().map(|stage| needed(&stage.op, false)).collect::<Vec<_>>(), [6, 2]);
    }

    #[test]
    fn a_soft_limit_that_is_too_small_is_raised_and_a_hard_limit_is_reported() {
        let run = flow("[[stage]]\nname = \"run\"\nop = \"exec\"\nexec = [\"true\"]\nneeds = { net = 1 }\n");
        let of = |soft, hard| Limits { soft, hard }.share(&run, 4, &[true], 10);
        // 16 programs need 96 descriptors, or 128 with a limit of their own; 10 are open, and 8 are reserved for the
        // run.
        let facts = |share: Share| (share.raises, share.wanted, share.limit, share.to_share());
        assert_eq!(facts(of(114, 1 << 20)), (false, 96, 114, None));
        assert_eq!(facts(of(113, 1 << 20)), (true, 128, 1 << 20, None));
        let short = of(64, 118);
        assert_eq!(facts(short), (true, 128, 118, Some(100)));
        let said = short.warning().unwrap();
        for part in
            ["128 file descriptors at once", "hard limit of 118 leaves 100", "`ulimit -Hn 146`", "LimitNOFILE=146"]
        {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(of(113, 1 << 20).warning(), None);
        let tiny = of(16, 20);
        assert_eq!(tiny.to_share(), Some(8));
        let said = tiny.warning().unwrap();
        assert!(said.contains("leaves 2 for them, fewer than the 8 that one unit takes, so units may fail"), "{said}");
    }

    #[test]
    fn the_limit_that_is_advised_suffices() {
        let run = "[[stage]]\nname = \"run\"\nop = \"exec\"\nexec = [\"true\"]\nneeds = { net = 1 }\n";
        let get = "[[stage]]\nname = \"get\"\nop = \"http-get\"\nurl = \"{line}\"\nneeds = { net = 1 }\n";
        for stages in [run.to_owned(), get.to_owned(), format!("{get}{run}")] {
            let flow = flow(&stages);
            let blocking = vec![true; flow.stages.len()];
            for (soft, hard) in [(20, 20), (64, 64), (40, 60), (64, 100)] {
                let enough = Limits { soft, hard }.share(&flow, 4, &blocking, 10).enough;
                for soft in [soft, enough] {
                    let share = Limits { soft, hard: enough }.share(&flow, 4, &blocking, 10);
                    assert_eq!(share.warning(), None, "{stages} {soft} of {enough}");
                }
            }
        }
    }
}
