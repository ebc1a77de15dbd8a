//! A stage that runs any closure, so that ops get the engine's own context.

use std::sync::OnceLock;
use std::sync::mpsc::channel;

use millstream_flow::{Cx, Flow, Service};

/// The number of bytes that ops may reserve.
const MEMORY: u64 = 64 << 20;

type Once = Box<dyn FnOnce(&mut Cx<'_>) + Send>;

struct Work(Option<Once>);

/// Runs `work` in a stage of a flow that is started once for the whole process.
///
/// # Panics
/// `work` panics.
pub(super) fn in_stage<T: Send + 'static>(work: impl FnOnce(&mut Cx<'_>) -> T + Send + 'static) -> T {
    static FLOW: OnceLock<Service<Work, Work>> = OnceLock::new();
    let flow = FLOW.get_or_init(|| {
        let mut flow = Flow::builder("any work");
        flow.workers(1).memory(MEMORY);
        let (stage, done) = (flow.inlet("work"), flow.retire());
        flow.update(stage, |work: &mut Work, cx: &mut Cx<'_>| {
            let work = work.0.take().expect("work is done once");
            work(cx);
            Ok(())
        })
        .to(done);
        flow.build(stage).expect("one stage without needs is a flow").start()
    });
    let (tell, told) = channel();
    let ticket = flow.submit(Work(Some(Box::new(move |cx| drop(tell.send(work(cx)))))));
    if let Err(unfinished) = ticket.expect("the flow stays open").wait() {
        panic!("{unfinished}");
    }
    told.recv().expect("finished work has sent its result")
}
