//! Compares replays with closed forms, for queues whose waits are known exactly.

use std::sync::Arc;

use super::loss::fit_loss;
use super::play::play;
use super::script::{Account, Script, Visit};
use crate::engine::simulate::drive::Costs;
use crate::engine::simulate::meter::Spent;
use crate::report::Report;
use crate::trace::model::{After, Kind, Model, ModelHold, ModelNeed, ModelResource, ModelStage, ModelSupply};
use crate::trace::run::End;

const SECOND: f64 = 1e9;

/// A machine whose wake-ups cost nothing.
const IDEAL: Costs = Costs { cores: 1_000_000, wake_ns: 0, start_ns: 0, fiber_start_ns: 0, between_ns: 0, loss: 0.0 };

/// Pseudo-random numbers, the same in each run of the test.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> u64 {
        (-self.unit().ln() * mean) as u64
    }
}

fn waits(wait_ns: u64) -> Spent {
    Spent { cpu_ns: 0, wait_ns }
}

fn stage(name: &str, resource: Option<u16>, next: &[u16], blocking: bool) -> ModelStage {
    let need = |resource| ModelNeed { resource, amount: Some(1), keyed: false, hold: ModelHold::Unit };
    ModelStage {
        name: name.into(),
        kind: Kind::Plain,
        needs: resource.map(need).into_iter().collect(),
        next: next.to_vec(),
        retires: next.is_empty(),
        workers: None,
        blocking,
        fibers: false,
        batch: Some(1),
        batch_wait_ns: 0,
        queue: None,
        weighs: false,
        retries: 0,
        after_failure: After::DeadLetter,
        idempotent: false,
    }
}

fn model(stages: Vec<ModelStage>, resources: &[(&str, ModelSupply)], inflight: u64, workers: usize) -> Model {
    let resource = |&(name, supply): &(&str, ModelSupply)| ModelResource {
        name: name.into(),
        supply,
        keyed: false,
        pool: false,
        max_keys: 1,
    };
    let resources = resources.iter().map(resource).collect();
    Model { flow: "queue".into(), inflight, memory: None, workers, entry: 0, stages, resources }
}

fn run(model: &Model, script: Script, costs: Costs) -> Report {
    let order = (0..script.roots().len()).collect();
    play(model, &vec![1.0; model.stages.len()], &Arc::new(script), order, 0, costs, None).unwrap().report
}

/// One stage with `servers` tokens, exponential times with a mean of one second, and exponential pauses of the source.
fn markov(servers: u64, load: f64, units: usize, inflight: u64) -> Report {
    let mut random = Random(7 + servers);
    let between = SECOND / (load * servers as f64);
    let script = Script::of((0..units).map(|_| {
        let arrives = waits(random.exponential(between));
        (arrives, vec![Visit::new(0, End::Retire, waits(random.exponential(SECOND)))])
    }));
    let model =
        model(vec![stage("serve", Some(0), &[], true)], &[("server", ModelSupply::Tokens(servers))], inflight, 4);
    run(&model, script, IDEAL)
}

/// The probability that all of `servers` are busy (Erlang's C formula).
fn erlang_c(servers: u64, load: f64) -> f64 {
    let a = load * servers as f64;
    let blocked = (1..=servers).fold(1.0, |b, n| a * b / (n as f64 + a * b));
    blocked / (1.0 - load * (1.0 - blocked))
}

/// The throughput and the mean time in a queue that holds at most `room` units and pauses its source while it is full. This is
/// M/M/c/K: because the source is memoryless, a pause is equivalent to rejecting arrivals.
fn with_room(servers: u64, load: f64, room: u64) -> (f64, f64) {
    let arrivals = load * servers as f64;
    let mut weights = vec![1.0];
    for n in 1..=room {
        weights.push(weights[n as usize - 1] * arrivals / n.min(servers) as f64);
    }
    let sum: f64 = weights.iter().sum();
    let throughput = arrivals * (1.0 - weights[room as usize] / sum);
    let present: f64 = (0..).zip(&weights).map(|(n, weight)| f64::from(n) * weight / sum).sum();
    (throughput, present / throughput)
}

