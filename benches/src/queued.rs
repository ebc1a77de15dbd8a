//! Does a unit cost more while many others wait?
//!
//! Two measurements, each with a thousand and with a million units waiting:
//!
//! - *released*: all units wait at a closed gate; the gate opens, and they drain through four no-op stages. Each unit
//!   passes the stages several times, so that both populations make the same number of passes.
//! - *parked*: all units wait for a busy key, and remain there while other units pass them.
//!
//! A scheduler that examines every waiting unit has a ratio far above one. A part of the ratio is due to the memory
//! hierarchy: the state of a thousand units fits into a core's cache.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use millstream_flow::{Batch, Either, Flow, Need, Service};

use crate::args::Args;
use crate::compare::{Competitor, Role, alternate};
use crate::error::Error;
use crate::noop::nothing;

const BATCH: usize = 64;
const FEW: u64 = 1_000;
const MANY: u64 = 1_000_000;
/// The number of passes through the four stages in *released*: fifty passes for each of a million units. A unit passes
/// the gate and retires only once, which costs some 50 ns and is not of interest here. With fifty passes per unit,
/// these 50 ns are a nanosecond per pass; with fewer units, they are even less.
const RELEASED_PASSES: u64 = 50_000_000;
/// The number of units that pass the others in *parked*.
const PARKED_PASSES: u64 = 2_000_000;
/// The tokens of a key in *parked*. They also limit the number of units that pass the parked units at a time.
const KEY_TOKENS: u64 = 4096;
/// The time within which all units must be queued; otherwise the run fails.
const QUEUED_WITHIN: Duration = Duration::from_secs(120);

/// Measures with few and with many units waiting and prints the ratio.
///
/// # Errors
/// Fails when the engine refuses the flow or loses a unit.
pub fn run(args: &Args) -> Result<(), Error> {
    let (many, released_passes, parked_passes) =
        if args.quick { (10_000, 20_000, 20_000) } else { (MANY, RELEASED_PASSES, PARKED_PASSES) };
    measure("released: units drain when a gate opens", args, many, |waiting| released(waiting, released_passes))?;
    measure("parked: units wait for a busy key while others pass", args, many, |waiting| parked(waiting, parked_passes))
}

fn measure(
    title: &str,
    args: &Args,
    many: u64,
    pass_ns: impl Fn(u64) -> Result<f64, Error> + Copy,
) -> Result<(), Error> {
    println!("## queued, {title}\n");
    let competitors = vec![
        Competitor::new(format!("{many} waiting"), Role::Ours, move || pass_ns(many)),
        Competitor::new(format!("{FEW} waiting"), Role::Peer, move || pass_ns(FEW)),
    ];
    println!("{}\n", alternate("ns per unit", 1, args.rounds, competitors)?.render());
    Ok(())
}

/// The units of this module's flows.
enum Unit {
    /// Holds the tokens of the gate or of the busy key until the plug is pulled.
    Plug,
    /// Waits for the tokens that the plug holds.
    Waiting,
    /// Passes the waiting units.
    Passing,
}

/// Nanoseconds per pass when `waiting` units are released together and make `passes` passes in total.
fn released(waiting: u64, passes: u64) -> Result<f64, Error> {
    struct Lap {
        unit: Unit,
        left: u64,
    }
    let laps = passes.div_ceil(waiting);
    let plug = Arc::new(Plug::default());
    let mut b = Flow::builder::<()>("released");
    b.inflight(waiting + 1);
    let gate = b.tokens("gate", 1);
    let enter = b.inlet::<Lap>("enter");
    let inlets = ["one", "two", "three", "four"].map(|name| b.inlet::<Lap>(name));
    let [one, two, three, four] = inlets;
    let done = b.retire();
    let own_plug = Arc::clone(&plug);
    b.update(enter, move |lap: &mut Lap, _| {
        if matches!(lap.unit, Unit::Plug) {
            own_plug.hold();
        }
        Ok(())
    })
    .need(Need::tokens(gate, 1))
    .batch(Batch::of(BATCH))
    .to(one);
    for (from, to) in [(one, two), (two, three), (three, four)] {
        b.update(from, |lap: &mut Lap, _| {
            lap.left = nothing(lap.left);
            Ok(())
        })
        .batch(Batch::of(BATCH))
        .to(to);
    }
    b.stage(four, |lap: &mut Lap, _| {
        let left = nothing(lap.left) - 1;
        let unit = std::mem::replace(&mut lap.unit, Unit::Passing);
        Ok(if left > 0 { Either::Left(Lap { unit, left }) } else { Either::Right(()) })
    })
    .batch(Batch::of(BATCH))
    .to((one, done));
    let flow = b.build(enter).map_err(Error::refused)?;

    let control = flow.control();
    let service = flow.start();
    send(&service, Lap { unit: Unit::Plug, left: 1 })?;
    plug.wait_until_held();
    for _ in 0..waiting {
        send(&service, Lap { unit: Unit::Waiting, left: laps })?;
    }
    wait_until_queued(&service, waiting)?;
    let began = Instant::now();
    control.set_capacity("gate", waiting + 1).map_err(Error::refused)?;
    plug.pull();
    let report = service.drain();
    let nanoseconds = began.elapsed().as_nanos() as f64;
    expect_retired(report.retired, waiting + 1)?;
    Ok(nanoseconds / (waiting * laps) as f64)
}

