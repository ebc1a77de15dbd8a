//! Payloads that grow in batches: the bytes that a batch reserves in advance stay within the cap and are released.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millstream_flow::{Batch, Flow};
use millstream_verify_random::Random;

/// The bytes that the units of a flow have reserved and not released, as the test counts them.
#[derive(Default)]
struct Held {
    now: AtomicU64,
    most: AtomicU64,
}

impl Held {
    fn add(&self, bytes: u64) {
        let now = self.now.fetch_add(bytes, Ordering::SeqCst) + bytes;
        self.most.fetch_max(now, Ordering::SeqCst);
    }
}

/// A payload that is counted until it is dropped.
struct Body {
    grows: u64,
    bytes: u64,
    held: Arc<Held>,
}

impl Drop for Body {
    fn drop(&mut self) {
        self.held.now.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

#[test]
fn batches_that_grow_keep_the_cap_and_release_every_byte() {
    let mut random = Random::seeded();
    for _ in 0..20 {
        let (cap, batch) = (2_000 + random.below(200_000), 1 + random.below(64) as usize);
        let most_growth = 1 + random.below(900);
        let mut flow = Flow::builder::<()>("grow");
        flow.memory(cap).inflight(1 + random.below(500)).workers(1 + random.below(4) as usize);
        let held = Arc::new(Held::default());
        let (grow, shrink, done) = (flow.inlet::<Body>("grow"), flow.inlet::<Body>("shrink"), flow.retire());
        flow.update(grow, |body: &mut Body, cx| {
            cx.reserve(body.grows)?;
            body.bytes = body.grows;
            body.held.add(body.bytes);
            Ok(())
        })
        .bytes(|body: &Body| body.bytes)
        .idempotent()
        .batch(Batch::of(batch))
        .to(shrink);
        flow.stage(shrink, |body: &mut Body, cx| {
            // The unit grows a second time, in a later stage of the same batch.
            cx.reserve_first(body.bytes + 7)
        })
        .bytes(|body: &Body| body.bytes)
        .batch(Batch::of(batch))
        .to(done);
        let units = (0..3000).map({
            let (held, mut random) = (held.clone(), Random::new(random.below(u64::MAX)));
            move |_| Body { grows: random.below(most_growth), bytes: 0, held: held.clone() }
        });
        let report = flow.build(grow).unwrap().run(units);
        assert_eq!((report.retired, report.dead_lettered, report.left), (3000, 0, 0));
        let most = held.most.load(Ordering::SeqCst);
        // If the units that wait for bytes hold the whole budget, no unit can move. Then one unit continues beyond
        // the budget, and leaves the flow before the next unit may do so.
        let most_beyond = cap + most_growth + 7;
        assert!(most <= most_beyond && report.peak_bytes_in_flight <= most_beyond, "{most} of {cap}: {report:?}");
        assert_eq!(held.now.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn nothing_is_in_flight_when_batches_that_grew_have_left() {
    let mut flow = Flow::builder::<()>("service");
    flow.memory(1 << 20);
    let (grow, done) = (flow.inlet::<u64>("grow"), flow.retire());
    flow.stage(grow, |bytes: &mut u64, cx| cx.reserve(*bytes)).batch(Batch::of(32)).to(done);
    let flow = flow.build(grow).unwrap();
    let control = flow.control();
    let report = flow.run((0..10_000).map(|n| n % 300));
    assert_eq!(report.retired, 10_000);
    assert_eq!(control.snapshot().bytes_in_flight, 0);
}

#[test]
fn one_unit_at_a_time_goes_on_beyond_the_budget_through_all_its_stages() {
    let mut flow = Flow::builder::<()>("beyond");
    flow.memory(5 * 900 + 3).workers(1);
    let (grow, again, done) = (flow.inlet::<()>("grow"), flow.inlet::<()>("again"), flow.retire());
    // Five of the ten units grow by 900 bytes. Then only three bytes are free, but each of these five units needs seven
    // more, and the other five units are ahead of them in line.
    flow.stage(grow, |(): &mut (), cx| cx.reserve_first(900)).batch(Batch::of(10)).to(again);
    flow.stage(again, |(): &mut (), cx| cx.reserve_first(907)).batch(Batch::of(1)).to(done);
    let report = flow.build(grow).unwrap().run([(); 10]);
    assert_eq!((report.retired, report.left), (10, 0));
    assert!(report.peak_bytes_in_flight <= 5 * 900 + 907, "{} bytes", report.peak_bytes_in_flight);
}
