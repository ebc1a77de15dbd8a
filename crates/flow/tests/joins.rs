//! Splits within splits, with pieces that are gathered again. Every such flow ends, whichever pieces are dropped, and
//! the number of open groups never exceeds the cap on units in flight.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use millstream_flow::{Flow, Gather, select};
use millstream_verify_random::Random;

/// The number of open groups, and its maximum.
#[derive(Default)]
struct Open {
    now: AtomicU64,
    peak: AtomicU64,
}

impl Open {
    fn begin(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.peak.fetch_max(now, Ordering::SeqCst);
    }

    fn end(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Groups by parent that sum their members and count themselves as open.
fn sum(open: &Arc<Open>) -> Gather<u64, u64> {
    let (begun, ended) = (Arc::clone(open), Arc::clone(open));
    let begin = move || {
        begun.begin();
        0
    };
    let add = |sum: &mut u64, n: &mut u64, _: &mut millstream_flow::Cx<'_>| {
        *sum += *n;
        Ok(())
    };
    Gather::fold(begin, add).by_parent().finish(move |_| ended.end())
}

/// The `width` pieces of a unit. The least significant digits of a piece determine its fate.
fn pieces(n: u64, width: u64) -> impl Iterator<Item = u64> {
    (0..n % (width + 1)).map(move |part| (n.wrapping_mul(31) + part * 7) % 1000)
}

/// The sum of two levels of pieces, some of them dropped, as a single thread would compute it.
fn expected(n: u64, width: u64, drop: u64) -> Option<u64> {
    let mut branches = pieces(n, width).filter(|branch| branch % 10 >= drop).filter_map(|branch| {
        let mut leaves = pieces(branch, width).filter(|leaf| leaf % 10 >= drop);
        let first = leaves.next()?;
        Some(leaves.fold(first, |sum, leaf| sum + leaf))
    });
    let first = branches.next()?;
    Some(branches.fold(first, |sum, branch| sum + branch))
}

#[test]
fn no_more_groups_wait_than_units_are_in_flight_and_every_flow_ends() {
    let mut random = Random::seeded();
    for round in 0..60 {
        let (inflight, workers) = (1 + random.below(6), 1 + random.below(3) as usize);
        let (width, drop) = (1 + random.below(9), random.below(11));
        let mut flow = Flow::builder::<u64>("joins");
        flow.inflight(inflight).workers(workers);
        let sums = Arc::new(Mutex::new(Vec::new()));
        let keeper = Arc::clone(&sums);
        flow.on_retire(move |sum: u64| keeper.lock().unwrap().push(sum));
        let [outer, kept, inner, also, leaves, branches, end] =
            ["outer", "kept", "inner", "also", "leaves", "branches", "end"].map(|name| flow.inlet(name));
        let done = flow.retire();
        let gone = flow.inlet("gone");
        let open = [Arc::new(Open::default()), Arc::new(Open::default())];
        flow.split(outer, move |n: &mut u64, _| Ok(pieces(*n, width).map(Ok))).to(kept);
        let keeps = move |n: &u64| usize::from(n % 10 < drop);
        flow.stage(kept, |n: &mut u64, _| Ok(*n)).to(select(keeps, [inner.into(), gone.into()]));
        flow.split(inner, move |n: &mut u64, _| Ok(pieces(*n, width).map(Ok))).to(also);
        flow.stage(also, |n: &mut u64, _| Ok(*n)).to(select(keeps, [leaves.into(), gone.into()]));
        flow.gather(leaves, sum(&open[0])).to(branches);
        flow.gather(branches, sum(&open[1])).to(end);
        // A dropped piece retires with a value that marks it as dropped.
        flow.stage(gone, |_: &mut u64, _| Ok(u64::MAX)).to(done);
        flow.stage(end, |n: &mut u64, _| Ok(*n)).to(done);
        let units = 40;
        let report = flow.build(outer).unwrap().run(0..units);
        assert_eq!((report.left, report.dead_lettered), (0, 0), "round {round}");
        let mut sums: Vec<u64> = sums.lock().unwrap().iter().copied().filter(|sum| *sum != u64::MAX).collect();
        let mut wanted: Vec<u64> = (0..units).filter_map(|n| expected(n, width, drop)).collect();
        sums.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(sums, wanted, "round {round}: width {width}, drop {drop}");
        for open in open {
            let peak = open.peak.load(Ordering::SeqCst);
            assert!(peak <= inflight + 2, "round {round}: {peak} groups were open, {inflight} units in flight");
            assert_eq!(open.now.load(Ordering::SeqCst), 0);
        }
    }
}
