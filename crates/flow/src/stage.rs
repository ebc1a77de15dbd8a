//! A stage's code.

use crate::cx::Cx;
use crate::failure::Failure;

/// The code of a stage that takes `In`, for stages that need more than a closure.
///
/// All workers share the value, so its methods take `&self`, and its own state needs atomics or locks. The engine keeps
/// the input until the unit leaves the stage, because a retry needs it and a dead letter contains it. So the code gets
/// the input as a `&mut` reference. Take parts out of the input (`std::mem::take`) only after the last step that can
/// fail.
///
/// ```
/// use millstream_flow::{Cx, Failure, Flow, Stage};
///
/// struct Scale(f64);
///
/// impl Stage<f64> for Scale {
///     type Out = f64;
///     fn run(&self, input: &mut f64, _: &mut Cx<'_>) -> Result<f64, Failure> {
///         if input.is_finite() { Ok(*input * self.0) } else { Err(Failure::permanent("not a number")) }
///     }
/// }
///
/// let mut flow = Flow::builder("scale");
/// let (scale, done) = (flow.inlet("scale"), flow.retire());
/// flow.stage_of(scale, Scale(2.0)).to(done);
/// let report = flow.build(scale)?.run([1.0, f64::NAN, 3.0]);
/// assert_eq!((report.retired, report.dead_lettered), (2, 1));
/// # Ok::<(), millstream_flow::BuildError>(())
/// ```
pub trait Stage<In>: Send + Sync + 'static {
    /// The type of the results.
    type Out: Send + 'static;

    /// Processes one unit.
    ///
    /// # Errors
    /// Any failure of this unit; the stage's policy decides what follows. A panic is a failure of the unit, too.
    fn run(&self, input: &mut In, cx: &mut Cx<'_>) -> Result<Self::Out, Failure>;

    /// Called on the worker after the last unit of each batch.
    fn batch_done(&self) {}
}

/// A closure as a stage.
pub(crate) struct FnStage<F>(pub(crate) F);

impl<In, Out, F> Stage<In> for FnStage<F>
where
    Out: Send + 'static,
    F: Fn(&mut In, &mut Cx<'_>) -> Result<Out, Failure> + Send + Sync + 'static,
{
    type Out = Out;

    #[inline]
    fn run(&self, input: &mut In, cx: &mut Cx<'_>) -> Result<Out, Failure> {
        (self.0)(input, cx)
    }
}
