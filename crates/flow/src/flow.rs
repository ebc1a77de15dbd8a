//! A built flow, and the two ways to drive it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::builder::FlowBuilder;
use crate::control::Control;
use crate::engine::{Shared, TicketBook, TypedGate};
use crate::failure::DeadLetter;
use crate::plan::Plan;
use crate::policy::Overload;
use crate::report::Report;
use crate::service::{Service, Submitter};
use crate::ticket::Sink;

/// How long an abandoned flow waits for running code to notice before it is left behind.
const GRACE: Duration = Duration::from_secs(1);

/// A checked flow: units of type `In` enter, results of type `R` leave.
///
/// [`run`](Flow::run) drives it to the end of a source; [`start`](Flow::start) makes it a service.
pub struct Flow<In, R> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) gate: Arc<TypedGate<In>>,
    pub(crate) sink: Arc<Sink<R>>,
    pub(crate) kept: Arc<Mutex<Vec<DeadLetter>>>,
    pub(crate) plan: Plan,
}

impl<In, R> fmt::Debug for Flow<In, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl Flow<(), ()> {
    /// Begins a flow whose retired units yield `R`.
    pub fn builder<R: Send + 'static>(name: impl Into<String>) -> FlowBuilder<R> {
        FlowBuilder::new(name.into())
    }
}

impl<In: Send + 'static, R: Send + 'static> Flow<In, R> {
    /// What the static checks proved.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// A handle to look into the flow and to steer it, before, while and after it runs.
    pub fn control(&self) -> Control {
        Control { shared: self.shared.clone() }
    }

    /// Runs every unit of `source`, and returns when the last one has left.
    ///
    /// The source runs on the calling thread and is asked for the next unit only when the flow admits one
    /// (a few may be taken ahead while workers are busy).
    ///
    /// # Panics
    /// If the source panics: the flow is abandoned first.
    ///
    /// ```
    /// use millstream_flow::Flow;
    ///
    /// let mut flow = Flow::builder("double");
    /// let (double, done) = (flow.inlet("double"), flow.retire());
    /// flow.stage(double, |n: &mut u64, _| Ok(*n * 2)).to(done);
    /// let report = flow.build(double)?.run(0..1000);
    /// assert_eq!(report.retired, 1000);
    /// # Ok::<(), millstream_flow::BuildError>(())
    /// ```
    pub fn run(self, source: impl IntoIterator<Item = In>) -> Report {
        let service = self.start();
        // If admission closes early, the report says so.
        let _ = service.send_all(source);
        service.drain()
    }

    /// Makes the flow a service that takes units from any thread, and waits when it is full.
    pub fn start(self) -> Service<In, R> {
        self.start_with(Overload::Wait)
    }

    /// The same with another policy for `submit` when the flow is full.
    pub fn start_with(self, overload: Overload) -> Service<In, R> {
        self.shared.open();
        let Flow { shared, gate, sink, kept, .. } = self;
        Service::new(Submitter::new(shared, gate, sink, overload), kept)
    }
}

/// Ends a flow's threads and says what it did.
pub(crate) fn finish(shared: &Arc<Shared>, tickets: &dyn TicketBook, kept: &Mutex<Vec<DeadLetter>>) -> Report {
    for mut row in shared.finish(GRACE) {
        tickets.abandoned(&mut row);
    }
    let mut report = shared.report();
    report.dead_letters = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
    report
}