/// The throughput of single servers in a row with `units` in flight (exact mean value analysis).
fn mean_value_analysis(services: &[f64], units: u64) -> f64 {
    let mut queues = vec![0.0; services.len()];
    let mut throughput = 0.0;
    for n in 1..=units {
        let times: Vec<f64> = services.iter().zip(&queues).map(|(service, queue)| service * (1.0 + queue)).collect();
        throughput = n as f64 / times.iter().sum::<f64>();
        queues = times.iter().map(|time| throughput * time).collect();
    }
    throughput
}

fn assert_near(what: &str, found: f64, expected: f64, tolerance: f64) {
    let off = (found - expected).abs() / expected;
    assert!(off <= tolerance, "{what}: {found:.5} for {expected:.5}, {:.2} % off", off * 100.0);
}

#[test]
fn waits_of_markovian_queues_are_those_of_erlang() {
    for (servers, load) in [(1, 0.5), (1, 0.8), (2, 0.7), (8, 0.9)] {
        let report = markov(servers, load, 200_000, u64::MAX >> 40);
        let expected = 1.0 + erlang_c(servers, load) / (servers as f64 * (1.0 - load));
        assert_near(&format!("M/M/{servers} at {load}"), report.latency_ns.mean as f64 / SECOND, expected, 0.04);
    }
}

#[test]
fn a_cap_on_units_in_flight_bounds_a_queue_as_the_formula_says() {
    for (servers, load, room) in [(1, 0.8, 3), (2, 0.9, 4), (4, 1.5, 6)] {
        let report = markov(servers, load, 40_000, room);
        let (throughput, time) = with_room(servers, load, room);
        let queue = format!("M/M/{servers}/{room} at {load}");
        assert_near(&queue, report.retired as f64 / report.wall_s, throughput, 0.03);
        assert_near(&queue, report.latency_ns.mean as f64 / SECOND, time, 0.05);
    }
}

/// The reference values are from another simulator, Ciw 3.2.7. They are means over 24 runs of 14,000 s each, of which
/// the first 500 s do not count. Each mean has the half-width of its 95 % confidence interval.
#[test]
fn stations_without_a_closed_form_make_units_wait_as_another_simulator_says() {
    let mut random = Random(23);
    let script = Script::of((0..200_000).map(|_| {
        let arrives = waits(random.exponential(SECOND / 1.5));
        let uniform = waits(((0.2 + 1.6 * random.unit()) * SECOND) as u64);
        let mean = if random.unit() < 0.5 { 0.2 } else { 0.8 };
        let hyperexponential = waits(random.exponential(mean * SECOND));
        (arrives, vec![Visit::new(0, End::Go(1), uniform), Visit::new(1, End::Retire, hyperexponential)])
    }));
    let stages = vec![stage("a", Some(0), &[1], true), stage("b", Some(1), &[], true)];
    let servers = [("two", ModelSupply::Tokens(2)), ("one", ModelSupply::Tokens(1))];
    let report = run(&model(stages, &servers, u64::MAX >> 40, 4), script, IDEAL);
    for (what, ns, (mean, half_width)) in [
        ("wait at a", report.stages[0].wait_ns.mean, (0.795, 0.021)),
        ("wait at b", report.stages[1].wait_ns.mean, (1.793, 0.073)),
        ("time in the network", report.latency_ns.mean, (4.088, 0.087)),
    ] {
        // The replay is a single run, which has its own random error. The test allows 3 % for this error.
        let found = ns as f64 / SECOND;
        assert!((found - mean).abs() < half_width + 0.03 * mean, "{what}: {found:.3} for {mean} ± {half_width}");
    }
}

#[test]
fn a_closed_network_is_as_fast_as_mean_value_analysis_says() {
    let means = [1.0, 0.7, 0.4];
    for units in [1, 3, 8] {
        let mut random = Random(11 + units);
        let script = Script::of((0..20_000).map(|_| {
            let mut visit =
                |stage: u16, end| Visit::new(stage, end, waits(random.exponential(means[usize::from(stage)] * SECOND)));
            (waits(0), vec![visit(0, End::Go(1)), visit(1, End::Go(2)), visit(2, End::Retire)])
        }));
        let one = |name| (name, ModelSupply::Tokens(1));
        let stages =
            vec![stage("a", Some(0), &[1], true), stage("b", Some(1), &[2], true), stage("c", Some(2), &[], true)];
        let report = run(&model(stages, &[one("x"), one("y"), one("z")], units, 2), script, IDEAL);
        let expected = mean_value_analysis(&means, units);
        assert_near(&format!("{units} units"), report.retired as f64 / report.wall_s, expected, 0.04);
    }
}

