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

    /// As the core's outcome.
    pub(super) fn outcome(self) -> Outcome<'static> {
        match self {
            Verdict::Failed(kind) => Outcome::failure(kind),
            Verdict::Unproven(kind) => {
                let mut outcome = Outcome::failure(kind);
                outcome.evidence.sent_nothing = false;
                outcome
            }
            Verdict::Status {
                status,
                retry_after,
            } => Outcome {
                server_wait: retry_after,
                ..Outcome::response(status)
            },
        }
    }
}
