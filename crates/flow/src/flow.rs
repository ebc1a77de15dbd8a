//! A built flow, which runs either a source or a service.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use crate::control::Control;
use crate::engine::intake::gate::TypedGate;
use crate::engine::intake::source::{Source, SourceEnd, TypedSource};
use crate::engine::threads::shared::Shared;
use crate::engine::threads::spawn;
use crate::failure::DeadLetter;
use crate::plan::Plan;
use crate::policy::Overload;
use crate::report::Report;
use crate::service::{Service, Submitter};
use crate::ticket::Sink;

/// A flow that has passed its checks. Units of type `In` enter it, and results of type `R` leave it.
///
/// [`run`](Flow::run) processes all units of a source; [`start`](Flow::start) turns the flow into a service.
pub struct Flow<In, R> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) gate: Arc<TypedGate<In>>,
    pub(crate) sink: Arc<Sink<R>>,
    pub(crate) kept: Arc<Mutex<Vec<DeadLetter>>>,
    pub(crate) plan: Plan,
    #[cfg(feature = "trace")]
    pub(crate) built: Arc<crate::trace::present::Built>,
    #[cfg(feature = "trace")]
    pub(crate) tape: std::sync::OnceLock<Arc<crate::trace::tape::Tape>>,
}

impl<In, R> fmt::Debug for Flow<In, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl<In: Send + 'static, R: Send + 'static> Flow<In, R> {
    /// The results of the static checks.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// A handle for inspecting and steering the flow, before, while and after it runs.
    pub fn control(&self) -> Control {
        Control { shared: self.shared.clone() }
    }

    /// Processes every unit of `source`, and returns when the last one has left.
    ///
    /// The source runs on the flow's workers, one at a time, and the flow takes units from it only when there is room
    /// for them. (If a source must stay on the calling thread, start a service and use
    /// [`send_all`](crate::Submitter::send_all).)
    ///
    /// # Panics
    /// - Panics if the source panics. The flow is then abandoned.
    /// - Panics if the system refuses to start the first thread for ten seconds. The flow has then taken nothing from
    ///   the source.
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
    pub fn run(self, source: impl IntoIterator<Item = In, IntoIter: Send>) -> Report {
        let shared = self.shared.clone();
        let source = self.typed(source.into_iter());
        let service = self.start();
        let (tell, ended) = channel();
        // SAFETY: dropping `detach`, even in a panic, first waits for the worker that pulls the source, and then takes
        // the source out of the flow. This happens before the function returns, and no copy of the source exists. So
        // the flow never uses the source beyond the lifetime that is erased here.
        let source = unsafe { std::mem::transmute::<Box<dyn Source + '_>, Box<dyn Source + 'static>>(source) };
        let detach = Detach(&shared);
        shared.attach(source, move |end| drop(tell.send(end)));
        let end = ended.recv();
        let report = service.drain();
        drop(detach);
        // The source may have panicked after the listener was told that the source had ended in another way. So this
        // also checks whether the flow has recorded a panic.
        match (end, shared.source().take_panic()) {
            (Ok(SourceEnd::Panicked(panic)), _) | (_, Some(panic)) => resume_unwind(panic),
            // The other ends need no handling here: the report tells whether admission closed early.
            _ => report,
        }
    }

    /// Sets the source of a flow in simulated time, before the flow runs.
    #[cfg(feature = "trace")]
    pub(crate) fn give_source(&self, source: impl Iterator<Item = In> + Send + 'static) {
        self.shared.source().put(self.typed(source), Box::new(drop));
    }

    fn typed<'a>(&self, units: impl Iterator<Item = In> + Send + 'a) -> Box<dyn Source + 'a> {
        let site = self.shared.site();
        let (records, stamps) = (site.records().clone(), site.stamps().clone());
        Box::new(TypedSource::new(units, self.gate.entry().clone(), records, stamps))
    }

    /// Turns the flow into a service that also has a source. The flow's workers pull units from it whenever there is
    /// room.
    ///
    /// The engine calls `ended` once, on any thread, when no more units will come from the source: it is exhausted, the
    /// flow was closed, or the source panicked, which abandons the flow. The function should be quick. If it panics,
    /// the panic is printed and has no other effect.
    ///
    /// Draining the service also closes the source, so first wait for the source's end if the flow must admit all its
    /// units. The flow admits every unit that the source has returned. The drain does not wait for a source that has
    /// blocked for a tenth of a second, and drops the units that this source returns later.
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use millstream_flow::{Flow, SourceEnd};
    ///
    /// let mut flow = Flow::builder("double");
    /// let (double, done) = (flow.inlet("double"), flow.retire());
    /// flow.stage(double, |n: &mut u64, _| Ok(*n * 2)).to(done);
    /// let (tell, ended) = channel();
    /// let service = flow.build(double)?.start_from(0..1000, move |end| tell.send(end).unwrap());
    /// assert!(matches!(ended.recv(), Ok(SourceEnd::Exhausted)));
    /// assert_eq!(service.drain().retired, 1000);
    /// # Ok::<(), millstream_flow::BuildError>(())
    /// ```
    pub fn start_from(
        self,
        source: impl IntoIterator<Item = In, IntoIter: Send + 'static>,
        ended: impl FnOnce(SourceEnd) + Send + 'static,
    ) -> Service<In, R> {
        let shared = self.shared.clone();
        let source = self.typed(source.into_iter());
        let service = self.start();
        shared.attach(source, ended);
        service
    }

    /// Turns the flow into a service to which any thread can submit units. When the flow is full, `submit` waits.
    ///
    /// # Panics
    /// Panics if the system refuses to start the first thread for ten seconds. If the system refuses a later thread,
    /// units wait until that thread can start.
    pub fn start(self) -> Service<In, R> {
        self.start_with(Overload::Wait)
    }

    /// Turns the flow into a service, with a policy for `submit` when the flow is full.
    pub fn start_with(self, overload: Overload) -> Service<In, R> {
        spawn::open(&self.shared);
        let Flow { shared, gate, sink, kept, .. } = self;
        Service::new(Submitter::new(shared, gate, sink, overload), kept)
    }
}

/// Takes the source out of a flow when dropped, however the run ends.
struct Detach<'a>(&'a Shared);

impl Drop for Detach<'_> {
    fn drop(&mut self) {
        self.0.source().detach();
    }
}
