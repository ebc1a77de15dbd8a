//! Switches: elements of a set or of an allocator's pool. Each is on or off.
//!
//! Each change reports its effect ("it was off, now it is on"), so the changes of one element alternate between on and
//! off, whichever processes make them. A sweep over time delays each step as long as possible. A change is made when it
//! returns, unless it was made before. If the element has the wrong state for it, the most urgent open change of the
//! other kind is made first. Likewise, if an observation returns and the element never had the observed state, the most
//! urgent open change makes the observation true. The history is not linearizable if and only if a needed open change
//! does not exist.
//!
//! The sweep is exact. Two open changes of one kind differ only in their deadlines, so the more urgent one goes first.
//! Delaying a change to its deadline loses no possibility. Observations change nothing, and are satisfied whenever the
//! element has the right state. Changes that never return have no deadline and go last. A pending change that may
//! belong to any element is the last resort.
//!
//! The values need not be distinct. The time is O(n log n) for a bounded number of clients.

use super::span::{Span, Spans};

/// The effect of an operation on its element, or its observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Changes the element to on (true) or off (false).
    Change(bool),
    /// Observes that the element is on (true) or off (false).
    See(bool),
    /// A pending change that switches an unknown element on.
    SomeOn,
}

/// An operation and its element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) element: u32,
    pub(crate) act: Act,
}

/// No position.
const NONE: u32 = u32::MAX;

struct Element {
    on: bool,
    /// For each kind, the first in a linked list of changes that were called, are not made, and will return.
    open: [u32; 2],
    /// For each kind, the first in a linked list of changes that never return.
    spare: [u32; 2],
    /// The first in a linked list of observations that wait for the element's other state.
    waiting: u32,
}

struct Sweep<'a> {
    operations: &'a [Operation],
    spans: &'a [Span],
    elements: Vec<Element>,
    /// The next operation in an operation's list.
    next: Vec<u32>,
    done: Vec<bool>,
    some_on: Vec<u32>,
    order: Vec<u32>,
}

/// Positions in a legal order, or the position of an operation whose return no order explains.
///
/// Takes all operations of a history whose elements, all off at first, are numbered below `elements`.
pub(crate) fn sweep(operations: &[Operation], spans: &Spans, elements: u32) -> Result<Vec<u32>, u32> {
    const RETURN: u32 = 1 << 31;
    let Spans { spans, end } = spans;
    let mut events = vec![NONE; *end as usize];
    for (p, span) in (0..).zip(spans) {
        events[span.call as usize] = p;
        if span.ret < *end {
            events[span.ret as usize] = p | RETURN;
        }
    }
    let off = || Element { on: false, open: [NONE; 2], spare: [NONE; 2], waiting: NONE };
    let mut sweep = Sweep {
        operations,
        spans,
        elements: (0..elements).map(|_| off()).collect(),
        next: vec![NONE; operations.len()],
        done: vec![false; operations.len()],
        some_on: Vec::new(),
        order: Vec::with_capacity(operations.len()),
    };
    for event in events.into_iter().filter(|&event| event != NONE) {
        if event & RETURN == 0 {
            sweep.called(event, spans[event as usize].ret < *end);
        } else if !sweep.done[(event ^ RETURN) as usize] {
            sweep.returns(event ^ RETURN).ok_or(event ^ RETURN)?;
        }
    }
    Ok(sweep.order)
}

impl Sweep<'_> {
    fn element(&mut self, p: u32) -> &mut Element {
        &mut self.elements[self.operations[p as usize].element as usize]
    }

    fn make(&mut self, p: u32) {
        self.done[p as usize] = true;
        self.order.push(p);
    }

    fn called(&mut self, p: u32, returns: bool) {
        match self.operations[p as usize].act {
            Act::Change(to) => {
                let element = self.element(p);
                let list = if returns { &mut element.open } else { &mut element.spare };
                let after = std::mem::replace(&mut list[usize::from(to)], p);
                self.next[p as usize] = after;
            }
            Act::See(on) if returns => {
                if self.element(p).on == on {
                    self.make(p);
                } else {
                    let after = std::mem::replace(&mut self.element(p).waiting, p);
                    self.next[p as usize] = after;
                }
            }
            Act::See(_) => {}
            Act::SomeOn => self.some_on.push(p),
        }
    }

    /// Completes operation `p`, which returns now and is not done yet. `None` if it needs a change that is not open.
    fn returns(&mut self, p: u32) -> Option<()> {
        let e = self.operations[p as usize].element;
        match self.operations[p as usize].act {
            Act::Change(to) => {
                if self.elements[e as usize].on == to {
                    self.switch_most_urgent(e)?;
                }
                self.unlink(p, to);
                self.switch(e, p);
            }
            // The observation is in the waiting list, so the switch satisfies it.
            Act::See(_) => self.switch_most_urgent(e)?,
            Act::SomeOn => unreachable!("it never returns"),
        }
        Some(())
    }

    /// Makes the most urgent open change to the element's other state; `None` if there is none.
    fn switch_most_urgent(&mut self, e: u32) -> Option<()> {
        let to = !self.elements[e as usize].on;
        let Element { open, spare, .. } = &mut self.elements[e as usize];
        let mut urgent = open[usize::from(to)];
        let change = if urgent != NONE {
            let mut other = urgent;
            while other != NONE {
                if self.spans[other as usize].ret < self.spans[urgent as usize].ret {
                    urgent = other;
                }
                other = self.next[other as usize];
            }
            self.unlink(urgent, to);
            urgent
        } else if spare[usize::from(to)] != NONE {
            let change = spare[usize::from(to)];
            spare[usize::from(to)] = self.next[change as usize];
            change
        } else if to {
            self.some_on.pop()?
        } else {
            return None;
        };
        self.switch(e, change);
        Some(())
    }

    /// Removes a change from the list of open ones.
    fn unlink(&mut self, p: u32, to: bool) {
        let after = self.next[p as usize];
        let mut before = self.element(p).open[usize::from(to)];
        if before == p {
            self.element(p).open[usize::from(to)] = after;
            return;
        }
        while self.next[before as usize] != p {
            before = self.next[before as usize];
        }
        self.next[before as usize] = after;
    }

    /// Makes a change, which satisfies all observations that waited for it.
    fn switch(&mut self, e: u32, change: u32) {
        self.make(change);
        let element = &mut self.elements[e as usize];
        element.on = !element.on;
        let mut waiting = std::mem::replace(&mut element.waiting, NONE);
        while waiting != NONE {
            self.make(waiting);
            waiting = self.next[waiting as usize];
        }
    }
}
