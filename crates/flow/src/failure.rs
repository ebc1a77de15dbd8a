//! Failures of units, and the dead letters of units that were given up.
//!
//! With `?`, a stage's code turns any error into a [`Failure`]. The stage's policy decides whether the unit is retried.
//! When the stage gives up on the unit, a [`DeadLetter`] keeps the unit's input, stage, attempts and cause.

use std::any::Any;
use std::fmt;
use std::time::Duration;

/// The reason why one attempt of a unit in a stage failed.
///
/// Any `std::error::Error` converts into a `Failure` with `?`. Such a failure is *transient*: the stage's retry policy
/// applies. [`Failure::permanent`] is for failures that a retry cannot fix.
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

/// The reason why a unit returns to its stage's queue although nothing has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requeue {
    /// The unit waits for this many bytes of the budget.
    ForBytes(u64),
    /// The unit's needs have changed.
    ForNeeds,
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Cause {
    /// The stage's code returned an error.
    Error,
    /// The stage's code panicked. The process continues.
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

    /// A failure that no retry can fix. The stage's [`AfterFailure`](crate::AfterFailure) policy applies at once.
    pub fn permanent(message: impl Into<String>) -> Self {
        Failure::msg(message).to_permanent()
    }

    /// A failure because a time limit passed, for code that enforces its own time limit (see
    /// [`Cx::deadline`](crate::Cx::deadline)).
    pub fn timeout(message: impl Into<String>) -> Self {
        Failure::new(Cause::Timeout, message.into())
    }

    /// Creates a result that is not a failure: the code has found that the unit needs other resources, and returns the
    /// unit to its stage's queue to wait for them.
    ///
    /// The unit releases everything that this stage granted it, even the needs that it would have held until a later
    /// stage. While the unit waits, it does not occupy a thread. The unit's needs and weight are computed again from
    /// the payload, which the code has changed for that purpose. For example, a fetch that is redirected releases its
    /// slot at one host before it waits for a slot at another. After the [pause](Self::not_before), if there is one,
    /// the unit enters the queue behind the others. A requeue counts neither as a failed attempt nor as a success, and
    /// the engine does not limit the number of requeues. A requeue takes effect even after the stage's time limit.
    ///
    /// An increase of the weight counts at once, without a wait for room in the byte budget. So code that makes its
    /// payload larger should call [`Cx::reserve`](crate::Cx::reserve) first.
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

    /// The same failure, marked as permanent, so that it is not retried.
    #[must_use]
    pub fn to_permanent(mut self) -> Self {
        self.permanent = true;
        self
    }

    /// The same failure, with a minimum pause before the retry, for example because a server has asked for one. If the
    /// policy's own pause is longer, that pause applies instead.
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

    /// The minimum pause before the next attempt. Zero means that only the policy's pause applies or, after a
    /// [`requeue`](Self::requeue), no pause.
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

    /// The message, including the chain of causes.
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

    /// The same failure, for a unit that has already produced children and therefore cannot run again.
    pub(crate) fn after_children(self) -> Self {
        Failure { requeue: None, ..self.to_permanent() }
    }

    /// The reason why the unit returns to its queue, if it does.
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
            // Many error types print their source in their own message. Such a source is not added again.
            if !message.ends_with(&text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            source = cause.source();
        }
        Failure::new(Cause::Error, message)
    }
}

/// A unit that failed for good, with all the information needed to understand the failure or to run the unit again.
#[non_exhaustive]
pub struct DeadLetter {
    /// The unit's number in its flow (see [`Cx::unit`](crate::Cx::unit)).
    pub unit: u64,
    /// The number of the unit that this unit was split from.
    pub parent: Option<u64>,
    /// The stage in which the unit failed.
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
    /// A letter for unit `unit` after one attempt in `stage`, without an input or a parent. To set these, or the
    /// attempts, assign the fields.
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
