//! Kills a child at every instruction of a scene; a traced run of another child yields the instructions.

use millstream_verify_random::stress;

use crate::scenes::{ALL, RECOVERIES, Recovery, Scene};
use crate::stage::{Death, Stage, Survivor, aftermath};
use crate::tracer::{Child, Point, points, spread};
use crate::workers::Job;

/// The number of points at which each recovery is killed, times the stress; or all points, if it has fewer.
const RECOVERY_POINTS: usize = 270;

/// All selected scenes, and all selected recoveries from them; the long ones first.
pub(crate) fn jobs(wants: &dyn Fn(&str) -> bool) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    // The later scenes are longer.
    for scene in ALL.iter().rev().filter(|scene| wants(scene.name)) {
        for survivor in [Survivor::Lives, Survivor::Dies] {
            jobs.push(Box::new(move || every_instruction(scene, survivor)));
        }
    }
    for scene in ALL.iter().filter(|scene| scene.moves_chains) {
        for recovery in &RECOVERIES {
            let name = format!("{} of {}", recovery.name, scene.name);
            if wants(&name) {
                jobs.push(Box::new(move || killed_recoveries(scene, recovery, &name)));
            }
        }
    }
    jobs
}

/// Forks a child that stops at the beginning of a scene, and returns it with its stage.
pub(crate) fn begin(scene: &Scene) -> (Stage, Child) {
    let stage = scene.stage();
    let child = Child::start(|mark| (scene.play)(&stage, mark));
    (stage, child)
}

/// Kills a child at every instruction of a scene; returns the number of kills.
fn every_instruction(scene: &Scene, survivor: Survivor) -> usize {
    let trace = begin(scene).1.trace();
    let points = points(&trace);
    for &point in points.iter().chain(&[Point::End]) {
        let (stage, child) = begin(scene);
        child.kill_at(point);
        let context = format!("{}, killed at {point:?}, survivor {survivor:?}", scene.name);
        let death = if point == Point::End { Death::After(scene.after) } else { Death::Midway(1) };
        aftermath(stage, survivor, death, &context);
    }
    println!("{}, survivor {survivor:?}: {} points in {} instructions", scene.name, points.len() + 1, trace.len());
    points.len() + 1
}

/// Kills a child in the middle of a scene, and another one at every instruction of the recovery from that; returns the
/// number of kills.
fn killed_recoveries(scene: &Scene, recovery: &Recovery, name: &str) -> usize {
    let trace = begin(scene).1.trace();
    // A few points of the first death, and for each all points of the recovery.
    let deaths = spread(&points(&trace), 6);
    let (mut instructions, mut killed) = (0, 0);
    for death in deaths {
        let fallen = || {
            let (mut stage, child) = begin(scene);
            child.kill_at(death);
            (recovery.prepare)(&mut stage);
            stage
        };
        let trace = {
            let stage = fallen();
            Child::start(|mark| (recovery.play)(&stage, mark)).trace()
        };
        instructions = instructions.max(trace.len());
        for &survivor in recovery.survivors {
            for point in spread(&points(&trace), RECOVERY_POINTS * stress() as usize / recovery.survivors.len()) {
                let stage = fallen();
                Child::start(|mark| (recovery.play)(&stage, mark)).kill_at(point);
                let context = format!("{name}, first killed at {death:?}, then at {point:?}, {survivor:?}");
                aftermath(stage, survivor, Death::Midway(1), &context);
                killed += 1;
            }
        }
    }
    println!("{name}: {killed} points, up to {instructions} instructions");
    killed
}
