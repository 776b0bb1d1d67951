//! The app's verdict on a result, where no protocol gives one.

use std::io;
use std::time::Duration;

use crate::outcome::{FailureKind, Outcome};

/// What one result of an operation means for the call.
///
/// ```
/// use comeback::Verdict;
/// use std::time::Duration;
///
/// fn verdict(result: &Result<String, std::io::Error>) -> Verdict {
///     match result {
///         Err(error) => match error.kind() {
///             std::io::ErrorKind::InvalidData => Verdict::PERMANENT,
///             std::io::ErrorKind::QuotaExceeded => Verdict::overloaded(Duration::from_secs(2)),
///             _ => Verdict::of_io(result),
///         },
///         Ok(_) => Verdict::ANSWER,
///     }
/// }
/// # assert_eq!(verdict(&Ok(String::new())), Verdict::ANSWER);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Like a server's answer with this status: the policy's `retry_statuses` go again, any other status is the answer.
    Status {
        /// The status. 429 and 503 wait by the policy's `overload` window, if it has one.
        status: u16,
        /// Like a server's `Retry-After`: nothing starts earlier, no edge ends the wait, and if it does not fit the call stops at once.
        retry_after: Option<Duration>,
    },
    /// A failure without an answer, by its kind: see [`FailureKind::class`]. A kind that means "never sent" is taken at its word, so it must be true of the
    /// whole attempt.
    Failed(FailureKind),
    /// The same without that proof: an attempt whose last connect was refused may have sent something before. Of kinds that mean "never sent" nothing but the
    /// name in events is left.
    Unproven(FailureKind),
}

impl Verdict {
    /// The result is the answer, or as good as another attempt would bring.
    pub const ANSWER: Verdict = Verdict::Status {
        status: 200,
        retry_after: None,
    };
    /// It may have had an effect, and no more is known: worth another attempt if the operation may be repeated.
    pub const IN_DOUBT: Verdict = Verdict::Failed(FailureKind::OtherIo);
    /// It provably had no effect: worth another attempt in any case.
    pub const NEVER_SENT: Verdict = Verdict::Failed(FailureKind::BeforeHeaders);
    /// Not worth another attempt.
    pub const PERMANENT: Verdict = Verdict::Failed(FailureKind::Unlisted);

    /// The other side is overloaded, and asked not to be tried again before this long.
    pub const fn overloaded(retry_after: Duration) -> Verdict {
        Verdict::Status {
            status: 503,
            retry_after: Some(retry_after),
        }
    }

    /// What an operation's I/O error means, by its kind: [`FailureKind::of_io`]. For [`classify`](crate::Retry::classify). It proves nothing about what was
    /// sent: say [`Verdict::Failed`] where the operation is a single connect.
    ///
    /// ```
    /// use comeback::{FailureKind, RetryPolicy, Retryable, Verdict, What};
    /// use std::io::{Error, ErrorKind};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// let connect = async || Err::<(), _>(Error::from(ErrorKind::ConnectionRefused));
    /// let call = connect.retry(&RetryPolicy::default()).classify(Verdict::of_io).await;
    /// let report = call.unwrap_err().report().clone();
    /// assert_eq!(report.attempts[0].what, What::Failure(FailureKind::ConnectRefused));
    /// # }
    /// ```
    pub fn of_io<T>(result: &Result<T, io::Error>) -> Verdict {
        match result {
            Ok(_) => Verdict::ANSWER,
            Err(error) => Verdict::Unproven(FailureKind::of_io(error)),
        }
    }

    /// Hands itself on as the core's outcome.
    pub(super) fn as_outcome<T>(self, hear: impl FnOnce(&Outcome<'_>) -> T) -> T {
        match self {
            Verdict::Failed(kind) => hear(&Outcome::failure(kind)),
            Verdict::Unproven(kind) => {
                let mut outcome = Outcome::failure(kind);
                outcome.evidence.sent_nothing = false;
                hear(&outcome)
            }
            Verdict::Status {
                status,
                retry_after: None,
            } => hear(&Outcome::response(status)),
            Verdict::Status {
                status,
                retry_after: Some(length),
            } => hear(&Outcome {
                retry_after: &[&as_line(length)],
                ..Outcome::response(status)
            }),
        }
    }
}

/// A length as a line of `Retry-After`: seconds with a decimal fraction. The reader rounds it up to milliseconds.
pub(super) fn as_line(length: Duration) -> String {
    format!("{}.{:09}", length.as_secs(), length.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retry_after::retry_after;

    #[test]
    fn a_length_becomes_a_line_that_reads_as_the_same_length() {
        for length in [
            Duration::from_millis(1),
            Duration::from_millis(1_250),
            Duration::from_secs(86_400),
        ] {
            let read = Verdict::overloaded(length)
                .as_outcome(|outcome| retry_after(outcome.retry_after, outcome.date, None));
            assert_eq!(read, Some(length));
        }
        let longest = Verdict::overloaded(Duration::MAX)
            .as_outcome(|outcome| retry_after(outcome.retry_after, outcome.date, None));
        assert!(longest > Some(Duration::from_secs(86_400)));
    }
}