#[test]
fn a_resource_that_slows_down_is_a_line_in_its_tokens() {
    use super::what_if::WhatIf;
    use crate::trace::file::Machine;
    let machine = Machine { cores: 4, wake_ns: 0, start_ns: 0 };
    let fresh = || model(vec![stage("a", Some(0), &[], true)], &[("disk", ModelSupply::Tokens(2))], 8, 2);
    let factor = |what_if: WhatIf| what_if.apply(&mut fresh(), &mut { machine }).map(|factors| factors[0]);
    let line = WhatIf::default().service_by_capacity("a", "disk", 0.25);
    assert_eq!(factor(line.clone()), Ok(1.0));
    assert_eq!(factor(line.clone().capacity("disk", 6)), Ok(2.0));
    assert_eq!(factor(line.clone().capacity("disk", 1).service("a", 2.0)), Ok(1.5));
    assert_eq!(factor(WhatIf::default().service_by_capacity("a", "disk", -0.9).capacity("disk", 9)), Ok(0.05));
    assert!(factor(WhatIf::default().service_by_capacity("a", "tape", 0.1)).is_err());
    assert!(factor(WhatIf::default().service_by_capacity("a", "disk", f64::NAN)).is_err());
}

#[test]
fn a_closed_flow_runs_as_fast_as_its_scarcest_resource() {
    // Two stages of one second each, with 2 and 3 tokens: at most 2 units a second leave the first.
    let stages = vec![stage("a", Some(0), &[1], true), stage("b", Some(1), &[], true)];
    let resources = [("few", ModelSupply::Tokens(2)), ("more", ModelSupply::Tokens(3))];
    let visits =
        || vec![Visit::new(0, End::Go(1), waits(1_000_000_000)), Visit::new(1, End::Retire, waits(1_000_000_000))];
    let report = run(&model(stages, &resources, 64, 2), Script::of((0..400).map(|_| (waits(0), visits()))), IDEAL);
    assert_near("seconds", report.wall_s, 201.0, 0.001);
    assert!(report.bottleneck.starts_with("few"), "{}", report.bottleneck);
}

#[test]
fn units_in_flight_are_throughput_times_latency() {
    let report = markov(4, 0.8, 100_000, 1 << 20);
    // Little's law, λW = L, where L of M/M/4 is known.
    let expected = 4.0 * 0.8 + erlang_c(4, 0.8) * 0.8 / 0.2;
    let throughput = report.retired as f64 / report.wall_s;
    assert_near("L", throughput * report.latency_ns.mean as f64 / SECOND, expected, 0.05);
}

#[test]
fn computing_units_share_the_cores() {
    // Four workers on two cores: each of 40 units needs one second of a core.
    let computes = Spent { cpu_ns: 1_000_000_000, wait_ns: 0 };
    let script = || Script::of((0..40).map(|_| (waits(0), vec![Visit::new(0, End::Retire, computes)])));
    let model = model(vec![stage("compute", None, &[], false)], &[], 64, 4);
    let report = run(&model, script(), Costs { cores: 2, ..IDEAL });
    assert_near("two cores", report.wall_s, 20.0, 0.001);
    let service = report.stages[0].service_ns.p50 as f64;
    assert_near("four workers", service / SECOND, 2.0, 0.02);
    let report = run(&model, script(), Costs { cores: 8, ..IDEAL });
    assert_near("eight cores", report.wall_s, 10.0, 0.001);
}

