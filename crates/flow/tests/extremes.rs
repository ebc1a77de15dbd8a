//! Numbers at the ends of their ranges: weights, needs, capacities, budgets. Whatever these numbers are, an idle flow
//! has no resources in use and admits the next unit.

#[path = "support/time.rs"]
mod time;
#[path = "../../ring/tests/support/watchdog.rs"]
mod watchdog;

use std::time::{Duration, Instant};

use millstream_flow::{Batch, BuildError, Flow, MAX_AMOUNT, Need, Rate, Retry, Unfinished};
use millstream_verify_random::cases;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use time::ms;
use watchdog::in_time;

/// Numbers near those at which arithmetic overflows or changes.
fn extreme() -> impl Strategy<Value = u64> {
    let ends = [0, 1, 4, 1000, MAX_AMOUNT - 1, MAX_AMOUNT, MAX_AMOUNT + 1, 1 << 62, 1 << 63, u64::MAX - 1, u64::MAX];
    prop_oneof![9 => prop::sample::select(ends.to_vec()), 1 => any::<u64>()]
}

/// A unit, with its weight in each stage, the weight it grows to, and its needs.
#[derive(Debug, Clone)]
struct Extreme {
    weighs: [u64; 2],
    grows_to: u64,
    needs: [u64; 2],
    fails: bool,
}

fn unit() -> impl Strategy<Value = Extreme> {
    let numbers = (extreme(), extreme(), extreme(), extreme(), extreme(), any::<bool>());
    numbers.prop_map(|(first, second, grows_to, tokens, keyed, fails)| Extreme {
        weighs: [first, second],
        grows_to,
        needs: [tokens, keyed],
        fails,
    })
}

fn run(units: &[Extreme], memory: u64, capacity: u64, inflight: u64, idempotent: bool) {
    let mut flow = Flow::builder::<()>("extremes");
    flow.inflight(inflight).memory(memory).workers(2);
    let (token, key) = (flow.tokens("token", capacity), flow.keyed_tokens("key", capacity));
    flow.max_keys(key, 1 << 62);
    let (first, second, done) = (flow.inlet::<Extreme>("first"), flow.inlet::<Extreme>("second"), flow.retire());
    let grow = flow.update(first, |unit, cx| {
        cx.reserve(unit.grows_to)?;
        if unit.fails && cx.attempt() == 1 { Err(millstream_flow::Failure::msg("again")) } else { Ok(()) }
    });
    let grow = grow.batch(Batch::of(2)).retry(Retry::times(1).backoff(ms(0)..ms(1))).bytes(|unit| unit.weighs[0]);
    let grow = grow.need(Need::tokens(token, 1).amount_with(|unit: &Extreme| unit.needs[0]));
    if idempotent { grow.idempotent() } else { grow }.to(second);
    flow.stage(second, |_: &mut Extreme, _| Ok(()))
        .bytes(|unit| unit.weighs[1])
        .need(
            Need::keyed(key, |unit: &Extreme| (unit.needs[1] % 3).to_string())
                .amount_with(|unit: &Extreme| unit.needs[1]),
        )
        .to(done);
    let count = units.len() as u64;
    let service = flow.build(first).unwrap().start();
    let control = service.control();
    let tickets: Vec<_> = units.iter().map(|unit| service.submit(unit.clone()).unwrap()).collect();
    for (unit, ticket) in units.iter().zip(tickets) {
        let absurd = [unit.weighs[0], unit.weighs[1], unit.grows_to, unit.needs[0], unit.needs[1]];
        let is_absurd = absurd.iter().any(|&number| number > MAX_AMOUNT);
        match ticket.wait() {
            Ok(()) => assert!(!is_absurd, "{unit:?} went through"),
            Err(Unfinished::Dead(letter)) => {
                assert!(is_absurd, "{unit:?}: {letter}");
                assert!(letter.message.contains("at most 281474976710656 are possible"), "{letter}");
            }
            Err(other) => panic!("{other}"),
        }
    }
    // A ticket has its result shortly before its unit leaves.
    let idle = std::iter::repeat_with(|| control.snapshot()).find(|snapshot| snapshot.in_flight == 0).unwrap();
    assert_eq!(idle.bytes_in_flight, 0);
    assert!(idle.resources.iter().all(|resource| resource.in_use == 0), "{:?}", idle.resources);
    let report = service.drain();
    assert_eq!((report.admitted, report.left), (count, 0));
}

