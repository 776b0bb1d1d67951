//! What a call of `.retry` ends with that has no answer: the last error, why there was no further attempt, and what was tried.

use std::error::Error;
use std::fmt;
use std::io;

use crate::event::{Reason, Report};
use crate::instant::{Instant, Milliseconds};

/// A call that stopped: the last error as it was, why there was no further attempt, and what was tried.
///
/// Its text names the error and then says why the call stopped. So its [`source`](Error::source) is what stands behind that error, and a chain of
/// causes says nothing twice:
///
/// ```text
/// connection refused; stopped after 4 attempts within 3020 ms: all attempts are used up
/// ```
///
/// `?` takes it into `Box<dyn Error>` and `anyhow::Error` where `E` is an [`Error`]. In a function that returns `E` itself use
/// [`into_error`](RetryError::into_error); where `E` is a `String`, a `Box<dyn Error + Send + Sync>` or an `anyhow::Error`, [`erased`](RetryError::erased):
///
/// ```
/// use comeback::{AttemptTimedOut, RetryError, RetryPolicy, Retryable};
/// use std::{error, fmt, io};
///
/// async fn load() -> Result<String, io::Error> {
///     Ok("here".to_owned())
/// }
///
/// async fn boxed() -> Result<String, Box<dyn error::Error + Send + Sync>> {
///     Ok(load.retry(&RetryPolicy::read()).await?)
/// }
///
/// async fn as_it_was() -> Result<String, io::Error> {
///     load.retry(&RetryPolicy::read()).await.map_err(RetryError::into_error)
/// }
///
/// async fn again() -> Result<String, Box<dyn error::Error + Send + Sync>> {
///     Ok(boxed.retry(&RetryPolicy::read()).await.map_err(RetryError::erased)?)
/// }
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// assert_eq!(as_it_was().await.unwrap(), again().await.unwrap());
/// # }
/// ```
pub struct RetryError<E> {
    last: Option<E>,
    earlier: Option<E>,
    refused_until: Option<Instant>,
    reason: Reason,
    report: Box<Report>,
}

/// The last attempt has no error of its own, see [`RetryError::into_error`]: it was dropped at its limit, or, with a circuit breaker that refuses first
/// attempts, it was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptTimedOut {
    refused_until: Option<Instant>,
}

/// An error of any type, see [`RetryError::erased`]. Its text and its source are that error's.
pub struct AnyError(Box<dyn Error + Send + Sync>);

impl<E> RetryError<E> {
    /// `last` is the last attempt's error, `earlier` that of an attempt before if the last one was dropped.
    pub(super) fn new(
        last: Option<E>,
        earlier: Option<E>,
        reason: Reason,
        report: Report,
    ) -> RetryError<E> {
        RetryError {
            last,
            earlier,
            refused_until: None,
            reason,
            report: Box::new(report),
        }
    }

    /// No attempt was made: the circuit breaker refuses them until then.
    pub(super) fn refused(until: Instant, report: Report) -> RetryError<E> {
        RetryError {
            refused_until: Some(until),
            ..RetryError::new(None, None, Reason::Breaker, report)
        }
    }

    /// The last attempt's error; `None` if that attempt was dropped at its limit (see [`earlier`](RetryError::earlier)), or refused.
    pub fn last(&self) -> Option<&E> {
        self.last.as_ref()
    }

    /// The same, to keep.
    pub fn into_last(self) -> Option<E> {
        self.last
    }

    /// The last attempt's error, or what `otherwise` makes of this one if there is none.
    #[cfg(feature = "reqwest-middleware")]
    pub(super) fn into_last_or(mut self, otherwise: impl FnOnce(RetryError<E>) -> E) -> E {
        match self.last.take() {
            Some(last) => last,
            None => otherwise(self),
        }
    }

    /// If the last attempt was dropped at its limit: the error of the latest attempt that came back, if any did. It says nothing about what the dropped
    /// attempt sent.
    pub fn earlier(&self) -> Option<&E> {
        self.earlier.as_ref()
    }

