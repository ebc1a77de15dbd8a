//! The stages of a check: validate, partition, [decide], [explain].

mod decide;
mod explain;

use thiserror::Error;

use crate::budget::{Budget, Exhausted, Options, thread_time};
use crate::history::History;
use crate::model::{Kind, Model};
use crate::part::Part;
use crate::spec::{self, Call, Misuse, Object, Spec, Subject};
use crate::split::Split;
use crate::verdict::{Progress, Verdict};

use decide::{Deciding, returned};
use explain::Explaining;

/// An operation that the specification does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("operation {row}: {misuse}")]
#[non_exhaustive]
pub struct CheckError {
    /// The row of the operation.
    pub row: u32,
    /// The reason why the specification rejects the operation.
    #[source]
    pub misuse: Misuse,
}

/// Decides whether the history is linearizable: whether the model permits an order in which each operation takes effect
/// at one moment between its call and its return.
///
/// For some kinds of objects, a near-linear procedure decides histories of distinct values (see [the
/// crate](crate#how-long-does-it-take)). The general search decides all other histories, in exponential time in the
/// worst case. `options` sets the limits.
///
/// # Errors
/// If the history has an operation, input or output that the model does not permit.
///
/// ```
/// use millstream_history::{Builder, Kind, Op, Operation, Options, Value, check};
///
/// let mut builder = Builder::new();
/// let enqueue = Operation::new(0, Op::ENQUEUE, Value::int(1));
/// let dequeue = Operation::new(1, Op::DEQUEUE, Value::NULL);
/// builder.push(Operation { call: 0, ret: Some(10), ..enqueue })?;
/// builder.push(Operation { call: 20, ret: Some(30), output: Value::NULL, ..dequeue })?;
/// let history = builder.finish()?;
/// let verdict = check(&history, &Kind::Queue.into(), &Options::default())?;
/// assert_eq!(verdict.holds(), Some(false), "it found the queue empty while a value was in it");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn check(history: &History, model: &Model, options: &Options) -> Result<Verdict, CheckError> {
    validate(history, model.kind)?;
    Ok(run(&Part::whole(history), Subject::Model(model), |call| [call.key, None], options))
}

/// Decides whether the history is linearizable by a custom specification: see [`spec`](crate::spec).
pub fn check_spec<S: Spec>(history: &History, spec: &S, options: &Options) -> Verdict {
    // The history is not split by keys here: the specification alone defines which operations belong to one object.
    run(&Part::whole(history), Subject::Own(spec), |_| [None, None], options)
}

/// Decides each key of the part `whole`, and explains a failure.
pub(crate) fn run(
    whole: &Part<'_>,
    subject: Subject<'_>,
    key: impl Fn(&Call<'_>) -> Object,
    options: &Options,
) -> Verdict {
    let began = thread_time();
    let mut budget = Budget::new(options);
    let keys = match Split::new(whole, key, &mut budget) {
        Ok(keys) => keys,
        Err(Exhausted(limit)) => {
            return Verdict::Unknown(Progress { limit, decided: 0, total: returned(whole), configurations: 0 });
        }
    };
    let mut deciding = Deciding::new(whole, subject, &keys, budget.lend());
    let Some(found) = deciding.next_failure() else { return deciding.verdict() };
    let budget = budget.for_explaining(options, began);
    let explaining = Explaining { whole, subject, keys: &keys, budget };
    Verdict::Fails(match options.explain {
        true => explaining.earliest(found, deciding),
        false => explaining.as_it_is(found),
    })
}

/// Checks that the kind has all operations of the history.
pub(crate) fn validate(history: &History, kind: Kind) -> Result<(), CheckError> {
    for row in 0..history.len() {
        let operation = history.get(row);
        spec::accept(kind, &operation, history.op_name(operation.op), history.values())
            .map_err(|misuse| CheckError { row: row as u32, misuse })?;
    }
    Ok(())
}
