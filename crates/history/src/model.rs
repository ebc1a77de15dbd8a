//! The built-in specifications by name: `queue`, `queue:8`, `register:0`, `key-value:""`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::operation::Op;
use crate::value::Value;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, [$($op:ident),*];)*) => {
        /// The kinds of objects whose specification is built in.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &'static [Kind] = &[$(Kind::$kind),*];

            /// The name on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Kind::$kind => $name,)*
                }
            }

            /// The operations of the kind.
            pub fn operations(self) -> &'static [Op] {
                match self {
                    $(Kind::$kind => &[$(Op::$op),*],)*
                }
            }
        }
    };
}

kinds! {
    /// One value: a read returns the value written last.
    Register = "register", [READ, WRITE];
    /// A register with compare-and-set.
    CasRegister = "cas-register", [READ, WRITE, CAS];
    /// A register for each key. Text can be appended to a key's value, and a key can be deleted.
    KeyValue = "key-value", [READ, WRITE, CAS, APPEND, DELETE];
    /// Several registers; one operation can read and write any number of them.
    MultiRegister = "multi-register", [TXN];
    /// A number with addition and subtraction.
    Counter = "counter", [ADD, GET];
    /// A number whose addition returns the previous value.
    FetchAdd = "fetch-and-add", [FETCH_ADD, READ];
    /// A lock that at most one process holds.
    Mutex = "mutex", [ACQUIRE, RELEASE];
    /// A lock that one writer or any number of readers hold.
    RwLock = "rw-lock", [ACQUIRE, RELEASE, ACQUIRE_READ, RELEASE_READ];
    /// A container: first in, first out.
    Queue = "queue", [ENQUEUE, DEQUEUE];
    /// A container: last in, first out.
    Stack = "stack", [PUSH, POP];
    /// A container: the smallest comes out first.
    PriorityQueue = "priority-queue", [INSERT, DELETE_MIN];
    /// A container that has each element at most once.
    Set = "set", [ADD, REMOVE, CONTAINS];
    /// A pool of objects: only a free object is allocated, and only an allocated object is freed.
    Allocator = "allocator", [ALLOC, FREE];
    /// A pool of permits, which processes acquire and release.
    Semaphore = "semaphore", [ACQUIRE, RELEASE];
    /// A count that only increases; processes can wait until it changes.
    EventCount = "event-count", [READ, ADVANCE, WAIT];
    /// A broadcast: every consumer sees every event, in the order of publication. The consumers are those that occur in
    /// the history; all exist from the start.
    Ring = "ring", [PUBLISH, CONSUME];
    /// A list of entries that grows only at the end.
    Log = "log", [APPEND, READ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A built-in specification: its kind and its parameters.
///
/// ```
/// use millstream_history::{Kind, Model};
///
/// let bounded: Model = "queue:8".parse()?;
/// assert_eq!(bounded, Model::new(Kind::Queue).with_capacity(8));
/// # Ok::<(), millstream_history::UnknownModel>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Model {
    /// The kind.
    pub kind: Kind,
    /// The capacity of a queue, stack, priority queue or ring, the number of an allocator's objects, or the number of a
    /// semaphore's permits. `None` means unbounded; for a semaphore, it means one permit.
    pub capacity: Option<u64>,
    /// The initial value. For registers and the keys of a store it is null unless given; for a counter, a fetch-and-add
    /// or an event count it is 0 unless given.
    pub initial: Value,
}

impl Model {
    /// A model without a capacity that starts from null or zero.
    pub const fn new(kind: Kind) -> Self {
        Model { kind, capacity: None, initial: Value::NULL }
    }

    /// The same model with a capacity.
    #[must_use]
    pub const fn with_capacity(self, capacity: u64) -> Self {
        Model { capacity: Some(capacity), ..self }
    }

    /// The same model with an initial value.
    #[must_use]
    pub const fn with_initial(self, initial: Value) -> Self {
        Model { initial, ..self }
    }
}

impl From<Kind> for Model {
    fn from(kind: Kind) -> Self {
        Model::new(kind)
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        match (self.capacity, self.initial) {
            (Some(capacity), _) => write!(f, ":{capacity}"),
            (None, Value::NULL) => Ok(()),
            (None, initial) => write!(f, ":{initial:?}"),
        }
    }
}

/// A string that is not the name of a model: no built-in specification has the name, or the specification cannot use
/// the part after the colon.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UnknownModel {
    /// No specification has this name.
    #[error("there is no specification `{0}`; there are {names}", names = names())]
    Name(String),
    /// The text after the colon is not a number.
    #[error("`{number}` in `{model}` is not a number")]
    Number {
        /// The requested name.
        model: String,
        /// The part after the colon.
        number: String,
    },
    /// The text after the colon is not an initial value.
    #[error(
        "`{initial}` in `{model}` is not an initial value: write an integer of 63 bits, true, false, null or \
         \"\" (an empty string)"
    )]
    Initial {
        /// The requested name.
        model: String,
        /// The part after the colon.
        initial: String,
    },
    /// The specification has neither a capacity nor an initial value.
    #[error("a {kind} has neither a capacity nor an initial value: write `{kind}` alone")]
    NoParameter {
        /// The specification.
        kind: Kind,
    },
}