    /// If a circuit breaker with [`refuse_first`](crate::CircuitBreaker::refuse_first) refused the call's first attempt: until when it refuses. No attempt was
    /// made, and the reason is [`Breaker`](Reason::Breaker). The instant is one of the call's clock.
    pub fn refused_until(&self) -> Option<Instant> {
        self.refused_until
    }

    /// The last attempt's error as the operation's own type, for functions that return it. An attempt that was dropped at its limit becomes an
    /// [`AttemptTimedOut`], which `std::io::Error`, `Box<dyn Error>` and `anyhow::Error` can be made from; implement `From` for a type of your own.
    ///
    /// The reason and the report are lost.
    pub fn into_error(self) -> E
    where
        E: From<AttemptTimedOut>,
    {
        let no_error = AttemptTimedOut {
            refused_until: self.refused_until,
        };
        self.last.unwrap_or_else(|| no_error.into())
    }

    /// The same with an error that is an [`Error`], where `E` itself is none.
    pub fn erased(self) -> RetryError<AnyError>
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let erase = |error: E| AnyError(error.into());
        RetryError {
            last: self.last.map(erase),
            earlier: self.earlier.map(erase),
            refused_until: self.refused_until,
            reason: self.reason,
            report: self.report,
        }
    }

    /// Why no further attempt was made.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Every attempt and every wait.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Whether the operation may have had its effect in any of its attempts. False only with proof: each attempt was classified as
    /// [`Verdict::NEVER_SENT`](crate::Verdict::NEVER_SENT), and no request within it may have gone out.
    pub fn may_have_arrived(&self) -> bool {
        self.report.may_have_arrived()
    }
}

impl<E: fmt::Display> fmt::Display for RetryError<E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let no_error = AttemptTimedOut {
            refused_until: self.refused_until,
        };
        match (&self.last, &self.earlier) {
            (Some(last), _) => write!(out, "{last}")?,
            (None, Some(earlier)) => write!(out, "{no_error} (before it: {earlier})")?,
            (None, None) => write!(out, "{no_error}")?,
        }
        write!(out, "; {}", Stopped(self.reason, &self.report))
    }
}

impl<E: fmt::Debug> fmt::Debug for RetryError<E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RetryError")
            .field("last", &self.last)
            .field("earlier", &self.earlier)
            .field("reason", &self.reason)
            .field("report", &self.report)
            .finish()
    }
}

impl<E: Error + 'static> Error for RetryError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.last.as_ref().or(self.earlier.as_ref())?.source()
    }
}

impl fmt::Display for AttemptTimedOut {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.refused_until {
            None => "the attempt reached its time limit",
            Some(_) => "the first attempt was refused",
        })
    }
}

impl Error for AttemptTimedOut {}

impl From<AttemptTimedOut> for io::Error {
    fn from(error: AttemptTimedOut) -> io::Error {
        let kind = match error.refused_until {
            None => io::ErrorKind::TimedOut,
            Some(_) => io::ErrorKind::ConnectionRefused,
        };
        io::Error::new(kind, error)
    }
}

impl AnyError {
    /// The error that it was, to be told by its type.
    pub fn get_ref(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }

    /// The same, to keep.
    pub fn into_inner(self) -> Box<dyn Error + Send + Sync> {
        self.0
    }
}

impl fmt::Display for AnyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

impl fmt::Debug for AnyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, out)
    }
}

impl Error for AnyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// Whether the call ended while an attempt was in flight, which a report does not tell of.
fn ended_in_flight(reason: Reason, report: &Report) -> bool {
    match report.attempts.last() {
        Some(last) => last.resumed.is_some(),
        None => reason != Reason::Breaker, // its first attempt was refused
    }
}

/// "stopped after 3 attempts within 2104 ms: all attempts are used up"
pub(super) struct Stopped<'a>(pub(super) Reason, pub(super) &'a Report);

impl fmt::Display for Stopped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reported = self.1.attempts.len() + self.1.abandoned as usize;
        let made = reported + usize::from(ended_in_flight(self.0, self.1));
        write!(out, "stopped after {made} attempt")?;
        if made != 1 {
            out.write_str("s")?;
        }
        if let Some(end) = self.1.end {
            write!(out, " within {}", Milliseconds::whole(end.elapsed))?;
        }
        write!(out, ": {}", self.0)
    }
}
