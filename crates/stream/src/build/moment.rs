//! Hold and align: the values of one stream at the moments of another.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::graph::Operator;
use crate::run::{RunError, Shared, Work, assign};

use super::stream::Stream;

impl<T: Clone + 'static> Stream<T> {
    /// For each value of `clock`, produces this stream's latest value, or `before` if there is none yet.
    ///
    /// A slower clock samples the stream, and a faster one repeats values. Both streams must come from one source
    /// without zips, merges, repeats or prefixes in between; otherwise their values would have no defined order.
    #[must_use]
    pub fn hold<C: Clone + 'static>(&self, clock: &Stream<C>, before: T) -> Self {
        let kept = self.each("hold", size_of::<T>(), |value, into| {
            assign(into, value);
            Ok(())
        });
        let slot: Shared<T> = Rc::new(RefCell::new(Some(before)));
        let (from, into) = (Rc::clone(&kept.slot), Rc::clone(&slot));
        let step = move || {
            if let Some(kept) = &*from.borrow() {
                assign(&mut into.borrow_mut(), kept);
            }
            Ok(true)
        };
        self.at(&kept, clock, Operator::Hold, "hold", slot, step)
    }

    /// For each value of `clock`, produces this stream's value at the same moment; `None` if this stream has no value at that
    /// moment.
    ///
    /// Both streams must come from one source, as for [`hold`](Self::hold).
    #[must_use]
    pub fn align<C: Clone + 'static>(&self, clock: &Stream<C>) -> Stream<Option<T>> {
        let seen = Rc::new(Cell::new(0));
        let (now, noted) = (Rc::clone(&self.program.moment), Rc::clone(&seen));
        let kept = self.each("align", size_of::<T>(), move |value, into| {
            assign(into, value);
            noted.set(now.get());
            Ok(())
        });
        let slot: Shared<Option<T>> = Rc::new(RefCell::new(None));
        let (from, into, now) = (Rc::clone(&kept.slot), Rc::clone(&slot), Rc::clone(&self.program.moment));
        let step = move || {
            let is_now = seen.get() == now.get();
            *into.borrow_mut() = Some(from.borrow().as_ref().filter(|_| is_now).cloned());
            Ok(true)
        };
        self.at(&kept, clock, Operator::Align, "align", slot, step)
    }

    fn at<C: Clone + 'static, U: Clone + 'static>(
        &self,
        kept: &Self,
        clock: &Stream<C>,
        operator: Operator,
        label: &str,
        slot: Shared<U>,
        step: impl FnMut() -> Result<bool, Box<RunError>> + 'static,
    ) -> Stream<U> {
        assert!(self.program.is(&clock.program), "streams of two programs have no moments in common");
        let work = Work::Branch(Box::new(step));
        // When this node runs, the value is stored already: the nodes of a firing run in the order of their numbers, and this
        // node has the largest number.
        let node = self.program.add(operator, &[kept.node, clock.node], label, size_of::<U>(), work);
        Stream::new(&self.program, node, slot)
    }
}
