//! What a call ends with that has no response, and the report that every answer carries.

use std::error::Error;
use std::fmt;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;

use super::super::retry_error::Stopped;
use crate::event::{Reason, Report};
use crate::instant::Instant;
use crate::outcome::FailureKind;

/// A call that ended without a response to give.
///
/// Its text says what failed, how often it was tried and why it was not tried again: never a URL, a header or a body. The client's own
/// error, without its URL, is its [`source`](Error::source).
///
/// ```text
/// connect_refused; stopped after 4 attempts within 3020 ms: all attempts are used up
/// ```
pub struct HttpError(Box<Inner>);

struct Inner {
    cause: Cause,
    reason: Option<Reason>,
    report: Report,
    may_have_arrived: bool,
}

/// How the last attempt ended.
pub(super) enum Cause {
    /// The request was never valid.
    Invalid(reqwest::Error),
    /// Without a response, or in the middle of one that was to be read.
    Failed {
        kind: FailureKind,
        error: Option<reqwest::Error>,
    },
    /// In the app's hook, before its request was made.
    Hook {
        kind: FailureKind,
        error: Box<dyn Error + Send + Sync>,
    },
    /// Before it was made, by the circuit breaker.
    Refused { until: Instant },
    /// With a response that was closed before the wait.
    Closed {
        status: StatusCode,
        headers: HeaderMap,
    },
}

impl HttpError {
    pub(super) fn new(
        cause: Cause,
        reason: Option<Reason>,
        report: Report,
        may_have_arrived: bool,
    ) -> HttpError {
        let cause = match cause {
            Cause::Invalid(error) => Cause::Invalid(error.without_url()),
            Cause::Failed { kind, error } => Cause::Failed {
                kind,
                error: error.map(reqwest::Error::without_url),
            },
            other @ (Cause::Closed { .. } | Cause::Hook { .. } | Cause::Refused { .. }) => other,
        };
        HttpError(Box::new(Inner {
            cause,
            reason,
            report,
            may_have_arrived,
        }))
    }

    /// Why the call stopped; `None` if no policy was asked.
    pub fn reason(&self) -> Option<Reason> {
        self.0.reason
    }

    /// What was tried: each attempt, its outcome, its wait.
    pub fn report(&self) -> &Report {
        &self.0.report
    }

    /// How the last attempt failed; `None` if it had a response.
    pub fn kind(&self) -> Option<FailureKind> {
        match &self.0.cause {
            Cause::Failed { kind, .. } | Cause::Hook { kind, .. } => Some(*kind),
            Cause::Invalid(_) | Cause::Closed { .. } | Cause::Refused { .. } => None,
        }
    }

    /// The status of the last response, which was closed before the wait in which the call ended.
    pub fn status(&self) -> Option<StatusCode> {
        match &self.0.cause {
            Cause::Closed { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The headers of that response.
    pub fn headers(&self) -> Option<&HeaderMap> {
        match &self.0.cause {
            Cause::Closed { headers, .. } => Some(headers),
            _ => None,
        }
    }

    /// If the circuit breaker refused the call's first attempt ([`refuse_first`](crate::CircuitBreaker::refuse_first)): until when it refuses, by the clock of
    /// the executor's [`Connectivity`](crate::Connectivity). No attempt was made, and the reason is [`Breaker`](Reason::Breaker).
    pub fn refused_until(&self) -> Option<Instant> {
        match self.0.cause {
            Cause::Refused { until } => Some(until),
            _ => None,
        }
    }

    /// The client's error of the last attempt, without its URL.
    pub fn client_error(&self) -> Option<&reqwest::Error> {
        match &self.0.cause {
            Cause::Invalid(error) => Some(error),
            Cause::Failed { error, .. } => error.as_ref(),
            Cause::Closed { .. } | Cause::Hook { .. } | Cause::Refused { .. } => None,
        }
    }

    /// Whether the request may have arrived in any of its attempts; then only the server knows whether it took effect. False only with proof: no attempt
    /// wrote a head, or its stream was refused. Only then may the app send a request again that must not arrive twice.
    pub fn may_have_arrived(&self) -> bool {
        self.0.may_have_arrived
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.cause {
            Cause::Invalid(_) => return out.write_str("the request is invalid"),
            Cause::Failed { kind, .. } => write!(out, "{}", kind.name())?,
            Cause::Hook { kind, .. } => write!(out, "{} before the attempt", kind.name())?,
            Cause::Closed { status, .. } => write!(out, "status {}", status.as_u16())?,
            Cause::Refused { .. } => out.write_str("the first attempt was refused")?,
        }
        match self.0.reason {
            Some(reason) => write!(out, "; {}", Stopped(reason, &self.0.report)),
            None => Ok(()), // no policy was asked
        }
    }
}

impl fmt::Debug for HttpError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("HttpError")
            .field("kind", &self.kind())
            .field("status", &self.status())
            .field("reason", &self.0.reason)
            .field("may_have_arrived", &self.0.may_have_arrived)
            .field("report", &self.0.report)
            .field("source", &self.client_error())
            .finish()
    }
}

impl Error for HttpError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        if let Cause::Hook { error, .. } = &self.0.cause {
            return Some(&**error);
        }
        self.client_error()
            .map(|error| error as &(dyn Error + 'static))
    }
}

/// The report on a response.
pub trait Reported {
    /// What was tried before this answer; `None` if the first answer was the answer.
    fn retry_report(&self) -> Option<&Report>;
}

impl Reported for reqwest::Response {
    fn retry_report(&self) -> Option<&Report> {
        self.extensions().get()
    }
}
