use crate::knob;
use crate::primitive::pause;
use crate::sequencer::*;
use crate::slots::Slots;
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::sync::Arc;

pub struct Core<T, P, C> { slots: Slots<MaybeUninit<T>>, p: P, c: C }
pub struct Tx<T, P: Sequencer, C: Sequencer> { core: Arc<Core<T, P, C>>, hand: P::Hand, waits: Cell<u32> }
pub struct Rx<T, P: Sequencer, C: Sequencer> { core: Arc<Core<T, P, C>>, hand: C::Hand, gap: Cell<u32>, last: Cell<u64> }
impl<T, P: Sequencer, C: Sequencer> Clone for Tx<T, P, C> {
    fn clone(&self) -> Self { Tx { core: self.core.clone(), hand: self.core.p.hand(self.core.slots.capacity()), waits: Cell::new(0) } }
}
pub fn bounded<T, P: Sequencer, C: Sequencer>(cap: usize) -> (Tx<T, P, C>, Rx<T, P, C>) {
    let core = Arc::new(Core { slots: Slots::new(cap, MaybeUninit::uninit), p: P::new(cap as u64, cap as u64), c: C::new(cap as u64, 0) });
    (Tx { hand: core.p.hand(cap as u64), core: core.clone(), waits: Cell::new(0) }, Rx { hand: core.c.hand(0), core, gap: Cell::new(1), last: Cell::new(0) })
}
// knobs: 0 cas backoff shift, 1 producer gather shift (cap>>k; 0 none), 2 spins of producer before yield, 3 spins of consumer before yield, 4 pauses per poll, 5 adaptive gap cap
impl<T, P: Sequencer, C: Sequencer> Tx<T, P, C> {
    #[inline(always)]
    fn try_claim(&self, least: u64, most: u64) -> Option<std::ops::Range<u64>> {
        let cap = self.core.slots.capacity();
        self.core.p.claim(&self.hand, least, most, |from| self.core.c.completed(from - cap) + cap)
    }
    #[inline(always)]
    pub fn send(&self, v: T) {
        let claim = match self.try_claim(1, 1) { Some(c) => c, None => self.wait() };
        self.core.slots.at(claim.start).with_mut(|p| unsafe { (*p).write(v); });
        self.core.p.complete(&self.hand, claim);
    }
    pub fn send_batch(&self, n: u64, mut f: impl FnMut() -> T) {
        let mut left = n;
        while left > 0 {
            let claim = match self.try_claim(1, left) { Some(c) => c, None => { self.wait_space(); continue } };
            for at in claim.clone() { let v = f(); self.core.slots.at(at).with_mut(|p| unsafe { (*p).write(v); }); }
            left -= claim.end - claim.start;
            self.core.p.complete(&self.hand, claim);
        }
    }
    #[cold]
    #[inline(never)]
    fn wait(&self) -> std::ops::Range<u64> {
        loop { self.wait_space(); if let Some(c) = self.try_claim(1, 1) { return c; } }
    }
    #[cold]
    #[inline(never)]
    fn wait_space(&self) {
        let cap = self.core.slots.capacity();
        let want = if knob(1) == 0 { 1 } else { (cap >> knob(1)).max(1) };
        let mut n = 0;
        loop {
            for _ in 0..knob(4) { pause(); }
            if n > knob(2) { std::thread::yield_now(); }
            n += 1;
            let want = if n > knob(6) { 1 } else { want };
            if self.core.p.room(&self.hand, |from| self.core.c.completed(from - cap) + cap) >= want { return; }
        }
    }
}
impl<T, P: Sequencer, C: Sequencer> Rx<T, P, C> {
    #[inline(always)]
    pub fn try_recv(&self) -> Option<T> {
        let claim = self.core.c.claim(&self.hand, 1, 1, |from| self.core.p.completed(from))?;
        let v = self.core.slots.at(claim.start).with(|p| unsafe { (*p).assume_init_read() });
        self.core.c.complete(&self.hand, claim);
        Some(v)
    }
    #[inline(always)]
    pub fn recv(&self) -> T {
        match self.try_recv() { Some(v) => v, None => self.wait() }
    }
    pub fn recv_batch(&self, most: u64, mut f: impl FnMut(T)) -> u64 {
        loop {
            if let Some(claim) = self.core.c.claim(&self.hand, 1, most, |from| self.core.p.completed(from)) {
                for at in claim.clone() { f(self.core.slots.at(at).with(|p| unsafe { (*p).assume_init_read() })); }
                let n = claim.end - claim.start;
                self.core.c.complete(&self.hand, claim);
                return n;
            }
            self.wait_some();
        }
    }
    #[cold]
    #[inline(never)]
    fn wait(&self) -> T {
        loop { self.wait_some(); if let Some(v) = self.try_recv() { return v; } }
    }
    #[cold]
    #[inline(never)]
    fn wait_some(&self) {
        // batch since last wait
        let mut n = 0;
        let mut gap = self.gap.get();
        loop {
            for _ in 0..gap { pause(); }
            if n > knob(3) { std::thread::yield_now(); }
            n += 1;
            let r = self.core.c.room(&self.hand, |from| self.core.p.completed(from));
            if r > 0 {
                if r >= 2 && r < 64 { gap = (gap * 2).min(knob(5)); } else if r < 2 { gap = knob(4); } else if r > 256 { gap = (gap / 2).max(knob(4)); }
                self.gap.set(gap);
                return;
            }
        }
    }
}
