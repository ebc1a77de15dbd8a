//! An allocator (Nathan Taylor's protocol): an allocation never returns an object that is already allocated, and only
//! an allocated object is freed.

use super::{Call, Object, Spec};
use crate::operation::Op;
use crate::part::Part;
use crate::value::{Value, Values};

/// The allocator.
///
/// Each object is checked alone, except in two cases: if the number of objects is limited, an allocation that finds no
/// free object depends on all objects; and a pending allocation may have taken any object.
#[derive(Clone, Debug)]
pub(crate) struct Allocator {
    capacity: Option<u64>,
    /// The objects that are freed at some time. A pending allocation may have taken any object, but the object matters
    /// only if it is freed later.
    freed: Vec<Value>,
    /// Whether any allocation is pending.
    unknown: bool,
}

/// The allocated objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Taken {
    /// Ascending.
    objects: Vec<Value>,
    /// The number of further allocated objects, which are never freed.
    others: u64,
}

impl Allocator {
    pub(crate) fn new(capacity: Option<u64>, part: &Part<'_>) -> Self {
        let unknown = (0..part.len()).any(|p| part.op(p) == Op::ALLOC && part.output(p).is_none());
        let mut freed: Vec<Value> = Vec::new();
        // With a capacity, all objects are searched together, and prefixes of the history may be searched as well. An
        // allocation that has returned in the whole history may be pending in a prefix.
        if unknown || capacity.is_some() {
            freed.extend((0..part.len()).filter(|&p| part.op(p) == Op::FREE).map(|p| part.input(p)));
            freed.sort_unstable();
            freed.dedup();
        }
        Allocator { capacity, freed, unknown }
    }

    fn has_room(&self, taken: &Taken) -> bool {
        self.capacity.is_none_or(|capacity| taken.objects.len() as u64 + taken.others < capacity)
    }

    fn take(taken: &Taken, object: Value) -> Option<Taken> {
        let place = taken.objects.binary_search(&object).err()?;
        let mut taken = taken.clone();
        taken.objects.insert(place, object);
        Some(taken)
    }
}

impl Spec for Allocator {
    type State = Taken;

    const SEES_PROCESS: bool = false;

    fn initial(&self) -> Taken {
        Taken::default()
    }

    fn step(&self, taken: &Taken, call: &Call<'_>) -> Option<Taken> {
        match (call.op, call.output) {
            (Op::ALLOC, Some(Value::NULL)) => (self.capacity.is_none() || !self.has_room(taken)).then(|| taken.clone()),
            (Op::ALLOC, Some(object)) => self.has_room(taken).then(|| Self::take(taken, object)).flatten(),
            (Op::ALLOC, None) => self.has_room(taken).then(|| Taken { others: taken.others + 1, ..taken.clone() }),
            _ => {
                let place = taken.objects.binary_search(&call.input).ok()?;
                let mut taken = taken.clone();
                taken.objects.remove(place);
                Some(taken)
            }
        }
    }

    fn successors(&self, taken: &Taken, call: &Call<'_>, next: &mut dyn FnMut(Taken)) {
        if call.op == Op::ALLOC && call.output.is_none() && self.has_room(taken) {
            self.freed.iter().filter_map(|&object| Self::take(taken, object)).for_each(&mut *next);
        }
        self.step(taken, call).into_iter().for_each(next);
    }

    fn object(&self, call: &Call<'_>) -> Object {
        let object = if call.op == Op::ALLOC { call.output } else { Some(call.input) };
        [call.key, object.filter(|_| self.capacity.is_none() && !self.unknown)]
    }

    fn pure(&self, call: &Call<'_>) -> bool {
        call.op == Op::ALLOC && call.output == Some(Value::NULL)
    }

    fn group(&self, call: &Call<'_>) -> Option<Value> {
        match call.op {
            _ if self.unknown => None,
            Op::ALLOC => call.output,
            _ => Some(call.input),
        }
    }

    /// An allocation that finds no free object depends on all allocated objects.
    fn pins(&self, call: &Call<'_>) -> bool {
        self.capacity.is_some() && self.pure(call)
    }

    fn state_bytes(&self, state: &Taken) -> usize {
        size_of::<Taken>() + size_of_val(state.objects.as_slice())
    }

    fn describe(&self, state: &Taken, values: &Values) -> String {
        let objects: Vec<String> = state.objects.iter().map(|&object| values.show(object).to_string()).collect();
        match state.others {
            0 => format!("allocated: [{}]", objects.join(", ")),
            others => format!("allocated: [{}] and {others} unknown", objects.join(", ")),
        }
    }
}
