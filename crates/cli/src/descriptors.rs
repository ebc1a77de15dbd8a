//! File descriptors: the system limits their number in a process, and units share them like any other resource.
//!
//! A run takes as many as the system lets it have: it raises the limit as far as it may, unless the flow starts programs,
//! which would inherit a limit that some of them cannot cope with. Where stages could still use more at once than there are,
//! each unit needs those of its op before a worker is spent on it.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::file::model::{FlowFile, OpSpec, ResourceKind, StageSpec};

/// The resource as reports and `millstream status` call it. No name in a flow file has a space.
pub(crate) const NAME: &str = "file descriptors";

/// Descriptors that a run opens beside those of its units: for its control socket and the clients of that, the files of the
/// report, of dead letters and of lists, and the folders of a walk.
const BESIDE: u64 = 8;

/// Descriptors of the threads that run fibers: two each.
const OF_FIBERS: u64 = 4;

/// The descriptors that a process is assumed to have open if `/proc` cannot be read.
const USUALLY_OPEN: u64 = 16;

/// The most connections that are kept while no request uses them.
const MAX_IDLE: u64 = 256;

/// The most files that an `append` keeps open.
const MAX_LISTS: u64 = 32;

/// The most threads of a stage that blocks, where nothing else bounds them.
const MAX_THREADS: u64 = millstream_flow::MAX_WORKERS_BY_NEEDS as u64;

/// How many may be open during the run of this flow.
fn limit(file: &FlowFile) -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let limit = if may_raise(file) { maximum } else { current };
    limit.unwrap_or(u64::MAX)
}

fn may_raise(file: &FlowFile) -> bool {
    !file.stages.iter().any(|stage| matches!(stage.op, OpSpec::Exec(_)))
}

