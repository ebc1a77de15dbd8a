//! A parallel map with needs, as a flow of one stage.

use std::sync::{Arc, Mutex, PoisonError};

use crate::builder::FlowBuilder;
use crate::check::error::BuildError;
use crate::failure::{DeadLetter, Failure};
use crate::flow::Flow;
use crate::need::Need;

/// Maps `f` over `items` on all cores, and returns the results in the order of the items.
///
/// `needs` declares resources and returns what each item needs of them; it may also set the flow's caps. Pass `|_|
/// vec![]` for no needs. If an item fails or panics, its result is a dead letter.
///
/// # Errors
/// Returns an error if the needs are refused (see [`BuildError`]).
///
/// ```
/// use millstream_flow::{Need, parallel_map};
///
/// let lengths = parallel_map(
///     ["a", "bb", "ccc"],
///     |flow| vec![Need::tokens(flow.tokens("net", 2), 1)],
///     |text| Ok(text.len()),
/// )?;
/// let lengths: Vec<usize> = lengths.into_iter().map(Result::unwrap).collect();
/// assert_eq!(lengths, [1, 2, 3]);
/// # Ok::<(), millstream_flow::BuildError>(())
/// ```
pub fn parallel_map<T, U, F>(
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    needs: impl FnOnce(&mut FlowBuilder<()>) -> Vec<Need<T>>,
    f: F,
) -> Result<Vec<Result<U, DeadLetter>>, BuildError>
where
    T: Send + 'static,
    U: Send + 'static,
    F: Fn(&mut T) -> Result<U, Failure> + Send + Sync + 'static,
{
    type Results<U> = Mutex<Vec<Option<Result<U, DeadLetter>>>>;
    fn put<U>(results: &Results<U>, unit: u64, result: Result<U, DeadLetter>) {
        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
        let index = unit as usize;
        if results.len() <= index {
            results.resize_with(index + 1, || None);
        }
        results[index] = Some(result);
    }

    let results: Arc<Results<U>> = Arc::default();
    let mut flow = Flow::builder("parallel map");
    let map = flow.inlet::<T>("map");
    let needs = needs(&mut flow);
    let letters = results.clone();
    flow.on_dead_letter(move |letter| put(&letters, letter.unit, Err(letter)));
    let done = flow.retire();
    let values = results.clone();
    let mut stage = flow.stage(map, move |item: &mut T, cx| {
        let value = f(item)?;
        put(&values, cx.unit(), Ok(value));
        Ok(())
    });
    for need in needs {
        stage = stage.need(need);
    }
    stage.to(done);
    flow.build(map)?.run(items);
    let results = std::mem::take(&mut *results.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(results.into_iter().map(|result| result.expect("a run ends when every unit has left")).collect())
}
