//! Conditions weaker and stronger than linearizability, for a comparison on the same history.
//!
//! - A history is *sequential* if no operation is called before the previous one returned: nothing can be reordered.
//! - It is *linearizable* if its operations have an order that respects time: an operation that returned before another
//!   was called comes before it.
//! - It is *sequentially consistent* if they have an order that respects each process's own order.
//!
//! Every correct sequential history is linearizable, and every linearizable one is sequentially consistent; neither
//! converse is true. The second implication has an exception: two operations of one process where one returns at the
//! time at which the next is called. Linearizability considers only times, and permits both orders of the two.
//! Sequential consistency permits only the order of the process. A history of several objects is linearizable if and
//! only if each object's part is, so each object is checked alone. Sequential consistency does not compose: the
//! histories of two queues can each be sequentially consistent while the history of both is not. So all objects are
//! searched together.

use std::collections::HashMap;

use crate::budget::{Budget, Exhausted, Options, thread_time};
use crate::check::{CheckError, validate};
use crate::explain::reduce;
use crate::history::{History, PENDING};
use crate::model::Model;
use crate::part::Part;
use crate::search::{Outcome, Reach, decide_by_process};
use crate::spec::{DynSpec, with_spec};
use crate::verdict::{Counterexample, Progress, Verdict, Witness};

/// Checks that each operation returned before the next was called.
///
/// If one operation returns at the time at which another is called (within the accuracy of the clocks), the two
/// overlap, unless they belong to one process.
///
/// # Errors
/// The first two rows that overlap.
///
/// ```
/// use millstream_history::consistency::sequential;
/// use millstream_history::format::{Format, read};
///
/// let overlapping = "{\"process\":0,\"op\":\"alloc\",\"out\":1,\"call\":0,\"return\":5}\n\
///                    {\"process\":1,\"op\":\"alloc\",\"out\":2,\"call\":3,\"return\":8}\n";
/// assert_eq!(sequential(&read(overlapping.as_bytes(), Format::Json, None)?), Err((0, 1)));
/// # Ok::<(), millstream_history::format::FormatError>(())
/// ```
pub fn sequential(history: &History) -> Result<(), (u32, u32)> {
    let overlap = (1..history.len()).find(|&row| {
        let of_one = history.process(row - 1) == history.process(row);
        match history.returned_at(row - 1) {
            Some(returned) if of_one => returned > history.call(row),
            Some(returned) => returned.saturating_add(history.skew()) >= history.call(row),
            None => true,
        }
    });
    overlap.map_or(Ok(()), |row| Err((row as u32 - 1, row as u32)))
}

/// Decides whether the history is sequentially consistent: whether the model permits an order in which each process's
/// operations come in the order of their calls.
///
/// A pending operation comes after its process's earlier operations, if it takes effect at all. The problem is
/// NP-complete, and no shortcut is known: the time is exponential in the worst case, within the limits of `options`.
///
/// # Errors
/// If the history has an operation, input or output that the model does not permit.
///
/// ```
/// use millstream_history::consistency::sequentially_consistent;
/// use millstream_history::format::{Format, read};
/// use millstream_history::{Kind, Options, check};
///
/// // The second process reads the value from before a write that had returned.
/// let late = "{\"process\":0,\"op\":\"write\",\"in\":1,\"call\":0,\"return\":5}\n\
///             {\"process\":1,\"op\":\"read\",\"out\":null,\"call\":6,\"return\":8}\n";
/// let (history, register) = (read(late.as_bytes(), Format::Json, None)?, Kind::Register.into());
/// assert_eq!(check(&history, &register, &Options::default())?.holds(), Some(false));
/// assert_eq!(sequentially_consistent(&history, &register, &Options::default())?.holds(), Some(true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sequentially_consistent(history: &History, model: &Model, options: &Options) -> Result<Verdict, CheckError> {
    validate(history, model.kind)?;
    let whole = Part::whole(history);
    Ok(with_spec(model, &whole, |spec| by_process(&whole, spec, options)))
}

/// [`sequentially_consistent`] for a history whose linearizability is already decided. If the witness of
/// linearizability also respects the order of each process, as it usually does, no search is needed.
///
/// The verdict must belong to this history and this model; this is not checked.
///
/// # Errors
/// If the history has an operation, input or output that the model does not permit.
///
/// # Panics
/// If the verdict has rows that the history does not have.
pub fn sequentially_consistent_beside(
    linearizable: &Verdict,
    history: &History,
    model: &Model,
    options: &Options,
) -> Result<Verdict, CheckError> {
    match linearizable {
        Verdict::Holds(witness) if respects_processes(history, &witness.order) => {
            validate(history, model.kind)?;
            Ok(linearizable.clone())
        }
        _ => sequentially_consistent(history, model, options),
    }
}

/// Whether each process's operations come in the order of their calls, which is the order of their rows.
fn respects_processes(history: &History, order: &[u32]) -> bool {
    let mut last = HashMap::new();
    order.iter().all(|&row| last.insert(history.process(row as usize), row).is_none_or(|before| before < row))
}

fn by_process(part: &Part<'_>, spec: &dyn DynSpec, options: &Options) -> Verdict {
    let (budget, began) = (Budget::new(options), thread_time());
    let mut reach = Reach::default();
    match decide_by_process(part, spec, &mut budget.lend(), &mut reach) {
        Ok(Outcome::Holds(order)) => Verdict::Holds(Witness { order }),
        Ok(Outcome::Fails { .. }) => {
            let operations = match options.explain {
                true => reduce(part, spec, budget.for_explaining(options, began), |part, budget| {
                    decide_by_process(part, spec, budget, &mut Reach::default())
                }),
                false => part.rows().to_vec(),
            };
            let reason = "no order that respects each process's own explains these operations".into();
            Verdict::Fails(Counterexample { operations, reason, subject: None, start: None, prefix: None })
        }
        Err(Exhausted(limit)) => Verdict::Unknown(Progress {
            limit,
            decided: reach.passed,
            total: (0..part.len()).filter(|&p| part.ret(p) != PENDING).count(),
            configurations: reach.configurations,
        }),
    }
}
