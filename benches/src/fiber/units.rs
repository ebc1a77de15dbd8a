//! Units of the engine that wait for a fiber.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use millstream_fiber::sync::Event;
use millstream_flow::Flow;

use super::alone::memory;
use super::row::WAITING;
use crate::error::Error;

/// The memory of the process per unit, for `count` units: [`WAITING`] of them wait in a fiber, and the others wait for
/// a fiber.
pub(super) fn run(count: u64) -> Result<f64, Error> {
    let (release, started) = (Arc::new(Event::new()), Arc::new(AtomicUsize::new(0)));
    let mut flow = Flow::builder::<()>("units");
    flow.inflight(count);
    let (wait, done) = (flow.inlet::<u64>("wait"), flow.retire());
    let (theirs, count_start) = (Arc::clone(&release), Arc::clone(&started));
    let work = move |_: &mut u64, _: &mut millstream_flow::Cx<'_>| {
        count_start.fetch_add(1, Relaxed);
        theirs.wait();
        Ok(())
    };
    flow.stage(wait, work).fibers(WAITING).to(done);
    let service = flow.build(wait).map_err(Error::refused)?.start();
    for unit in 0..count {
        service.send(unit).map_err(|error| Error::new(format!("a unit was not admitted: {error}")))?;
    }
    while started.load(Relaxed) < WAITING.min(count as usize) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let figure = memory() / count as f64;
    release.set();
    let retired = service.drain().retired;
    if retired == count { Ok(figure) } else { Err(Error::new(format!("{retired} of {count} units have retired"))) }
}
