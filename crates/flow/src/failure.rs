//! What goes wrong with a unit, and what is kept of a unit that was given up on.
//!
//! A stage's code returns [`Failure`] with `?` from any error type. The stage's policy decides whether the
//! unit is tried again; when it is given up on, a [`DeadLetter`] keeps its input, stage, attempts and cause.

use std::any::Any;
use std::fmt;
use std::time::Duration;

/// Why one attempt of a unit in a stage failed.
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
    requeue_bytes: Option<u64>,
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
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

    /// A failure that no retry can mend: the unit goes straight to what the stage does after failure.
    pub fn permanent(message: impl Into<String>) -> Self {
        Failure::msg(message).to_permanent()
    }

    /// A failure because a time limit passed, for code that keeps its own clock (see
    /// [`Cx::deadline`](crate::Cx::deadline)).
    pub fn timeout(message: impl Into<String>) -> Self {
        Failure::new(Cause::Timeout, message.into())
    }

    /// The same failure, not to be retried.
    #[must_use]
    pub fn to_permanent(mut self) -> Self {
        self.permanent = true;
        self
    }

    /// The same failure, not to be retried sooner than after this pause: what a server asks for, for instance. The policy's
    /// own pause applies where it is longer.
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

    /// The shortest pause before the next attempt; zero: as the policy says.
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
        Failure { message: message.into(), cause, permanent: false, not_before: Duration::ZERO, requeue_bytes: None }
    }

    pub(crate) fn cancelled() -> Self {
        Failure::new(Cause::Cancelled, "the flow was abandoned while this unit ran".into())
    }

    pub(crate) fn over_budget(bytes: u64) -> Self {
        let mut failure = Failure::new(Cause::Cancelled, "cancelled to keep the byte budget".into());
        failure.requeue_bytes = Some(bytes);
        failure
    }

    /// The bytes the unit wants, when it only has to wait for memory and then runs again.
    pub(crate) fn requeue_bytes(&self) -> Option<u64> {
        self.requeue_bytes
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

/// A unit that was given up on, with everything needed to understand it or to run it again.
pub struct DeadLetter {
    /// The unit's number in its flow, counted from 0 in order of admission.
    pub unit: u64,
    /// The stage it failed in.
    pub stage: String,
    /// How often that stage tried it; 0 if it never ran there.
    pub attempts: u32,
    /// The kind of the last failure.
    pub cause: Cause,
    /// The last failure's message.
    pub message: String,
    /// The stage's input, as the last attempt left it.
    pub input: Option<Box<dyn Any + Send>>,
}

impl DeadLetter {
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
