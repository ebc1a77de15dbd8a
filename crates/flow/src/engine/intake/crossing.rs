//! Workers of one flow that wait for room in another flow.
//!
//! The proof against deadlock covers one flow. Two flows whose stages send to each other could fill each other. Then
//! the workers of each flow would wait for room that only workers of the other flow can make. A worker that begins such
//! a wait therefore registers its own flow and the flow it waits for. A wait that would close a cycle is refused, and
//! the sender gets its unit back.
//!
//! A cycle is not yet a deadlock, because other workers of the two flows may still run. The engine refuses it
//! nevertheless, because only timing decides whether the other workers will wait, too. A refused sender can retry with
//! the unit it got back.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::engine::identity;

/// The waits in progress, as pairs of the waiting worker's flow and the flow it waits for.
static WAITS: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

fn waits() -> MutexGuard<'static, Vec<(u64, u64)>> {
    WAITS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The right to wait for room in a flow, held until it is dropped.
pub(crate) struct Crossing(Option<(u64, u64)>);

impl Crossing {
    /// Registers the wait. Returns `None` if the caller works for a flow whose own workers may have to make that room.
    ///
    /// A call by a thread that works for a flow takes a process-wide lock and examines all registered waits.
    pub(crate) fn into(flow_id: u64) -> Option<Crossing> {
        let Some(from) = identity::own_flow() else { return Some(Crossing(None)) };
        let mut waits = waits();
        if leads_to(&waits, flow_id, from) {
            return None;
        }
        waits.push((from, flow_id));
        Some(Crossing(Some((from, flow_id))))
    }
}

impl Drop for Crossing {
    fn drop(&mut self) {
        let Some(wait) = self.0 else { return };
        let mut waits = waits();
        if let Some(at) = waits.iter().position(|&other| other == wait) {
            waits.swap_remove(at);
        }
    }
}

/// Whether workers of `flow` wait for room in `goal`, directly or through other flows.
fn leads_to(waits: &[(u64, u64)], flow: u64, goal: u64) -> bool {
    let mut reached = vec![flow];
    let mut next = 0;
    while let Some(&flow) = reached.get(next) {
        if flow == goal {
            return true;
        }
        for &(_, to) in waits.iter().filter(|&&(from, _)| from == flow) {
            if !reached.contains(&to) {
                reached.push(to);
            }
        }
        next += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_followed_transitively() {
        let waits = [(1, 2), (2, 3), (3, 2), (5, 1)];
        assert!(leads_to(&waits, 1, 3) && leads_to(&waits, 5, 3) && leads_to(&waits, 4, 4));
        assert!(!leads_to(&waits, 3, 1) && !leads_to(&waits, 4, 1));
    }
}