#[test]
fn the_loss_of_crowded_cores_is_found_from_the_delay_that_was_recorded() {
    // Three workers on two cores, whose units alternately compute and wait.
    let spent = |n: u64| Spent { cpu_ns: 1_000_000 + n % 7 * 300_000, wait_ns: n % 3 * 400_000 };
    let script = || Script::of((0..300).map(|n| (waits(0), vec![Visit::new(0, End::Retire, spent(n))])));
    let model = model(vec![stage("compute", None, &[], false)], &[], 64, 3);
    let machine = Costs { cores: 2, ..IDEAL };
    for loss in [0.02, 0.1, 0.3] {
        let mut recorded = script();
        let busy = run(&model, script(), Costs { loss, ..machine }).stages[0].busy_ns;
        let (cpu_ns, wait_ns) = recorded.spent_by(&(0..300).collect::<Vec<_>>());
        recorded.account = Account { cpu_ns, wait_ns, delayed_ns: busy - cpu_ns - wait_ns };
        let found = fit_loss(&model, &Arc::new(recorded), machine);
        assert!((found - loss).abs() < 0.01, "{found} instead of {loss}");
    }
    // Sharing alone explains this delay.
    let mut recorded = script();
    let busy = run(&model, script(), machine).stages[0].busy_ns;
    let (cpu_ns, wait_ns) = recorded.spent_by(&(0..300).collect::<Vec<_>>());
    recorded.account = Account { cpu_ns, wait_ns, delayed_ns: busy - cpu_ns - wait_ns };
    assert_eq!(fit_loss(&model, &Arc::new(recorded), machine), 0.0);
    // A single worker is delayed only by other programs, and no loss explains this delay.
    let mut recorded = script();
    let alone = self::model(vec![stage("compute", None, &[], false)], &[], 64, 1);
    recorded.account = Account { cpu_ns, wait_ns, delayed_ns: cpu_ns / 50 };
    assert_eq!(fit_loss(&alone, &Arc::new(recorded), machine), 0.0);
    // The fit uses at least one unit of the source, even if that unit alone exceeds the limit.
    let long = (0..150_000).map(|_| Visit::new(0, End::Go(0), spent(1))).chain([Visit::new(0, End::Retire, spent(1))]);
    let mut recorded = Script::of([(waits(0), long.collect())]);
    recorded.account = Account { cpu_ns: 150_000_000_000, wait_ns: 0, delayed_ns: 3_000_000_000 };
    let again = self::model(vec![ModelStage { retires: true, ..stage("compute", None, &[0], false) }], &[], 64, 3);
    assert_eq!(fit_loss(&again, &Arc::new(recorded), machine), 0.0);
}

#[test]
fn the_engine_s_own_work_takes_a_core_and_does_not_count_for_a_stage() {
    let computes = Spent { cpu_ns: 1_000_000, wait_ns: 0 };
    let script = Script::of((0..100).map(|_| (waits(0), vec![Visit::new(0, End::Retire, computes)])));
    let model = model(vec![stage("compute", None, &[], false)], &[], 64, 1);
    let report = run(&model, script, Costs { between_ns: 250_000, ..IDEAL });
    assert_near("seconds", report.wall_s, 0.125, 0.001);
    assert_eq!(report.stages[0].busy_ns, 100_000_000);
}

#[test]
fn a_rate_grants_its_tokens_and_no_more() {
    let stages = vec![stage("ask", Some(0), &[], true)];
    let resources = [("rate", ModelSupply::Rate { per_second: 10.0, burst: 1 })];
    let script = Script::of((0..101).map(|_| (waits(0), vec![Visit::new(0, End::Retire, waits(1_000_000))])));
    assert_near("100 periods", run(&model(stages, &resources, 64, 2), script, IDEAL).wall_s, 10.0, 0.001);
}

#[test]
fn the_same_script_gives_the_same_run() {
    let (one, two) = (markov(3, 0.9, 5_000, 40), markov(3, 0.9, 5_000, 40));
    assert_eq!((one.wall_s, one.latency_ns), (two.wall_s, two.latency_ns));
}

#[test]
fn units_that_fail_end_as_recorded() {
    let mut failing = stage("try", None, &[], true);
    failing.retries = 1;
    let again = |pause_ns| Visit::new(0, End::Retry { pause_ns }, waits(1_000_000));
    let end = |end| Visit::new(0, end, waits(1_000_000));
    let units = [
        vec![again(5_000_000_000), end(End::Retire)],
        vec![again(1), end(End::Dead)],
        vec![end(End::Dead)],
        vec![Visit::new(0, End::Requeue { pause_ns: 3_000_000_000 }, waits(0)), end(End::Retire)],
    ];
    let script = Script::of(units.map(|visits| (waits(0), visits)));
    let report = run(&model(vec![failing], &[], 64, 2), script, IDEAL);
    let stage = &report.stages[0];
    assert_eq!((report.retired, report.dead_lettered, stage.retries, stage.requeued), (2, 2, 2, 1));
    assert_near("the longest pause", report.wall_s, 5.002, 0.001);
}
