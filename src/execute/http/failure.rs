//! An attempt that failed: the kind of its failure, the client's error, and whether anything was sent.

use std::error::Error;

use super::client::Lease;
use super::error::Cause;
use super::kind::{kind_of, kind_of_reading, proves_unsent};
use super::observer::AttemptObserver;
use crate::outcome::FailureKind;

/// An attempt without a response, or whose response broke off while it was read.
pub(super) struct Failure {
    pub(super) kind: FailureKind,
    pub(super) error: Option<reqwest::Error>,
    /// The error of the app's hook, if that failed and no request was made.
    pub(super) hook: Option<Box<dyn Error + Send + Sync>>,
    /// Proof that no request of the attempt wrote its head, or that its stream was refused.
    pub(super) sent_nothing: bool,
    /// Whether the client was handed the request.
    pub(super) was_made: bool,
}

impl Failure {
    /// No response head came: with the client's error, or with none because nothing moved for too long.
    pub(super) fn without_head(
        error: Option<reqwest::Error>,
        lease: &Lease,
        observer: &AttemptObserver,
    ) -> Failure {
        let kind = error.as_ref().map(|error| kind_of(error, observer));
        let is_proof = error
            .as_ref()
            .is_some_and(|error| proves_unsent(error, observer));
        Failure {
            kind: kind.unwrap_or(FailureKind::ReadTimeout),
            error,
            hook: None,
            sent_nothing: is_proof || !lease.connected.ever(),
            was_made: true,
        }
    }

    /// The response broke off while its body was read.
    pub(super) fn of_reading(error: reqwest::Error) -> Failure {
        Failure {
            kind: kind_of_reading(&error),
            error: Some(error),
            hook: None,
            sent_nothing: false,
            was_made: true,
        }
    }

    /// The request's body could not be made, so nothing was sent.
    pub(super) fn without_body() -> Failure {
        Failure::unsent(FailureKind::RequestBody, None)
    }

    /// The attempt ended before its request was made.
    pub(super) fn unsent(kind: FailureKind, hook: Option<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure {
            kind,
            error: None,
            hook,
            sent_nothing: true,
            was_made: false,
        }
    }

    /// Whether it waited for what did not come.
    pub(super) fn ended_by_time(&self) -> bool {
        let kinds = [
            FailureKind::ReadTimeout,
            FailureKind::WriteTimeout,
            FailureKind::ConnectTimeout,
        ];
        kinds.contains(&self.kind) || self.error.as_ref().is_some_and(reqwest::Error::is_timeout)
    }
}

impl From<Failure> for Cause {
    fn from(failure: Failure) -> Cause {
        let Failure {
            kind, error, hook, ..
        } = failure;
        match hook {
            Some(error) => Cause::Hook { kind, error },
            None => Cause::Failed { kind, error },
        }
    }
}
