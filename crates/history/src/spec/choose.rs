//! From a model to its specification.

use super::{
    Allocator, Counter, EventCount, KeyValue, Log, MultiRegister, Mutex, PriorityQueue, Queue, Register, Ring, RwLock,
    Semaphore, Set, Spec, Stack,
};
use crate::model::{Kind, Model};
use crate::part::Part;
use crate::value::Datum;

/// Something to do with a specification, whatever its type.
pub(crate) trait Task {
    /// What comes of it.
    type Output;

    /// Does it.
    fn run<S: Spec>(self, spec: &S) -> Self::Output;
}

/// Does the task with the model's specification of the part.
pub(crate) fn with_spec<T: Task>(model: &Model, part: &Part<'_>, task: T) -> T::Output {
    let &Model { kind, capacity, initial } = model;
    let start = match part.history().values().get(initial) {
        Datum::Int(start) => start,
        _ => 0,
    };
    match kind {
        Kind::Register => task.run(&Register { initial, cas: false }),
        Kind::CasRegister => task.run(&Register { initial, cas: true }),
        Kind::KeyValue => task.run(&KeyValue { initial }),
        Kind::MultiRegister => task.run(&MultiRegister),
        Kind::Counter | Kind::FetchAdd => task.run(&Counter { initial: start }),
        Kind::Mutex => task.run(&Mutex),
        Kind::RwLock => task.run(&RwLock),
        Kind::Queue => task.run(&Queue { capacity }),
        Kind::Stack => task.run(&Stack { capacity }),
        Kind::PriorityQueue => task.run(&PriorityQueue { capacity }),
        Kind::Set => task.run(&Set),
        Kind::Allocator => task.run(&Allocator::new(capacity, part)),
        Kind::Semaphore => task.run(&Semaphore { permits: capacity.unwrap_or(1) }),
        Kind::EventCount => task.run(&EventCount { initial: start }),
        Kind::Ring => task.run(&Ring::new(capacity, part)),
        Kind::Log => task.run(&Log),
    }
}
