//! Selection of a model's specification.

use super::{
    Allocator, Counter, EventCount, KeyValue, Log, MultiRegister, Mutex, PriorityQueue, Queue, Register, Ring, RwLock,
    Semaphore, Set, Spec, Stack,
};
use crate::model::{Kind, Model};
use crate::part::Part;
use crate::value::Datum;

/// A task to be run with a specification of any type.
pub(crate) trait Task {
    /// The result.
    type Output;

    /// Runs the task.
    fn run<S: Spec>(self, spec: &S) -> Self::Output;
}

/// The subject of a check: a model, or a custom specification.
pub(crate) trait Subject {
    /// Runs the task with the specification of the part.
    fn with<T: Task>(&self, part: &Part<'_>, task: T) -> T::Output;

    /// The model, if the subject is one.
    fn model(&self) -> Option<&Model>;
}

impl Subject for Model {
    fn with<T: Task>(&self, part: &Part<'_>, task: T) -> T::Output {
        with_spec(self, part, task)
    }

    fn model(&self) -> Option<&Model> {
        Some(self)
    }
}

/// A custom specification.
pub(crate) struct Own<'s, S>(pub(crate) &'s S);

impl<S: Spec> Subject for Own<'_, S> {
    fn with<T: Task>(&self, _: &Part<'_>, task: T) -> T::Output {
        task.run(self.0)
    }

    fn model(&self) -> Option<&Model> {
        None
    }
}

/// Runs the task with the model's specification of the part.
pub(crate) fn with_spec<T: Task>(model: &Model, part: &Part<'_>, task: T) -> T::Output {
    let &Model { kind, capacity, initial } = model;
    let start = match part.history().values().get(initial) {
        Datum::Int(start) => start,
        _ => 0,
    };
    match kind {
        Kind::Register => task.run(&Register { initial, cas: false }),
        Kind::CasRegister => task.run(&Register { initial, cas: true }),
        Kind::KeyValue => task.run(&KeyValue::new(initial, part)),
        Kind::MultiRegister => task.run(&MultiRegister { initial }),
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
