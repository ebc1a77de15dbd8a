//! Selection of a model's specification.

use super::{
    Allocator, Counter, DynSpec, EventCount, KeyValue, Log, MultiRegister, Mutex, PriorityQueue, Queue, Register, Ring,
    RwLock, Semaphore, Set, Stack,
};
use crate::model::{Kind, Model};
use crate::part::Part;
use crate::value::Datum;

/// The specification that a history is checked against.
#[derive(Clone, Copy)]
pub(crate) enum Subject<'a> {
    /// A built-in one.
    Model(&'a Model),
    /// A custom specification.
    Own(&'a dyn DynSpec),
}

impl<'a> Subject<'a> {
    /// Calls `task` with the specification. A built-in one may depend on the part.
    pub(crate) fn with<T>(self, part: &Part<'_>, task: impl FnOnce(&dyn DynSpec) -> T) -> T {
        match self {
            Subject::Model(model) => with_spec(model, part, task),
            Subject::Own(spec) => task(spec),
        }
    }

    /// The model; `None` for a custom specification.
    pub(crate) fn model(self) -> Option<&'a Model> {
        match self {
            Subject::Model(model) => Some(model),
            Subject::Own(_) => None,
        }
    }
}

/// Calls `task` with the model's specification, which may depend on the part.
pub(crate) fn with_spec<T>(model: &Model, part: &Part<'_>, task: impl FnOnce(&dyn DynSpec) -> T) -> T {
    let &Model { kind, capacity, initial } = model;
    let start = match part.history().values().get(initial) {
        Datum::Int(start) => start,
        _ => 0,
    };
    match kind {
        Kind::Register => task(&Register { initial, cas: false }),
        Kind::CasRegister => task(&Register { initial, cas: true }),
        Kind::KeyValue => task(&KeyValue::new(initial, part)),
        Kind::MultiRegister => task(&MultiRegister { initial }),
        Kind::Counter | Kind::FetchAdd => task(&Counter { initial: start }),
        Kind::Mutex => task(&Mutex),
        Kind::RwLock => task(&RwLock),
        Kind::Queue => task(&Queue { capacity }),
        Kind::Stack => task(&Stack { capacity }),
        Kind::PriorityQueue => task(&PriorityQueue { capacity }),
        Kind::Set => task(&Set),
        Kind::Allocator => task(&Allocator::new(capacity, part)),
        Kind::Semaphore => task(&Semaphore { permits: capacity.unwrap_or(1) }),
        Kind::EventCount => task(&EventCount { initial: start }),
        Kind::Ring => task(&Ring::new(capacity, part)),
        Kind::Log => task(&Log),
    }
}
