//! Stops a child at instructions of a recovery, uses the slab meanwhile, and lets the child continue.

use millstream_slab::{Error, Slab, Work};
use millstream_verify_random::stress;

use crate::instructions::{begin, trace};
use crate::scenes::{ALL, RECOVERIES, Recovery, Scene};
use crate::stage::{Contents, Death, Stage, aftermath, contents};
use crate::tracer::{Child, Moment, Point, points, spread};
use crate::workers::Job;

/// The number of points at which each recovery is stopped, times the stress.
const POINTS: usize = 12;

/// All selected recoveries.
pub(crate) fn jobs(wants: &dyn Fn(&str) -> bool) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    for scene in ALL.iter().filter(|scene| scene.moves_chains) {
        for recovery in &RECOVERIES {
            let name = format!("stopped {} of {}", recovery.name, scene.name);
            if wants(&name) {
                jobs.push(Box::new(move || stopped_recoveries(scene, recovery, &name)));
            }
        }
    }
    jobs
}

/// Kills a child in the middle of a scene, and stops another child at instructions of the recovery from this kill;
/// returns the number of stops.
fn stopped_recoveries(scene: &Scene, recovery: &Recovery, name: &str) -> usize {
    let trace = trace(scene);
    let mut stopped = 0;
    for Moment { point: death, .. } in spread(&points(&trace), 2) {
        let fallen = || {
            let (mut stage, child) = begin(scene);
            child.kill_at(death);
            (recovery.prepare)(&mut stage);
            stage
        };
        let start = |stage: &Stage| Child::start(|mark| (recovery.play)(stage, mark));
        let trace = {
            let stage = fallen();
            start(&stage).trace(&stage.file())
        };
        for Moment { point, .. } in spread(&points(&trace), POINTS * stress() as usize) {
            let stage = fallen();
            let child = start(&stage);
            let context = format!("{name}, first killed at {death:?}, then stopped at {point:?}");
            let is_over = child.run_to(point);
            used_beside(&stage, &child, recovery, &context);
            if !is_over {
                child.run_to(Point::End);
            }
            child.kill();
            aftermath(stage, recovery.survivors[0], Death::Midway(1), &context);
            stopped += 1;
        }
    }
    println!("{name}: {stopped} points");
    stopped
}

/// Opens the slab, makes a cache, fills the slab, and recovers.
fn used_beside(stage: &Stage, stopped: &Child, recovery: &Recovery, context: &str) {
    let slab = match Slab::<Contents>::open_file(stage.file()) {
        Ok(slab) => slab,
        Err(Error::Busy { pid, work: Work::Rebuilding, is_stopped: true, .. })
            if recovery.rebuilds && pid == stopped.pid() =>
        {
            return;
        }
        Err(error) => panic!("{context}: open: {error}"),
    };
    let cache = slab.cache().unwrap_or_else(|error| panic!("{context}: cache: {error}"));
    let mut objects = Vec::new();
    let full = loop {
        match cache.alloc(contents(700)) {
            Ok(object) => objects.push(object),
            Err(error) => break error,
        }
    };
    assert!(matches!(full, Error::Full { .. }), "{context}: allocation: {full}");
    drop(objects);
    match stage.slab.raw().recover() {
        Ok(_) => {}
        Err(Error::Busy { pid, work: Work::Recovering, is_stopped: true, .. }) => {
            assert_eq!(pid, stopped.pid(), "{context}: the stopped process is named");
        }
        Err(error) => panic!("{context}: recovery: {error}"),
    }
}
