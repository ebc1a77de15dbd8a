//! The pool of a runtime's stacks. A stack is in use, idle with its pages (warm), or idle without them (trimmed).

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use super::Stack;
use super::chunk::{self, Chunk};
use super::guard::Guards;
use super::layout::Layout;
use crate::error::StackError;

/// The number of stacks in the first chunk. Each further chunk is twice as large, up to `MAX_CHUNK`.
const FIRST_CHUNK: usize = 64;
/// The number of stacks in the largest chunk. It takes about 5 ms to install their guards. A million stacks take about 70 chunks,
/// and about as many mappings.
const MAX_CHUNK: usize = 16_384;
/// The number of bytes of address space that are left to the rest of the program. Without them, its heap could not grow.
const SPARE_BYTES: usize = 32 << 20;
/// The number of mappings left to the rest of the program if each stack takes two.
const SPARE_MAPPINGS: usize = 8192;

/// The number of stacks of all pools in this process whose guards are mappings.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// The stacks of a runtime.
#[derive(Debug)]
pub(crate) struct StackPool {
    pub(crate) layout: Layout,
    pub(crate) guards: Guards,
    /// The maximum number of idle stacks that keep their pages.
    max_warm: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    chunks: Vec<Chunk>,
    warm: Vec<Stack>,
    trimmed: Vec<Stack>,
    /// The greatest depth of the stacks that have been trimmed so far. Trimming a stack erases its depth.
    deepest_trimmed: usize,
}

/// A runtime's stacks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackReport {
    /// The kind of the stacks' guards.
    pub guards: Guards,
    /// The size of a stack without its guard, in bytes.
    pub stack_bytes: usize,
    /// The size of a guard, in bytes.
    pub guard_bytes: usize,
    /// The number of stacks whose address space is reserved.
    pub reserved: usize,
    /// The number of idle stacks in the pool that keep their pages. Each worker keeps some more for itself.
    pub warm: usize,
    /// The number of idle stacks in the pool whose pages went back to the kernel.
    pub trimmed: usize,
    /// The greatest depth that any stack has reached, in bytes, rounded up to pages.
    pub high_water_bytes: usize,
}

impl StackPool {
    pub(crate) fn new(layout: Layout, guards: Guards, max_warm: usize) -> Self {
        StackPool { layout, guards, max_warm, state: Mutex::default() }
    }

    /// Moves up to `count` idle stacks to `into`, warm ones first. If there are no idle stacks, reserves another chunk.
    pub(super) fn acquire(&self, into: &mut Vec<Stack>, count: usize) -> Result<(), StackError> {
        let mut state = self.state.lock();
        if state.warm.is_empty() && state.trimmed.is_empty() {
            self.grow(&mut state)?;
        }
        for _ in 0..count {
            let Some(stack) = state.warm.pop().or_else(|| state.trimmed.pop()) else { break };
            into.push(stack);
        }
        Ok(())
    }

    /// Takes back idle stacks, and trims those beyond the limit on warm stacks.
    pub(super) fn release(&self, stacks: impl Iterator<Item = Stack>) {
        let mut cold = Vec::new();
        let mut state = self.state.lock();
        for stack in stacks {
            if state.warm.len() < self.max_warm { state.warm.push(stack) } else { cold.push(stack) }
        }
        drop(state);
        if cold.is_empty() {
            return;
        }
        let mut deepest = 0;
        for stack in &cold {
            deepest = deepest.max(chunk::used_bytes(stack.span(), self.layout));
            chunk::trim(stack, self.layout);
        }
        let mut state = self.state.lock();
        state.deepest_trimmed = state.deepest_trimmed.max(deepest);
        state.trimmed.append(&mut cold);
    }

    fn grow(&self, state: &mut State) -> Result<(), StackError> {
        let reserved: usize = state.chunks.iter().map(|chunk| chunk.stacks).sum();
        let mut count = reserved.clamp(FIRST_CHUNK, MAX_CHUNK);
        loop {
            match self.grow_by(state, count, reserved) {
                // The address space may have room for a smaller chunk.
                Err(StackError::Memory { .. }) if count > 1 => count /= 2,
                grown => return grown,
            }
        }
    }

    fn grow_by(&self, state: &mut State, mut count: usize, reserved: usize) -> Result<(), StackError> {
        if self.guards == Guards::Mappings {
            count = claim_mappings(count)?;
        }
        let mapped = Chunk::map(self.layout, count, self.guards);
        if self.guards == Guards::Mappings {
            // If the kernel refused some guards, the chunk has fewer stacks. Release the mappings of the stacks that it lacks.
            MAPPED.fetch_sub(count - mapped.as_ref().map_or(0, |chunk| chunk.stacks), Relaxed);
        }
        let mapped = mapped.and_then(|chunk| match chunk::probe(SPARE_BYTES) {
            Ok(()) => Ok(chunk),
            Err(error) => {
                if self.guards == Guards::Mappings {
                    MAPPED.fetch_sub(chunk.stacks, Relaxed);
                }
                Err(error)
            }
        });
        let chunk = mapped.map_err(|source| {
            if self.guards == Guards::Mappings && source.raw_os_error() == Some(libc::ENOMEM) {
                StackError::Mappings { stacks: reserved, limit: max_map_count() }
            } else {
                StackError::Memory { bytes: count * self.layout.stride(), stacks: reserved, source }
            }
        })?;
        // Stacks are taken from the end of this list, so the lowest stack of the chunk is used first.
        state.trimmed.extend((0..chunk.stacks).rev().map(|index| chunk.stack(index)));
        state.chunks.push(chunk);
        Ok(())
    }

    /// Returns the depth to which the stack in this [span](Stack::span) has been touched, in bytes.
    pub(crate) fn used_bytes(&self, span: (usize, usize)) -> usize {
        chunk::used_bytes(span, self.layout)
    }

    pub(crate) fn report(&self) -> StackReport {
        let state = self.state.lock();
        let deepest = state.chunks.iter().map(Chunk::deepest).max().unwrap_or(0);
        StackReport {
            guards: self.guards,
            stack_bytes: self.layout.stack_bytes,
            guard_bytes: self.layout.guard_bytes,
            reserved: state.chunks.iter().map(|chunk| chunk.stacks).sum(),
            warm: state.warm.len(),
            trimmed: state.trimmed.len(),
            high_water_bytes: deepest.max(state.deepest_trimmed),
        }
    }
}

impl Drop for StackPool {
    fn drop(&mut self) {
        if self.guards == Guards::Mappings {
            let stacks: usize = self.state.get_mut().chunks.iter().map(|chunk| chunk.stacks).sum();
            MAPPED.fetch_sub(stacks, Relaxed);
        }
    }
}

/// Reserves mappings for up to `count` stacks, within the kernel's limit. Returns the number of stacks for which there are
/// mappings.
fn claim_mappings(count: usize) -> Result<usize, StackError> {
    let limit = max_map_count();
    let room = limit.saturating_sub(SPARE_MAPPINGS) / 2;
    let claim = |mapped: usize| Some(mapped + count.min(room.saturating_sub(mapped)));
    let before = MAPPED.fetch_update(Relaxed, Relaxed, claim).unwrap_or_else(|mapped| mapped);
    match count.min(room.saturating_sub(before)) {
        0 => Err(StackError::Mappings { stacks: before, limit }),
        claimed => Ok(claimed),
    }
}

/// Returns the kernel's limit on the mappings of a process.
fn max_map_count() -> usize {
    const DEFAULT: usize = 65_530;
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count");
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(DEFAULT)
}
