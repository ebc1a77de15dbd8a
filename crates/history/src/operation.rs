//! One operation of a history: its process, its request, its times, and its outcome.

use crate::value::Value;

/// The name of an operation, as a number. The constants are the names of the built-in specifications' operations.
///
/// Names of your own come from [`Builder::op`](crate::Builder::op).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Op(pub(crate) u16);

macro_rules! ops {
    ($($(#[$doc:meta])* $constant:ident = $name:literal;)*) => {
        impl Op {
            ops!(@constants 0u16; $($(#[$doc])* $constant)*);

            /// The names of the constants, in their order.
            pub(crate) const NAMES: &'static [&'static str] = &[$($name),*];
        }
    };
    (@constants $number:expr; $(#[$doc:meta])* $constant:ident $($rest:tt)*) => {
        $(#[$doc])*
        pub const $constant: Op = Op($number);
        ops!(@constants $number + 1; $($rest)*);
    };
    (@constants $number:expr;) => {};
}

ops! {
    /// `read`: the output is the value. For an event count this is the count. For a log it is the entry whose index is
    /// the input, or all entries if there is no input.
    READ = "read";
    /// `write`: the input is the new value.
    WRITE = "write";
    /// `cas`: the input is `[old, new]`, the output whether it succeeded.
    CAS = "cas";
    /// `enqueue`: the output is `false` if the queue was full.
    ENQUEUE = "enqueue";
    /// `dequeue`: the output is null if the queue was empty.
    DEQUEUE = "dequeue";
    /// `push`: the output is `false` if the stack was full.
    PUSH = "push";
    /// `pop`: the output is null if the stack was empty.
    POP = "pop";
    /// `add`: of a set, the output is whether the element is new; of a counter, the input is the amount to add.
    ADD = "add";
    /// `remove`: the output is whether the element was present.
    REMOVE = "remove";
    /// `contains`: the output is whether the element is present.
    CONTAINS = "contains";
    /// `insert`: the input is the priority.
    INSERT = "insert";
    /// `delete_min`: the output is the smallest priority, null if there is none.
    DELETE_MIN = "delete_min";
    /// `alloc`: the output is the object, null if none is free.
    ALLOC = "alloc";
    /// `free`: the input is the object.
    FREE = "free";
    /// `acquire`: the output is `false` if the attempt failed; of a semaphore, the input is the number of permits.
    ACQUIRE = "acquire";
    /// `release`: undoes an `acquire`.
    RELEASE = "release";
    /// `acquire_read`: the shared side of a reader-writer lock.
    ACQUIRE_READ = "acquire_read";
    /// `release_read`: undoes an `acquire_read`.
    RELEASE_READ = "release_read";
    /// `get`: the output is the counter's value.
    GET = "get";
    /// `fetch_add`: the input is the amount to add, the output the previous value.
    FETCH_ADD = "fetch_add";
    /// `advance`: increases an event count by the input (null: by one).
    ADVANCE = "advance";
    /// `wait`: returns when the event count differs from the input.
    WAIT = "wait";
    /// `publish`: the input is the event.
    PUBLISH = "publish";
    /// `consume`: the input is the consumer (null: the calling process), the output its next event, null if there is
    /// none.
    CONSUME = "consume";
    /// `append`: for a log, the output is the index of the new entry, null if it is not reported. For a key's text, the
    /// input is the added text.
    APPEND = "append";
    /// `delete`: removes the key's value.
    DELETE = "delete";
    /// `txn`: a list of steps `["read", key, value]` and `["write", key, value]` that all take effect at one moment.
    TXN = "txn";
}

/// The status of an operation's outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Status {
    /// The operation returned, and the output is its answer.
    #[default]
    Ok,
    /// The operation certainly had no effect. Pictures show it; every check ignores it.
    Fail,
    /// The operation may have taken effect at any time after its call, may still take effect, or may never take effect.
    Info,
}

impl Status {
    /// The name in files: `ok`, `fail` or `info`.
    pub fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Fail => "fail",
            Status::Info => "info",
        }
    }
}

/// One operation as a struct; a [`History`](crate::History) stores operations in columns.
///
/// ```
/// use millstream_history::{Builder, Op, Operation, Value};
///
/// let mut builder = Builder::new();
/// builder.push(Operation { call: 10, ret: Some(25), ..Operation::new(3, Op::ENQUEUE, Value::int(17)) })?;
/// assert_eq!(builder.finish()?.len(), 1);
/// # Ok::<(), millstream_history::Contradiction>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The process that called it. A process has one operation at a time.
    pub process: u32,
    /// The name of the operation.
    pub op: Op,
    /// The object, in a history of several objects; each object is checked alone.
    pub key: Option<Value>,
    /// The input.
    pub input: Value,
    /// The answer; meaningless unless the status is [`Status::Ok`].
    pub output: Value,
    /// The time of the call, by any clock that never runs backwards: nanoseconds, cycles or event numbers.
    pub call: u64,
    /// The time of the return, by the same clock; `None` for a pending operation.
    pub ret: Option<u64>,
    /// The status of the outcome; a pending operation counts as [`Status::Info`] unless it failed.
    pub status: Status,
}

impl Operation {
    /// An operation called at time 0 that has not returned.
    pub fn new(process: u32, op: Op, input: Value) -> Self {
        Operation { process, op, key: None, input, output: Value::NULL, call: 0, ret: None, status: Status::Ok }
    }
}