/// Raises the limit for the run of this flow.
pub(crate) fn raise(file: &FlowFile) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if may_raise(file) {
        // One that cannot be raised is what it was, and units wait for descriptors.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// How many a unit has open at most while the op runs on it.
pub(crate) fn needed(op: &OpSpec) -> u64 {
    match op {
        OpSpec::Read { .. } => 1,
        // The file and its folder; the connection and the resolver's.
        OpSpec::Write { .. } | OpSpec::Http(_) => 2,
        // Three pipes with both their ends, while the program starts.
        OpSpec::Exec(_) => 6,
        // An `append` keeps its file open for the whole run, and what is printed has its printer.
        OpSpec::Append { .. }
        | OpSpec::Print { .. }
        | OpSpec::Set { .. }
        | OpSpec::Stream { .. }
        | OpSpec::Blake3
        | OpSpec::Sha256
        | OpSpec::Zstd { .. }
        | OpSpec::Parse { .. }
        | OpSpec::Split(_)
        | OpSpec::Gather(_)
        | OpSpec::Filter { .. }
        | OpSpec::Unique { .. }
        | OpSpec::Check { .. } => 0,
    }
}

/// How many files each `append` may keep open whose path differs from unit to unit.
pub(crate) fn open_lists(file: &FlowFile) -> usize {
    let stages = file.stages.iter().filter(|stage| has_many_lists(&stage.op)).count() as u64;
    // A quarter, since units, connections and programs need theirs too.
    let share = limit(file).saturating_sub(USUALLY_OPEN + BESIDE) / 4 / stages.max(1);
    share.clamp(1, MAX_LISTS) as usize
}

fn has_many_lists(op: &OpSpec) -> bool {
    matches!(op, OpSpec::Append { path, .. } if path.fields().next().is_some())
}

/// How many files the op keeps open beside those of its units, if one with many may have this number.
fn lists(op: &OpSpec, open_lists: usize) -> u64 {
    match op {
        op if has_many_lists(op) => open_lists as u64,
        OpSpec::Append { .. } => 1,
        _ => 0,
    }
}

/// How many idle connections an `http-get` stage may keep.
#[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only a request needs it"))]
pub(crate) fn idle_connections() -> usize {
    let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (current / 8).clamp(1, MAX_IDLE) as usize
}

/// How many units may share, if they could use more at once than there are; `workers` is the number of shared workers, and
/// `blocking` says of each stage whether it has threads of its own.
pub(crate) fn to_share(file: &FlowFile, workers: usize, blocking: &[bool]) -> Option<u64> {
    share(file, workers, blocking, limit(file), in_use())
}

fn share(file: &FlowFile, workers: usize, blocking: &[bool], limit: u64, in_use: u64) -> Option<u64> {
    let uses = || file.stages.iter().zip(blocking).map(|(stage, blocks)| (stage, *blocks, needed(&stage.op)));
    let shared = uses().filter(|(_, blocks, _)| !blocks).map(|(.., each)| each).max().unwrap_or(0) * workers as u64;
    let beside = uses().map(|(stage, blocks, each)| match blocks {
        true => at_once(file, stage, workers) * each,
        false => stage.workers.map_or(0, |(floor, _)| floor.resolve(workers) as u64) * each,
    });
    let wanted = shared + beside.sum::<u64>();
    let lists: u64 = file.stages.iter().map(|stage| lists(&stage.op, open_lists(file))).sum();
    let printer = u64::from(file.stages.iter().any(|stage| stage.op.prints()));
    let fetches = file.stages.iter().filter(|stage| matches!(stage.op, OpSpec::Http(_))).count() as u64;
    let idle = fetches * (limit / 8).clamp(1, MAX_IDLE);
    let fibers = if file.stages.iter().any(|stage| stage.fibers.is_some()) { OF_FIBERS } else { 0 };
    let left = limit.saturating_sub(in_use + BESIDE + fibers + 2 * (lists + printer) + idle);
    let least = uses().map(|(.., each)| each).max()?;
    (left < wanted).then_some(left.max(least))
}

/// The most units that a stage with threads of its own runs at once.
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

/// How many are open now.
fn in_use() -> u64 {
    fs::read_dir("/proc/self/fd").map_or(USUALLY_OPEN, |open| open.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::{needed, share};
    use crate::file::model::FlowFile;
    use crate::file::parse::parse;

    fn flow(stages: &str) -> FlowFile {
        let text = format!("[resources]\nnet = 16\n[source]\nlines = \"-\"\n{stages}");
        parse("f.toml".as_ref(), &text, &[]).unwrap()
    }

    #[test]
    fn descriptors_are_a_resource_only_where_they_may_run_out() {
        let fetch = flow(
            "[[stage]]\nname = \"get\"\nop = \"http-get\"\nurl = \"{line}\"\nneeds = { net = 1 }\n\
             [[stage]]\nname = \"keep\"\nop = \"write\"\npath = \"out/{name}\"\n",
        );
        // 16 requests and 4 workers that write want 40; 8 are kept back, and an eighth for idle connections.
        assert_eq!(share(&fetch, 4, &[true, false], 1 << 20, 10), None);
        assert_eq!(share(&fetch, 4, &[true, false], 80, 10), None);
        assert_eq!(share(&fetch, 4, &[true, false], 64, 10), Some(64 - 10 - 8 - 8));
        assert_eq!(share(&fetch, 4, &[true, false], 8, 10), Some(2), "one unit at a time always gets its own");
        let hash = flow("[[stage]]\nname = \"parse\"\nop = \"parse\"\n");
        assert_eq!(share(&hash, 4, &[false], 8, 10), None);
    }

    #[test]
    fn every_op_that_opens_something_says_how_many() {
        let flow = flow(
            "[[stage]]\nname = \"run\"\nop = \"exec\"\nexec = [\"true\"]\n[[stage]]\nname = \"keep\"\nop = \"write\"\npath = \"out/{name}\"\n",
        );
        assert_eq!(flow.stages.iter().map(|stage| needed(&stage.op)).collect::<Vec<_>>(), [6, 2]);
    }
}