/// Nanoseconds per passing unit while `waiting` others wait for a busy key.
fn parked(waiting: u64, passes: u64) -> Result<f64, Error> {
    let plug = Arc::new(Plug::default());
    let passed = Arc::new(AtomicU64::new(0));
    let mut b = Flow::builder::<()>("parked");
    b.inflight(waiting + 1 + KEY_TOKENS);
    let key = b.keyed_tokens("key", KEY_TOKENS);
    let enter = b.inlet::<Unit>("enter");
    let [one, two, three] = ["one", "two", "three"].map(|name| b.inlet::<Unit>(name));
    let done = b.retire();
    let need = Need::keyed(key, |unit: &Unit| if matches!(unit, Unit::Passing) { "free" } else { "busy" }.to_owned());
    let own_plug = Arc::clone(&plug);
    b.update(enter, move |unit: &mut Unit, _| {
        if matches!(unit, Unit::Plug) {
            own_plug.hold();
        }
        Ok(())
    })
    .need(need.amount_with(|unit| if matches!(unit, Unit::Plug) { KEY_TOKENS } else { 1 }))
    .batch(Batch::of(BATCH))
    .to(one);
    for (from, to) in [(one, two), (two, three)] {
        b.update(from, |_: &mut Unit, _| Ok(())).batch(Batch::of(BATCH)).to(to);
    }
    let own_passed = Arc::clone(&passed);
    b.stage(three, move |unit: &mut Unit, _| {
        if matches!(unit, Unit::Passing) {
            // Relaxed: only the count itself is read, and no other data depends on it.
            own_passed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    })
    .batch(Batch::of(BATCH))
    .to(done);
    let flow = b.build(enter).map_err(Error::refused)?;

    let service = flow.start();
    send(&service, Unit::Plug)?;
    plug.wait_until_held();
    for _ in 0..waiting {
        send(&service, Unit::Waiting)?;
    }
    wait_until_queued(&service, waiting)?;
    let began = Instant::now();
    for _ in 0..passes {
        send(&service, Unit::Passing)?;
    }
    while passed.load(Ordering::Relaxed) < passes {
        std::thread::yield_now();
    }
    let nanoseconds = began.elapsed().as_nanos() as f64;
    plug.pull();
    expect_retired(service.drain().retired, 1 + waiting + passes)?;
    Ok(nanoseconds / passes as f64)
}

fn send<T: Send + 'static>(service: &Service<T, ()>, unit: T) -> Result<(), Error> {
    service.send(unit).map_err(|error| Error::new(format!("a unit was not admitted: {error}")))
}

/// Waits until `waiting` units are in the first stage's queue.
fn wait_until_queued<T: Send + 'static>(service: &Service<T, ()>, waiting: u64) -> Result<(), Error> {
    let control = service.control();
    let began = Instant::now();
    loop {
        let queued = control.snapshot().stages[0].waiting;
        if queued >= waiting {
            return Ok(());
        }
        if began.elapsed() > QUEUED_WITHIN {
            return Err(Error::new(format!("only {queued} of {waiting} units are queued after {QUEUED_WITHIN:?}")));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn expect_retired(retired: u64, expected: u64) -> Result<(), Error> {
    if retired == expected {
        Ok(())
    } else {
        Err(Error::new(format!("{expected} units should have retired, {retired} did")))
    }
}

/// Blocks a worker in a stage, which holds the tokens of its unit, until the plug is pulled.
#[derive(Default)]
struct Plug {
    state: Mutex<PlugState>,
    changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum PlugState {
    #[default]
    OnItsWay,
    Held,
    Pulled,
}

impl Plug {
    /// Blocks the calling worker until [`Plug::pull`].
    fn hold(&self) {
        self.set(PlugState::Held);
        self.wait_for(PlugState::Pulled);
    }

    fn wait_until_held(&self) {
        self.wait_for(PlugState::Held);
    }

    fn pull(&self) {
        self.set(PlugState::Pulled);
    }

    fn set(&self, state: PlugState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.changed.notify_all();
    }

    fn wait_for(&self, state: PlugState) {
        let guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(guard, |now| *now != state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_retires_whether_released_or_parked() {
        for waiting in [1, 100, 3000] {
            assert!(released(waiting, 5000).unwrap() > 0.0);
            assert!(parked(waiting, 5000).unwrap() > 0.0);
        }
    }
}
