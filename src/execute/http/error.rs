//! What a call ends with that has no response, and the report that every answer carries.

use std::error::Error;
use std::fmt;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;

use super::super::future::{Stopped, ended_in_flight};
use crate::event::{Reason, Report};
use crate::outcome::{FailureKind, OutcomeClass};

/// A call that ended without a response to give.
///
/// Its text says what failed, how often it was tried and why it was not tried again: never a URL, a header or a body. The client's own
/// error, without its URL, is its [`source`](Error::source).
///
/// ```text
/// connect_refused; stopped after 4 attempts within 3.02s: all attempts are used up
/// ```
pub struct HttpError(Box<Inner>);

struct Inner {
    cause: Cause,
    reason: Option<Reason>,
    report: Report,
}

/// How the last attempt ended.
pub(super) enum Cause {
    /// The request was never valid.
    Invalid(reqwest::Error),
    /// Without a response, or in the middle of one that was to be read.
    Failed {
        kind: FailureKind,
        error: Option<reqwest::Error>,
        /// A server had answered in the last attempt.
        answered: bool,
    },
    /// With a response that was closed before the wait.
    Closed {
        status: StatusCode,
        headers: HeaderMap,
    },
}

impl HttpError {
    pub(super) fn new(cause: Cause, reason: Option<Reason>, report: Report) -> HttpError {
        let cause = match cause {
            Cause::Invalid(error) => Cause::Invalid(error.without_url()),
            Cause::Failed {
                kind,
                error,
                answered,
            } => Cause::Failed {
                kind,
                error: error.map(reqwest::Error::without_url),
                answered,
            },
            closed @ Cause::Closed { .. } => closed,
        };
        HttpError(Box::new(Inner {
            cause,
            reason,
            report,
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
            Cause::Failed { kind, .. } => Some(*kind),
            Cause::Invalid(_) | Cause::Closed { .. } => None,
        }
    }

    /// The status of the last response, which was closed before the wait in which the call ended.
    pub fn status(&self) -> Option<StatusCode> {
        match &self.0.cause {
            Cause::Closed { status, .. } => Some(*status),
            Cause::Invalid(_) | Cause::Failed { .. } => None,
        }
    }

    /// The headers of that response.
    pub fn headers(&self) -> Option<&HeaderMap> {
        match &self.0.cause {
            Cause::Closed { headers, .. } => Some(headers),
            Cause::Invalid(_) | Cause::Failed { .. } => None,
        }
    }

    /// The client's error of the last attempt, without its URL.
    pub fn client_error(&self) -> Option<&reqwest::Error> {
        match &self.0.cause {
            Cause::Invalid(error) => Some(error),
            Cause::Failed { error, .. } => error.as_ref(),
            Cause::Closed { .. } => None,
        }
    }

    /// Whether some attempt may have reached the server: then only the server knows whether the request took effect.
    pub fn is_in_doubt(&self) -> bool {
        let report = &self.0.report;
        let reported = report.attempts.iter().any(|attempt| {
            matches!(
                attempt.class,
                OutcomeClass::InDoubt | OutcomeClass::TransientStatus
            )
        });
        let unreported = match self.0.cause {
            Cause::Failed { kind, answered, .. } if ended_in_flight(report) => {
                answered || kind.class() == OutcomeClass::InDoubt
            }
            _ => false,
        };
        reported || unreported || report.abandoned > 0
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.cause {
            Cause::Invalid(_) => return out.write_str("the request is invalid"),
            Cause::Failed { kind, .. } => write!(out, "{}", kind.name())?,
            Cause::Closed { status, .. } => write!(out, "status {}", status.as_u16())?,
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
            .field("report", &self.0.report)
            .field("source", &self.client_error())
            .finish()
    }
}

impl Error for HttpError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
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
