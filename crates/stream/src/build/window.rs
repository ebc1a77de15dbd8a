//! Windows: lists of neighbouring values.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::clock::Pass;
use crate::graph::Operator;
use crate::run::Work;

use super::stream::Stream;

/// The maximum number of values in a window.
const MAX_WINDOW: usize = 1 << 24;

impl<T: Clone + 'static> Stream<T> {
    /// Groups the values into windows of `n` without overlap. Values after the last full window are dropped.
    #[must_use]
    pub fn tumbling(&self, n: usize) -> Stream<Vec<T>> {
        self.windows(n, n)
    }

    /// Groups the values into windows of `n`. Each window begins `step` values after the previous one.
    ///
    /// # Panics
    /// Panics if `n` or `step` is 0, or `n` is more than 2^24.
    #[must_use]
    pub fn windows(&self, n: usize, step: usize) -> Stream<Vec<T>> {
        self.window_with(n, step, |values, into: &mut Vec<T>| {
            into.resize_with(values.len().min(into.len()), || unreachable!("the list only gets shorter"));
            for (at, value) in values.enumerate() {
                match into.get_mut(at) {
                    Some(old) => old.clone_from(value),
                    None => into.push(value.clone()),
                }
            }
        })
    }

    /// Computes a value from each window of `n` values. `fold` overwrites its last result. Each window begins `step` values
    /// after the previous one.
    ///
    /// # Panics
    /// Panics if `n` or `step` is 0, or `n` is more than 2^24.
    pub fn window_with<U: Clone + Default + 'static>(
        &self,
        n: usize,
        step: usize,
        mut fold: impl FnMut(&mut dyn ExactSizeIterator<Item = &T>, &mut U) + 'static,
    ) -> Stream<U> {
        let label = window_label(n, step);
        let last = Rc::new(RefCell::new(VecDeque::<T>::with_capacity(n)));
        let into = Rc::clone(&last);
        let from = Rc::clone(&self.slot);
        let gather = move || {
            let (from, mut last) = (from.borrow(), into.borrow_mut());
            let value = from.as_ref().expect("a value was given");
            if last.len() < n {
                last.push_back(value.clone());
            } else if let Some(mut oldest) = last.pop_front() {
                oldest.clone_from(value);
                last.push_back(oldest);
            }
            Ok(true)
        };
        let pass = Operator::Pass(Pass::Every { first: n as u64 - 1, step: step as u64 });
        let gathered = self.through(Operator::Each, &label, Work::Branch(Box::new(gather)));
        let size = size_of::<U>() + n * size_of::<T>();
        let steps = Rc::clone(&self.program.steps);
        gathered.through(pass, &label, Work::Pass).each(&label, size, move |_, into| {
            fold(&mut last.borrow().iter(), into.get_or_insert_with(U::default));
            steps.set(steps.get().saturating_add(n as u64));
            Ok(())
        })
    }
}

/// Returns the label of a window.
///
/// # Panics
/// Panics if `n` is 0 or more than the maximum.
pub(super) fn window_label(n: usize, step: usize) -> String {
    assert!((1..=MAX_WINDOW).contains(&n), "a window has 1 to {MAX_WINDOW} values");
    format!("window({n}, {step})")
}
