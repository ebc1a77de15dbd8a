//! Units that were cancelled to keep the byte budget, and run again when there is room.

use super::state::State;

impl State {
    /// Lets a unit that was cancelled for memory run again if its bytes fit now, or if nothing else in the
    /// flow can move: then it may exceed the budget, because only finishing frees memory.
    pub(crate) fn serve_memory(&mut self, now: u64) -> bool {
        if self.memory_waiters.is_empty() {
            return false;
        }
        let stuck = self.timers.is_empty() && self.is_idle();
        let Some(head) = self.memory_waiters.front_mut() else { return false };
        let unit = self.units.unit(&mut head.row);
        let grows = head.wants_bytes.saturating_sub(unit.bytes);
        let fits = self.bytes.saturating_add(grows) <= self.settings.memory;
        if !fits && !stuck {
            return false;
        }
        unit.privileged |= !fits;
        unit.bytes += grows;
        self.bytes = self.bytes.saturating_add(grows);
        self.peak_bytes = self.peak_bytes.max(self.bytes);
        if let Some(waiter) = self.memory_waiters.pop_front() {
            let waited = now.saturating_sub(waiter.since_ns);
            self.stage(waiter.stage).stats.waited_for_memory(waited);
            self.enqueue(waiter.row, waiter.stage, now);
        }
        true
    }
}