fn names() -> String {
    Kind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
}

impl FromStr for Model {
    type Err = UnknownModel;

    fn from_str(text: &str) -> Result<Self, UnknownModel> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        let kind = kind_named(name).ok_or_else(|| UnknownModel::Name(name.to_owned()))?;
        let Some(parameter) = parameter else { return Ok(kind.into()) };
        let not_a_number = || UnknownModel::Number { model: text.to_owned(), number: parameter.to_owned() };
        match kind {
            Kind::Queue | Kind::Stack | Kind::PriorityQueue | Kind::Allocator | Kind::Semaphore | Kind::Ring => {
                Ok(Model::new(kind).with_capacity(parameter.parse().map_err(|_| not_a_number())?))
            }
            Kind::Counter | Kind::FetchAdd | Kind::EventCount => {
                Ok(Model::new(kind).with_initial(integer(parameter).ok_or_else(not_a_number)?))
            }
            Kind::Register | Kind::CasRegister | Kind::KeyValue | Kind::MultiRegister => match initial(parameter) {
                Some(initial) => Ok(Model::new(kind).with_initial(initial)),
                None => Err(UnknownModel::Initial { model: text.to_owned(), initial: parameter.to_owned() }),
            },
            Kind::Mutex | Kind::RwLock | Kind::Set | Kind::Log => Err(UnknownModel::NoParameter { kind }),
        }
    }
}

fn integer(text: &str) -> Option<Value> {
    let int: i64 = text.parse().ok()?;
    (Value::INT_MIN..=Value::INT_MAX).contains(&int).then(|| Value::int(int))
}

/// Parses a value that has the same word in every history.
fn initial(text: &str) -> Option<Value> {
    match text {
        "null" | "nil" => Some(Value::NULL),
        "true" => Some(Value::TRUE),
        "false" => Some(Value::FALSE),
        "\"\"" => Some(Value::EMPTY_TEXT),
        integer_text => integer(integer_text),
    }
}

fn kind_named(name: &str) -> Option<Kind> {
    let name = name.replace('_', "-");
    match name.as_str() {
        "lock" => Some(Kind::Mutex),
        "kv" => Some(Kind::KeyValue),
        name => Kind::ALL.iter().copied().find(|kind| kind.name() == name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_understood() {
        for &kind in Kind::ALL {
            assert_eq!(kind.name().parse(), Ok(Model::new(kind)));
            assert!(!kind.operations().is_empty());
        }
        assert_eq!("lock".parse(), Ok(Model::new(Kind::Mutex)));
        assert_eq!("priority_queue:4".parse(), Ok(Model::new(Kind::PriorityQueue).with_capacity(4)));
        for (name, kind, initial) in [
            ("register:-4", Kind::Register, Value::int(-4)),
            ("cas-register:true", Kind::CasRegister, Value::TRUE),
            ("key-value:\"\"", Kind::KeyValue, Value::EMPTY_TEXT),
            ("multi-register:0", Kind::MultiRegister, Value::int(0)),
            ("counter:7", Kind::Counter, Value::int(7)),
        ] {
            let model = Model::new(kind).with_initial(initial);
            assert_eq!((name.parse(), model.to_string().as_str()), (Ok(model), name));
        }
        assert_eq!("kv:nil".parse(), Ok(Model::new(Kind::KeyValue)));
    }

    #[test]
    fn invalid_models_are_refused() {
        assert_eq!("quue".parse::<Model>(), Err(UnknownModel::Name("quue".into())));
        assert_eq!("mutex:3".parse::<Model>(), Err(UnknownModel::NoParameter { kind: Kind::Mutex }));
        for text in ["queue:", "queue:-1", "queue:x", "counter:9223372036854775807", "counter:\"\""] {
            assert!(matches!(text.parse::<Model>(), Err(UnknownModel::Number { .. })), "{text}");
        }
        for text in ["register:9223372036854775807", "key-value:", "key-value:a", "multi-register:1.5"] {
            assert!(matches!(text.parse::<Model>(), Err(UnknownModel::Initial { .. })), "{text}");
        }
    }
}
