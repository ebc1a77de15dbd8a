//! A value that one worker at a time uses, for the duration of a write to a file.
//!
//! Suppose that a worker held a mutex while a full pipe blocks its write. All other workers that need the value would
//! then block on the mutex, beyond their time limits and in spite of an interrupt. So a worker takes the value out of
//! the mutex, and puts the value back after the write. Until then, the other workers wait within the [`Patience`] of
//! their units.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use millstream_flow::Failure;

use super::patience::Patience;

/// See the [module](self).
#[derive(Debug)]
pub struct Turn<T> {
    line: Mutex<Line<T>>,
    back: Condvar,
}

#[derive(Debug)]
struct Line<T> {
    /// The value; `None` while a worker uses it.
    thing: Option<T>,
    waiting: usize,
}

impl<T> Turn<T> {
    /// A line of waiters for `thing`.
    pub fn new(thing: T) -> Self {
        Self { line: Mutex::new(Line { thing: Some(thing), waiting: 0 }), back: Condvar::new() }
    }

    /// Waits until no other worker uses the value, and takes it.
    ///
    /// # Errors
    /// The patience has run out.
    pub fn take(&self, patience: &dyn Patience) -> Result<Taken<'_, T>, Failure> {
        let mut line = self.line();
        loop {
            if let Some(thing) = line.thing.take() {
                return Ok(Taken { thing: Some(thing), turn: self });
            }
            let most = patience.left()?;
            line.waiting += 1;
            line = self.back.wait_timeout(line, most).unwrap_or_else(PoisonError::into_inner).0;
            line.waiting -= 1;
        }
    }

    /// Takes the value if no worker uses it.
    pub fn try_take(&self) -> Option<Taken<'_, T>> {
        let thing = self.line().thing.take()?;
        Some(Taken { thing: Some(thing), turn: self })
    }

    /// The lock is held for a few instructions only.
    fn line(&self) -> MutexGuard<'_, Line<T>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The value while a worker uses it. When this is dropped, the value goes back into the mutex.
#[derive(Debug)]
pub struct Taken<'a, T> {
    /// The value; `Some` until this is dropped.
    thing: Option<T>,
    turn: &'a Turn<T>,
}

impl<T> Deref for Taken<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.thing.as_ref().expect("present until the drop")
    }
}

impl<T> DerefMut for Taken<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.thing.as_mut().expect("present until the drop")
    }
}

impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        let mut line = self.turn.line();
        line.thing = self.thing.take();
        let waiting = line.waiting > 0;
        drop(line);
        if waiting {
            self.turn.back.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use millstream_flow::Failure;

    use super::Turn;
    use crate::ops::patience::Patience;

    struct None;

    impl Patience for None {
        fn left(&self) -> Result<Duration, Failure> {
            Err(Failure::timeout("no patience"))
        }
    }

    struct Endless;

    impl Patience for Endless {
        fn left(&self) -> Result<Duration, Failure> {
            Ok(Duration::from_secs(1000))
        }
    }

    #[test]
    fn a_wait_for_a_turn_ends_with_the_patience() {
        let turn = Turn::new(1);
        let taken = turn.take(&None).unwrap();
        assert!(turn.take(&None).is_err() && turn.try_take().is_none());
        drop(taken);
        assert_eq!(*turn.take(&None).unwrap(), 1);
    }

    #[test]
    fn every_worker_has_its_turn() {
        let turn = Turn::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| *turn.take(&Endless).unwrap() += 1));
            }
        });
        assert_eq!(*turn.try_take().unwrap(), 40_000);
    }

    #[test]
    fn a_panic_ends_a_turn() {
        let turn = Turn::new(0);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _taken = turn.take(&None).unwrap();
            panic!("in its turn");
        }));
        assert!(panicked.is_err() && turn.try_take().is_some());
    }
}