#[test]
fn an_idle_flow_has_nothing_in_use() {
    in_time(|| {
        let units = prop::collection::vec(unit(), 1..24);
        let caps = (extreme(), extreme(), 1..8_u64, any::<bool>());
        let mut runner = TestRunner::new(cases(48));
        let outcome = runner.run(&(units, caps), |(units, (memory, capacity, inflight, idempotent))| {
            run(&units, memory.max(1), capacity.max(1), inflight, idempotent);
            Ok(())
        });
        outcome.unwrap_or_else(|failed| panic!("{failed}"));
    });
}

#[test]
fn two_needs_are_summed_without_wrapping() {
    let mut flow = Flow::builder::<()>("sum");
    let token = flow.tokens("token", 4);
    let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
    flow.stage(work, |_: &mut u64, _| Ok(()))
        .need(Need::tokens(token, 1 << 63))
        .need(Need::tokens(token, 1 << 63))
        .to(done);
    let (stage, resource) = ("work".to_owned(), "token".to_owned());
    let expected = BuildError::NeedTooLarge { stage, resource, amount: u64::MAX, capacity: 4 };
    assert_eq!(flow.build(work).unwrap_err(), expected);
}

#[test]
fn a_bound_may_exceed_every_possible_value() {
    const HUGE: u64 = 1 << 62;
    in_time(|| {
        let mut flow = Flow::builder::<i32>("huge");
        flow.memory(HUGE);
        let (token, key) = (flow.tokens("token", HUGE), flow.keyed_tokens("key", HUGE));
        flow.max_keys(key, HUGE as usize);
        let rate = flow.rate("rate", Rate::per_second(1e300).burst(HUGE));
        let pool = flow.pool_with("pool", HUGE, || 7);
        let (first, second, done) = (flow.inlet::<u64>("first"), flow.inlet::<u64>("second"), flow.retire());
        flow.stage(first, |n: &mut u64, _| Ok(*n)).queue(HUGE).need(Need::tokens(token, HUGE)).to(second);
        let object = Need::object(&pool);
        flow.stage(second, move |_: &mut u64, cx| Ok(*cx.object(&pool)))
            .queue(u64::MAX)
            .need(Need::tokens(rate, HUGE))
            .need(Need::keyed(key, |n: &u64| n.to_string()).amount(HUGE))
            .need(object)
            .batch(Batch::of(64).wait(Duration::from_millis(1)))
            .to(done);
        let report = flow.build(first).unwrap().run(0..100);
        assert_eq!(report.retired, 100, "{:?}", report.dead_letters);
    });
    for inflight in [HUGE, u64::MAX] {
        let mut flow = Flow::builder::<()>("inflight");
        let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
        flow.inflight(inflight).stage(work, |_: &mut u64, _| Ok(())).to(done);
        assert!(matches!(flow.build(work), Err(BuildError::TooMany { what: "units in flight", .. })));
    }
}

#[test]
fn a_delay_beyond_the_clock_never_ends() {
    in_time(|| {
        let mut flow = Flow::builder::<()>("never");
        let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
        flow.stage(work, |_: &mut u64, _| Ok(())).to(done);
        let service = flow.build(work).unwrap().start();
        // The delay is longer than the flow's clock can count in nanoseconds.
        let centuries = Duration::from_secs(600 * 365 * 24 * 3600);
        let Some(at) = Instant::now().checked_add(centuries) else { return };
        let _never = service.submit_at(1, at).unwrap();
        service.submit(2).unwrap().wait().unwrap();
        assert_eq!(service.control().snapshot().delayed, 1);
        service.control().abandon();
        assert_eq!(service.drain().left, 1);
    });
}
