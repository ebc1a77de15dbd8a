//! Windows in a loop.

use std::ops::ControlFlow;

use super::Stop;
use super::operator::Step;

/// The number of window steps after which a loop pauses, so that its caller can count them.
const MAX_STEPS: u64 = 4096;

/// Gathers windows of `n` values. Each window begins `step` values after the previous one, and takes `n` steps.
pub(crate) struct Windows<T> {
    step: usize,
    /// The values of the window. The values from index `filled` onwards belong to an earlier window; they stay so that their
    /// memory can be reused.
    values: Vec<T>,
    n: usize,
    filled: usize,
    /// The number of values to drop before the next window.
    dropping: usize,
    /// The number of steps that the caller has not subtracted yet.
    steps: u64,
}

impl<T> Windows<T> {
    pub(crate) fn new(n: usize, step: usize) -> Self {
        Self { step, values: Vec::with_capacity(n), n, filled: 0, dropping: 0, steps: 0 }
    }

    /// Drops the values of a full window that are not in the next one.
    fn advance(&mut self) {
        let Self { step, n, .. } = *self;
        let kept = n.saturating_sub(step);
        // Move the values to keep to the front. The dropped values follow them, for their memory.
        if kept > step {
            self.values.rotate_left(step);
        } else if kept > 0 {
            let (front, back) = self.values.split_at_mut(step);
            front.iter_mut().zip(back).for_each(|(old, value)| std::mem::swap(old, value));
        }
        self.filled = kept;
        self.dropping = step.saturating_sub(n);
    }
}

impl<T: Clone + 'static> Step<T> for Windows<T> {
    type Out = Vec<T>;

    #[inline]
    fn step(&mut self, value: &T, sink: &mut impl FnMut(&Vec<T>) -> ControlFlow<Stop>) -> ControlFlow<Stop> {
        if self.filled == self.n {
            self.advance();
        }
        if self.dropping > 0 {
            self.dropping -= 1;
            return ControlFlow::Continue(());
        }
        match self.values.get_mut(self.filled) {
            Some(old) => old.clone_from(value),
            None => self.values.push(value.clone()),
        }
        self.filled += 1;
        if self.filled < self.n {
            return ControlFlow::Continue(());
        }
        self.steps += self.n as u64;
        sink(&self.values)?;
        if self.steps < MAX_STEPS { ControlFlow::Continue(()) } else { ControlFlow::Break(Stop::Pause) }
    }

    #[inline]
    fn steps(&mut self) -> u64 {
        std::mem::take(&mut self.steps)
    }
}

/// Gathers windows of `N` values. Each window begins `STEP` values after the previous one. Each new value shifts all values of
/// the window by one. The compiler knows all positions, so a small window stays in registers.
pub(crate) struct ArrayWindows<T, const N: usize, const STEP: usize> {
    /// The last values, oldest first.
    values: Option<[T; N]>,
    /// The number of values still missing until the next window is complete.
    missing: usize,
}

impl<T, const N: usize, const STEP: usize> ArrayWindows<T, N, STEP> {
    pub(crate) fn new() -> Self {
        const { assert!(N > 0 && STEP > 0, "a window and its step are at least one value") };
        Self { values: None, missing: N }
    }
}

impl<T: Clone + 'static, const N: usize, const STEP: usize> Step<T> for ArrayWindows<T, N, STEP> {
    type Out = [T; N];

    #[inline]
    fn step(&mut self, value: &T, sink: &mut impl FnMut(&[T; N]) -> ControlFlow<Stop>) -> ControlFlow<Stop> {
        let values = self.values.get_or_insert_with(|| std::array::from_fn(|_| value.clone()));
        for at in 1..N {
            values.swap(at - 1, at);
        }
        values[N - 1].clone_from(value);
        self.missing -= 1;
        if self.missing > 0 {
            return ControlFlow::Continue(());
        }
        self.missing = STEP;
        sink(values)
    }
}
