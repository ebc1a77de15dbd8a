//! The moments that are still uncovered.

/// A set of free moments that only shrinks: a union-find structure with path halving, in near-constant time per step.
pub(super) struct Free {
    /// Each covered moment points to a later moment, and each free moment to itself.
    next: Vec<u32>,
}

impl Free {
    /// The moments up to `last`, and the one after `last`, which is never covered.
    pub(super) fn new(last: u32) -> Self {
        Free { next: (0..=last + 1).collect() }
    }

    /// The first free moment at or after `moment`.
    pub(super) fn next(&mut self, mut moment: u32) -> u32 {
        while self.next[moment as usize] != moment {
            let skipped = self.next[self.next[moment as usize] as usize];
            self.next[moment as usize] = skipped;
            moment = skipped;
        }
        moment
    }

    /// Covers the moments strictly between `after` and `before`.
    pub(super) fn cover(&mut self, after: u32, before: u32) {
        if after >= before {
            return;
        }
        let mut moment = self.next(after + 1);
        while moment < before {
            // All moments before `before` will be covered, so this one can point past them.
            self.next[moment as usize] = before;
            moment = self.next(moment + 1);
        }
    }
}
