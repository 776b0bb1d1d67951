//! Batches: one call for many records. Only the records that are worth it go again, with one backoff per round, not per record.
//!
//! Here is what is written at a call site; `batch/rounds.rs` makes the rounds, `batch/record.rs` says what became of each record.

mod record;

mod round;

mod rounds;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::sync::Semaphore;

use super::aggregates::Aggregates;
use super::connectivity::Connectivity;
use super::drive::{Drive, Ended};
use super::hooks::{By, CallSite, Classify, Nobody, Notify, To, call_site_setters};
use super::listener::RetryEvent;
use super::verdict::Verdict;
use crate::event::Report;
use crate::policy::RetryPolicy;
use crate::request::RequestFacts;
use rounds::Rounds;

pub use record::{Batched, Record, RecordError, RecordFailure};
pub use round::{Round, RoundOperation};

/// Sends `records` with `operation` in rounds: the first round has all of them, each later one those that failed and are worth another attempt.
///
/// `operation` is any async function over a [`Round`], which is a slice of records. It answers with one result per record, in order, or with one error for all of
/// them. As with [`Retryable::retry`](crate::Retryable::retry) you say by calling this that records **may be repeated**; say less with
/// [`classify`](Batch::classify) and [`request`](Batch::request).
///
/// ```
/// use comeback::{batch, Connectivity, RetryPolicy, Verdict};
///
/// async fn put(records: &[u32]) -> Result<Vec<Result<u32, String>>, String> {
///     Ok(records.iter().map(|record| Ok(record * 2)).collect())
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let hub = Connectivity::new();
/// let policy = RetryPolicy::batch();
/// let sent = batch(&policy, vec![1, 2, 3], |records| async move { put(&records).await })
///     .connectivity(&hub)
///     .classify(|error| if error == "malformed" { Verdict::PERMANENT } else { Verdict::IN_DOUBT })
///     .await;
/// assert!(sent.is_complete());
/// assert_eq!(sent.records[2].result.as_ref().ok(), Some(&6));
/// # }
/// ```
///
/// A round is an attempt as [`Retryable`](crate::Retryable) describes it. What it sends through layers of ours is known for all its records together,
/// because nobody sees which request belongs to which record. So no round follows one with a request that may have gone out and must not be repeated.
///
/// A dropped batch drops the round in flight and says nothing about its records. A batch that stops says what became of each.
#[allow(clippy::type_complexity)] // no closure is boxed
pub fn batch<'p, R, F, A, T, E>(
    policy: &'p RetryPolicy,
    records: impl Into<Arc<[R]>>,
    operation: F,
) -> Batch<'p, R, F, By<fn(&E) -> Verdict>>
where
    F: FnMut(Round<R>) -> A,
    A: Future<Output = Result<Vec<Result<T, E>>, E>>,
{
    Batch {
        records: records.into(),
        operation,
        policy,
        limit: None,
        site: CallSite::new(),
        classify: By(|_| Verdict::IN_DOUBT),
        notify: Nobody,
    }
}

/// A batch to be awaited, see [`batch`].
///
/// - All records of a round wait together: by the policy's `overload` window if any of them met 429 or 503, and not before the longest
///   `retry_after` of all.
/// - A cap ends the batch with what it has: records that were done stay done.
/// - The events are those of one call whose attempts are the rounds. A batch without records makes no call.
#[must_use = "a batch does nothing unless awaited"]
pub struct Batch<'p, R, F, C, N = Nobody> {
    records: Arc<[R]>,
    operation: F,
    policy: &'p RetryPolicy,
    limit: Option<Arc<Semaphore>>,
    site: CallSite<'p>,
    classify: C,
    notify: N,
}

impl<'p, R, F, C, N> Batch<'p, R, F, C, N>
where
    F: RoundOperation<R>,
{
    call_site_setters!(with restart);

    /// How many rounds of all batches that share this semaphore may be under way. A batch that waits for its next round holds no permit. It waits for its
    /// first permit without a limit of time, and begins when it has it; it waits for later permits only within its own time.
    pub fn limit(mut self, limit: &Arc<Semaphore>) -> Self {
        self.limit = Some(limit.clone());
        self
    }

    /// What an error means, of a record or of a whole round. Without it every error is in doubt.
    pub fn classify<V: FnMut(&F::Error) -> Verdict>(
        self,
        classify: V,
    ) -> Batch<'p, R, F, By<V>, N> {
        Batch {
            records: self.records,
            operation: self.operation,
            policy: self.policy,
            limit: self.limit,
            site: self.site,
            classify: By(classify),
            notify: self.notify,
        }
    }

    /// Hears the batch's events in order.
    pub fn notify<L: FnMut(&RetryEvent<'_>)>(self, notify: L) -> Batch<'p, R, F, C, To<L>> {
        Batch {
            records: self.records,
            operation: self.operation,
            policy: self.policy,
            limit: self.limit,
            site: self.site,
            classify: self.classify,
            notify: To(notify),
        }
    }
}

impl<'p, R, F, C, N> IntoFuture for Batch<'p, R, F, C, N>
where
    R: Clone,
    F: RoundOperation<R>,
    C: Classify<F::Error>,
    N: Notify,
{
    type Output = Batched<F::Answer, F::Error>;
    type IntoFuture = Batching<'p, R, F, C, N>;

    fn into_future(self) -> Batching<'p, R, F, C, N> {
        let rounds = Rounds::new(
            self.records,
            self.operation,
            self.policy,
            self.limit,
            &self.site,
            self.classify,
            self.notify,
        );
        Batching {
            drive: Drive::new(rounds, self.policy, self.site.setting()),
        }
    }
}

pin_project! {
    /// A batch under way, see [`batch`].
    #[must_use = "a batch does nothing unless awaited"]
    pub struct Batching<'p, R, F, C, N>
    where
        R: Clone,
        F: RoundOperation<R>,
        C: Classify<F::Error>,
        N: Notify,
    {
        #[pin]
        drive: Drive<Rounds<'p, R, F, C, N>, &'p RetryPolicy>,
    }
}

impl<R, F, C, N> Future for Batching<'_, R, F, C, N>
where
    R: Clone,
    F: RoundOperation<R>,
    C: Classify<F::Error>,
    N: Notify,
{
    type Output = Batched<F::Answer, F::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut drive = self.project().drive;
        if drive.as_mut().project_attempts().is_empty() {
            // Nothing to send, so no call.
            return Poll::Ready(drive.project_attempts().end(None, Report::default()));
        }
        let driven = ready!(drive.as_mut().poll(context));
        let rounds = drive.project_attempts();
        if matches!(driven.ended, Ended::TimedOut) {
            rounds.round_was_dropped();
        }
        Poll::Ready(rounds.end(driven.reason, driven.history.report()))
    }
}
