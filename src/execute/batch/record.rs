//! What became of a batch, record by record.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::event::{Reason, Report};

/// What became of a batch.
#[derive(Debug)]
#[non_exhaustive]
pub struct Batched<T, E> {
    /// One for each record, in the order they came.
    pub records: Vec<Record<T, E>>,
    /// Why there was no further round; `None`: nothing was left that was worth one.
    pub reason: Option<Reason>,
    /// The rounds and the waits between them.
    pub report: Report,
}

impl<T, E> Batched<T, E> {
    /// Whether every record is done.
    pub fn is_complete(&self) -> bool {
        self.records.iter().all(|record| record.result.is_ok())
    }
}

/// What became of one record.
#[derive(Debug)]
#[non_exhaustive]
pub struct Record<T, E> {
    /// Its answer, or its last error.
    pub result: Result<T, RecordError<E>>,
    /// Whether a round with this record ended without saying what became of it. Then it may have had its effect, whatever `result` says; and if `result`
    /// is `Ok`, perhaps twice.
    pub in_doubt: bool,
    /// How many rounds it was part of.
    pub rounds: u32,
}

/// A record that is not done.
#[derive(Debug)]
#[non_exhaustive]
pub struct RecordError<E> {
    /// How its last round failed.
    pub cause: RecordFailure<E>,
    /// Why it did not go again.
    pub reason: Reason,
    /// Whether the record may have had its effect, in any round that it was part of: false only with proof.
    pub may_have_arrived: bool,
}

/// How a record's last round failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordFailure<E> {
    /// The record itself.
    Record(E),
    /// The round, with all its records.
    Round(Arc<E>),
    /// The round reached its time limit and was dropped.
    TimedOut,
    /// The operation returned a different number of results than it got records, so nobody knows which result belongs to which. Not repeated.
    WrongLength {
        /// How many records it got.
        sent: usize,
        /// How many results it answered with.
        returned: usize,
    },
}

impl<E> RecordFailure<E> {
    /// The operation's own error, if that is how it failed.
    pub fn error(&self) -> Option<&E> {
        match self {
            RecordFailure::Record(error) => Some(error),
            RecordFailure::Round(error) => Some(error),
            RecordFailure::TimedOut | RecordFailure::WrongLength { .. } => None,
        }
    }
}

impl<E> fmt::Display for RecordError<E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            RecordFailure::Record(_) => write!(out, "the record failed: {}", self.reason),
            RecordFailure::Round(_) => write!(out, "its round failed: {}", self.reason),
            RecordFailure::TimedOut => {
                write!(out, "its round reached its time limit: {}", self.reason)
            }
            RecordFailure::WrongLength { sent, returned } => write!(
                out,
                "{returned} results came back for {sent} records; there must be one for each, in order"
            ),
        }
    }
}

impl<E: Error + 'static> Error for RecordError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let error = self.cause.error()?;
        Some(error)
    }
}

/// One record on its way.
pub(super) struct RecordState<T, E> {
    pub(super) answer: Option<T>,
    pub(super) failure: Option<RecordFailure<E>>,
    /// Set when it does not go again, for a reason of its own.
    pub(super) reason: Option<Reason>,
    pub(super) in_doubt: bool,
    pub(super) may_have_arrived: bool,
    pub(super) rounds: u32,
}

impl<T, E> RecordState<T, E> {
    pub(super) fn new() -> RecordState<T, E> {
        RecordState {
            answer: None,
            failure: None,
            reason: None,
            in_doubt: false,
            may_have_arrived: false,
            rounds: 0,
        }
    }

    pub(super) fn end(self, reason: Option<Reason>) -> Record<T, E> {
        let result = self.answer.ok_or_else(|| RecordError {
            cause: self.failure.unwrap_or(RecordFailure::TimedOut),
            reason: self.reason.or(reason).unwrap_or(Reason::Permanent),
            may_have_arrived: self.may_have_arrived,
        });
        Record {
            result,
            in_doubt: self.in_doubt,
            rounds: self.rounds,
        }
    }
}
