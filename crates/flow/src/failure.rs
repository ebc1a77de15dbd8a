//! Failures of units, and the dead letters of units that were given up on.
//!
//! A stage's code returns [`Failure`] with `?` from any error type. The stage's policy decides whether the unit is
//! retried; when the stage gives up on it, a [`DeadLetter`] keeps its input, stage, attempts and cause.

use std::any::Any;
use std::fmt;
use std::time::Duration;

/// The reason why one attempt of a unit in a stage failed.
///
/// Any `std::error::Error` converts into a `Failure` with `?`. Such a failure is *transient*: the stage's
/// retry policy applies. [`Failure::permanent`] says that trying again is useless.
///
/// ```
/// use millstream_flow::Failure;
/// fn parse(text: &str) -> Result<u32, Failure> {
///     text.parse().map_err(|e: std::num::ParseIntError| Failure::from(e).to_permanent())
/// }
/// assert!(parse("x").unwrap_err().is_permanent());
/// ```
pub struct Failure {
    message: Box<str>,
    cause: Cause,
    permanent: bool,
    not_before: Duration,
    requeue: Option<Requeue>,
}

/// Why a unit goes back to its stage's queue although nothing has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requeue {
    /// It waits for this many bytes of the budget.
    ForBytes(u64),
    /// Its needs have changed.
    ForNeeds,
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Cause {
    /// The stage's code returned an error.
    Error,
    /// The stage's code panicked; the process goes on.
    Panic,
    /// The stage's time limit passed.
    Timeout,
    /// The unit was dropped to make room for a newer one (a service with [`Overload::DropOldest`](crate::Overload)).
    Overload,
    /// The flow was abandoned while the unit ran.
    Cancelled,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::Error => "error",
            Cause::Panic => "panic",
            Cause::Timeout => "timeout",
            Cause::Overload => "overload",
            Cause::Cancelled => "cancelled",
        })
    }
}

impl Failure {
    /// A transient failure with a message.
    pub fn msg(message: impl Into<String>) -> Self {
        Failure::new(Cause::Error, message.into())
    }

    /// A failure that no retry can mend: the stage's policy after failure applies at once.
    pub fn permanent(message: impl Into<String>) -> Self {
        Failure::msg(message).to_permanent()
    }

    /// A failure because a time limit passed, for code that keeps its own clock (see
    /// [`Cx::deadline`](crate::Cx::deadline)).
    pub fn timeout(message: impl Into<String>) -> Self {
        Failure::new(Cause::Timeout, message.into())
    }

    /// Nothing failed: the unit has found out that it needs something else, and goes back to its stage's queue to wait for it.
    ///
    /// The unit gives back what it was granted in this stage, whatever that was to be held for, and no thread waits with it. Its
    /// needs and its weight are computed again from the payload, which the code has changed to say what is needed now: a fetch
    /// that is redirected leaves the slot of one host before it waits for the slot of another. After the
    /// [pause](Self::not_before), if there is one, the unit enters the queue behind the others. This counts neither as a failed
    /// attempt nor as a success, and nothing but the code itself limits how often it happens. It is no result that a time limit
    /// could discard, either.
    ///
    /// A weight that has grown counts at once, but waits for no room in the byte budget: code that makes its payload larger
    /// calls [`Cx::reserve`](crate::Cx::reserve) first.
    ///
    /// ```
    /// # use millstream_flow::*;
    /// let mut flow = Flow::builder::<()>("redirected");
    /// let host = flow.keyed_tokens("host", 1);
    /// let (get, done) = (flow.inlet::<String>("get"), flow.retire());
    /// flow.stage(get, |url: &mut String, _| {
    ///     if url == "old.example" {
    ///         *url = "new.example".into();
    ///         return Err(Failure::requeue("moved to new.example"));
    ///     }
    ///     Ok(())
    /// })
    /// .need(Need::keyed(host, |url: &String| url.clone()))
    /// .to(done);
    /// let report = flow.build(get)?.run(["old.example".to_owned(), "new.example".to_owned()]);
    /// assert_eq!((report.retired, report.stages[0].failures), (2, 0));
    /// # Ok::<(), BuildError>(())
    /// ```
    pub fn requeue(reason: impl Into<String>) -> Self {
        Failure { requeue: Some(Requeue::ForNeeds), ..Failure::new(Cause::Cancelled, reason.into()) }
    }

