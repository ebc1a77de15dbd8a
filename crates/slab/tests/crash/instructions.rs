//! Kills a child in every state that an instruction of a scene leaves behind; a traced run of another child yields the
//! instructions and the states.

use millstream_verify_random::stress;

use crate::scenes::{ALL, RECOVERIES, Recovery, Scene};
use crate::stage::{Death, Stage, Survivor, aftermath};
use crate::tracer::{Child, Moment, Point, Step, distinct, points, spread};
use crate::workers::Job;

/// The number of first deaths for each recovery, times the stress.
const DEATHS: usize = 1;

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

/// The instructions of a scene.
pub(crate) fn trace(scene: &Scene) -> Vec<Step> {
    let (stage, child) = begin(scene);
    child.trace(&stage.file())
}

/// Kills a child in every state that an instruction of a scene leaves behind; returns the number of kills.
fn every_instruction(scene: &Scene, survivor: Survivor) -> usize {
    let trace = trace(scene);
    let points = distinct(points(&trace));
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

/// Kills a child in the middle of a scene. Then kills other children, one in every state that an instruction of the
/// recovery leaves behind; returns the number of kills.
fn killed_recoveries(scene: &Scene, recovery: &Recovery, name: &str) -> usize {
    let trace = trace(scene);
    // The points of the first death are spread over the scene. For each of them, children are killed in all states of
    // the recovery.
    let deaths = spread(&points(&trace), DEATHS * stress() as usize);
    let (mut instructions, mut killed) = (0, 0);
    for Moment { point: death, .. } in deaths {
        let fallen = || {
            let (mut stage, child) = begin(scene);
            child.kill_at(death);
            (recovery.prepare)(&mut stage);
            stage
        };
        let trace = {
            let stage = fallen();
            Child::start(|mark| (recovery.play)(&stage, mark)).trace(&stage.file())
        };
        instructions = instructions.max(trace.len());
        for &survivor in recovery.survivors {
            for point in distinct(points(&trace)) {
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