    /// The same failure, not to be retried.
    #[must_use]
    pub fn to_permanent(mut self) -> Self {
        self.permanent = true;
        self
    }

    /// The same failure, not to be retried sooner than after this pause: what a server asks for, for instance. The
    /// policy's own pause applies where it is longer.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use millstream_flow::Failure;
    /// let failure = Failure::msg("status 429").not_before(Duration::from_secs(7));
    /// assert_eq!(failure.pause(), Duration::from_secs(7));
    /// ```
    #[must_use]
    pub fn not_before(mut self, pause: Duration) -> Self {
        self.not_before = pause;
        self
    }

    /// The shortest pause before the next attempt; zero: as the policy says, and none after a [`requeue`](Self::requeue).
    pub fn pause(&self) -> Duration {
        self.not_before
    }

    /// The same failure with `context: ` before its message.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message).into();
        self
    }

    /// Whether retries are pointless.
    pub fn is_permanent(&self) -> bool {
        self.permanent
    }

    /// The kind of failure.
    pub fn cause(&self) -> Cause {
        self.cause
    }

    /// The message, the chain of causes included.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn new(cause: Cause, message: String) -> Self {
        Failure { message: message.into(), cause, permanent: false, not_before: Duration::ZERO, requeue: None }
    }

    pub(crate) fn cancelled() -> Self {
        Failure::new(Cause::Cancelled, "the flow was abandoned while this unit ran".into())
    }

    pub(crate) fn over_budget(bytes: u64) -> Self {
        let failure = Failure::new(Cause::Cancelled, "cancelled to keep the byte budget".into());
        Failure { requeue: Some(Requeue::ForBytes(bytes)), ..failure }
    }

    /// The same failure of a unit that has brought out children, so that it cannot run again.
    pub(crate) fn after_children(self) -> Self {
        Failure { requeue: None, ..self.to_permanent() }
    }

    /// Why the unit goes back to its queue, if it does.
    pub(crate) fn requeued(&self) -> Option<Requeue> {
        self.requeue
    }

    pub(crate) fn panic(payload: &(dyn Any + Send)) -> Self {
        let text = payload
            .downcast_ref::<&'static str>()
            .map(|s| (*s).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a panic whose payload is not text".into());
        Failure::new(Cause::Panic, text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failure({}: {})", self.cause, self.message)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Many error types already print their source.
            if !message.ends_with(&text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            source = cause.source();
        }
        Failure::new(Cause::Error, message)
    }
}

/// A unit that failed for good, with everything needed to understand it or to run it again.
#[non_exhaustive]
pub struct DeadLetter {
    /// The unit's number in its flow (see [`Cx::unit`](crate::Cx::unit)).
    pub unit: u64,
    /// The number of the unit that it was split from.
    pub parent: Option<u64>,
    /// The stage that the unit failed in.
    pub stage: String,
    /// The number of attempts in that stage; 0 if the unit never ran there.
    pub attempts: u32,
    /// The kind of the last failure.
    pub cause: Cause,
    /// The last failure's message.
    pub message: String,
    /// The stage's input, as the last attempt left it.
    pub input: Option<Box<dyn Any + Send>>,
}

impl DeadLetter {
    /// The letter of unit `unit` after one attempt in `stage`, without its input and without a parent; both, and the attempts, are
    /// fields.
    pub fn new(unit: u64, stage: impl Into<String>, cause: Cause, message: impl Into<String>) -> Self {
        let (stage, message) = (stage.into(), message.into());
        DeadLetter { unit, parent: None, stage, attempts: 1, cause, message, input: None }
    }

    /// The stage's input, if it is a `T`.
    pub fn input<T: 'static>(&self) -> Option<&T> {
        self.input.as_ref()?.downcast_ref()
    }
}

impl fmt::Debug for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetter")
            .field("unit", &self.unit)
            .field("stage", &self.stage)
            .field("attempts", &self.attempts)
            .field("cause", &self.cause)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unit {} in stage `{}` after {} attempt{}: {}: {}",
            self.unit,
            self.stage,
            self.attempts,
            if self.attempts == 1 { "" } else { "s" },
            self.cause,
            self.message
        )
    }
}
