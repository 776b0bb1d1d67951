//! Batches: one call for many records, of which only those go again that are worth it. One backoff per round, not per record.

use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connectivity::Connectivity;
use super::drive::{AttemptStart, Attempts, Drive, Ended};
use super::hooks::{Asked, By, Classify, Nobody, Notify, To};
use super::listener::{RetryEvent, contained};
use super::verdict::Verdict;
use crate::event::{Event, Reason, Report};
use crate::outcome::{FailureKind, Outcome, OutcomeClass, classify};
use crate::policy::RetryPolicy;
use crate::request::{RequestFacts, may_repeat};

/// Sends `records` with `operation` in rounds: the first with all of them, each later one with those that failed and are worth another try.
///
/// `operation` is any async function over a slice of records. It answers with one result per record, in order, or with one error for all of
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
/// A dropped batch drops the round in flight and tells nothing of its records; a batch that stops tells what became of each.
#[allow(clippy::type_complexity)] // no closure is boxed
pub fn batch<'p, R, F, A, T, E>(
    policy: &'p RetryPolicy,
    records: impl Into<Arc<[R]>>,
    operation: F,
) -> Batch<'p, R, F, By<fn(&E) -> Verdict>>
where
    F: FnMut(Arc<[R]>) -> A,
    A: Future<Output = Result<Vec<Result<T, E>>, E>>,
{
    Batch {
        records: records.into(),
        operation,
        policy,
        limit: None,
        asked: Asked::new(),
        classify: By(|_| Verdict::IN_DOUBT),
        notify: Nobody,
    }
}

/// A batch to be awaited, see [`batch`].
///
/// - All records of a round wait together: by the policy's `overload` window if any of them met 429 or 503, and not before the longest
///   `retry_after` of all.
/// - A cap ends the batch with what it has: records that were done stay done.
/// - The events are those of one call whose attempts are the rounds.
#[must_use = "a batch does nothing unless awaited"]
pub struct Batch<'p, R, F, C, N = Nobody> {
    records: Arc<[R]>,
    operation: F,
    policy: &'p RetryPolicy,
    limit: Option<Arc<Semaphore>>,
    asked: Asked<'p>,
    classify: C,
    notify: N,
}

impl<'p, R, F, A, T, E, C, N> Batch<'p, R, F, C, N>
where
    F: FnMut(Arc<[R]>) -> A,
    A: Future<Output = Result<Vec<Result<T, E>>, E>>,
{
    /// The network, whose edges end waits, and whose clock the batch goes by. Without it timers alone do.
    pub fn connectivity(mut self, connectivity: &Connectivity) -> Self {
        self.asked.connectivity = Some(connectivity.clone());
        self
    }

    /// How many rounds of all the batches that share it may be under way. A batch that waits for its next round holds no permit. Its first
    /// round's permit is waited for without end, and the batch begins with it; later ones within the batch's own time.
    pub fn limit(mut self, limit: &Arc<Semaphore>) -> Self {
        self.limit = Some(limit.clone());
        self
    }

    /// What kind of request a round is; see [`Retry::request`](crate::Retry::request).
    pub fn request(mut self, request: RequestFacts) -> Self {
        self.asked.request = request;
        self
    }

    /// Your name for the batch, for its events.
    pub fn label(mut self, label: &'p str) -> Self {
        self.asked.label = Some(label);
        self
    }

    /// The seed of the batch's waits, to replay them; else from the operating system.
    pub fn seed(mut self, seed: u64) -> Self {
        self.asked.seed = Some(seed);
        self
    }

    /// What an error means, of a record or of a whole round. Without it every error is in doubt.
    pub fn classify<V: FnMut(&E) -> Verdict>(self, classify: V) -> Batch<'p, R, F, By<V>, N> {
        Batch {
            records: self.records,
            operation: self.operation,
            policy: self.policy,
            limit: self.limit,
            asked: self.asked,
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
            asked: self.asked,
            classify: self.classify,
            notify: To(notify),
        }
    }
}

impl<'p, R, F, A, T, E, C, N> IntoFuture for Batch<'p, R, F, C, N>
where
    R: Clone,
    F: FnMut(Arc<[R]>) -> A,
    A: Future<Output = Result<Vec<Result<T, E>>, E>>,
    C: Classify<E>,
    N: Notify,
{
    type Output = Batched<T, E>;
    type IntoFuture = Batching<'p, R, F, A, T, E, C, N>;

    fn into_future(self) -> Batching<'p, R, F, A, T, E, C, N> {
        let rounds = Rounds {
            pending: (0..self.records.len()).collect(),
            places: self.records.iter().map(|_| Place::new()).collect(),
            is_in_flight: false,
            records: self.records,
            operation: self.operation,
            policy: self.policy,
            request: self.asked.request,
            gate: self.limit.map(Gate::new),
            label: self.asked.label,
            classify: self.classify,
            notify: self.notify,
            attempt: PhantomData,
        };
        Batching {
            drive: Drive::new(rounds, self.policy, self.asked.setting()),
        }
    }
}

pin_project! {
    /// A batch under way, see [`batch`].
    #[must_use = "a batch does nothing unless awaited"]
    pub struct Batching<'p, R, F, A, T, E, C, N>
    where
        R: Clone,
        F: FnMut(Arc<[R]>) -> A,
        A: Future<Output = Result<Vec<Result<T, E>>, E>>,
        C: Classify<E>,
        N: Notify,
    {
        #[pin]
        drive: Drive<Rounds<'p, R, F, A, T, E, C, N>, &'p RetryPolicy>,
    }
}

impl<R, F, A, T, E, C, N> Future for Batching<'_, R, F, A, T, E, C, N>
where
    R: Clone,
    F: FnMut(Arc<[R]>) -> A,
    A: Future<Output = Result<Vec<Result<T, E>>, E>>,
    C: Classify<E>,
    N: Notify,
{
    type Output = Batched<T, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Batched<T, E>> {
        let mut drive = self.project().drive;
        let driven = ready!(drive.as_mut().poll(context));
        let rounds = drive.project_attempts();
        if matches!(driven.ended, Ended::TimedOut) {
            rounds.round_was_dropped();
        }
        let reason = driven.reason;
        let places = std::mem::take(&mut rounds.places);
        Poll::Ready(Batched {
            records: places.into_iter().map(|place| place.end(reason)).collect(),
            reason,
            report: driven.history.report(),
        })
    }
}

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
    /// Whether a round ended that had this record without telling what became of it. Then it may have had its effect, whatever `result` says; and
    /// if `result` is `Ok`, perhaps twice.
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
}

/// How a record's last round failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordFailure<E> {
    /// The record itself.
    Record(E),
    /// The round, with all its records.
    Round(Arc<E>),
    /// The round took longer than it may, and was dropped.
    TimedOut,
    /// The operation answered with another number of results than it got records, so that none of them can be told apart. Not repeated.
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
                write!(out, "its round took longer than it may: {}", self.reason)
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
struct Place<T, E> {
    answer: Option<T>,
    failure: Option<RecordFailure<E>>,
    /// Set when it goes no further, for a reason of its own.
    reason: Option<Reason>,
    in_doubt: bool,
    rounds: u32,
}

impl<T, E> Place<T, E> {
    fn new() -> Place<T, E> {
        Place {
            answer: None,
            failure: None,
            reason: None,
            in_doubt: false,
            rounds: 0,
        }
    }

    fn end(self, reason: Option<Reason>) -> Record<T, E> {
        let result = self.answer.ok_or_else(|| RecordError {
            cause: self.failure.unwrap_or(RecordFailure::TimedOut),
            reason: self.reason.or(reason).unwrap_or(Reason::Permanent),
        });
        Record {
            result,
            in_doubt: self.in_doubt,
            rounds: self.rounds,
        }
    }
}

/// What makes the rounds.
struct Rounds<'p, R, F, A, T, E, C, N> {
    records: Arc<[R]>,
    places: Vec<Place<T, E>>,
    /// Which go with the next round, ascending.
    pending: Vec<usize>,
    /// Whether a round is under way, or was dropped.
    is_in_flight: bool,
    operation: F,
    policy: &'p RetryPolicy,
    request: RequestFacts,
    gate: Option<Gate>,
    label: Option<&'p str>,
    classify: C,
    notify: N,
    attempt: PhantomData<fn() -> A>,
}

impl<R, F, A, T, E, C: Classify<E>, N> Rounds<'_, R, F, A, T, E, C, N> {
    /// Nobody knows what became of its records.
    fn round_was_dropped(&mut self) {
        if std::mem::take(&mut self.is_in_flight) {
            for &index in &self.pending {
                self.places[index].in_doubt = true;
                self.places[index].failure = Some(RecordFailure::TimedOut);
            }
        }
    }

    /// What an error means for its record: the reason to go no further, or none.
    fn weigh(&mut self, error: &E, round: &mut Round) -> (Option<Reason>, bool) {
        let Ok(verdict) = contained(|| self.classify.verdict(error)) else {
            return (Some(Reason::Internal), true);
        };
        let class = verdict.as_outcome(|outcome| classify(self.policy, &self.request, outcome));
        let in_doubt = class == OutcomeClass::InDoubt;
        let reason = match class {
            OutcomeClass::Success | OutcomeClass::PermanentStatus => Some(Reason::Permanent),
            OutcomeClass::PermanentFailure => Some(Reason::Permanent),
            OutcomeClass::NeverSent => None,
            OutcomeClass::TransientStatus | OutcomeClass::InDoubt => {
                (!may_repeat(self.policy, &self.request)).then_some(Reason::NotRepeatable)
            }
        };
        if reason.is_none() {
            round.hear(verdict);
        }
        (reason, in_doubt)
    }
}

/// What a round came to for the records that go again: one outcome for all of them.
#[derive(Default)]
struct Round(Option<Verdict>);

impl Round {
    /// An answer of the other side says more than a failure, overload more than another answer, a longer wish more than a shorter, and a failure
    /// in doubt more than one that was never sent.
    fn hear(&mut self, verdict: Verdict) {
        let weight = |verdict: &Verdict| match *verdict {
            Verdict::Status {
                status,
                retry_after,
            } => (2, matches!(status, 429 | 503), retry_after),
            Verdict::Failed(kind) => (u8::from(kind.class() == OutcomeClass::InDoubt), false, None),
        };
        self.0 = match self.0 {
            Some(known) if weight(&known) >= weight(&verdict) => Some(longest(known, verdict)),
            Some(known) => Some(longest(verdict, known)),
            None => Some(verdict),
        };
    }
}

/// The first with the longer wish of the two.
fn longest(first: Verdict, second: Verdict) -> Verdict {
    match (first, second) {
        (
            Verdict::Status {
                status,
                retry_after,
            },
            Verdict::Status {
                retry_after: other, ..
            },
        ) => Verdict::Status {
            status,
            retry_after: retry_after.max(other),
        },
        _ => first,
    }
}

impl<R, F, A, T, E, C, N> Attempts for Rounds<'_, R, F, A, T, E, C, N>
where
    R: Clone,
    F: FnMut(Arc<[R]>) -> A,
    A: Future<Output = Result<Vec<Result<T, E>>, E>>,
    C: Classify<E>,
    N: Notify,
{
    type Output = Result<Vec<Result<T, E>>, E>;
    type Future = A;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.gate {
            Some(gate) => gate.poll_enter(context),
            None => Poll::Ready(()),
        }
    }

    fn attempt(&mut self, _start: &AttemptStart) -> A {
        self.round_was_dropped();
        self.is_in_flight = true;
        for &index in &self.pending {
            let place = &mut self.places[index];
            place.rounds = place.rounds.saturating_add(1);
        }
        let records = if self.pending.len() == self.records.len() {
            self.records.clone()
        } else {
            let pending = self.pending.iter();
            pending.map(|&index| self.records[index].clone()).collect()
        };
        (self.operation)(records)
    }

    fn outcome<D>(
        &mut self,
        output: &mut Self::Output,
        decide: impl FnOnce(&Outcome<'_>) -> D,
    ) -> D {
        self.is_in_flight = false;
        let sent = std::mem::take(&mut self.pending);
        let mut round = Round::default();
        match std::mem::replace(output, Ok(Vec::new())) {
            Ok(results) if results.len() == sent.len() => {
                for (index, result) in sent.into_iter().zip(results) {
                    let error = match result {
                        Ok(answer) => {
                            self.places[index].answer = Some(answer);
                            continue;
                        }
                        Err(error) => error,
                    };
                    let (reason, in_doubt) = self.weigh(&error, &mut round);
                    let place = &mut self.places[index];
                    place.failure = Some(RecordFailure::Record(error));
                    place.reason = reason;
                    place.in_doubt |= in_doubt;
                    if reason.is_none() {
                        self.pending.push(index);
                    }
                }
            }
            Ok(results) => {
                let (sent_count, returned) = (sent.len(), results.len());
                for index in sent {
                    self.places[index].in_doubt = true;
                    self.places[index].failure = Some(RecordFailure::WrongLength {
                        sent: sent_count,
                        returned,
                    });
                }
                return decide(&Outcome::failure(FailureKind::Protocol));
            }
            Err(error) => {
                let (reason, in_doubt) = self.weigh(&error, &mut round);
                let error = Arc::new(error);
                for &index in &sent {
                    let place = &mut self.places[index];
                    place.failure = Some(RecordFailure::Round(error.clone()));
                    place.reason = reason;
                    place.in_doubt |= in_doubt;
                }
                if reason.is_none() {
                    self.pending = sent;
                }
            }
        }
        round.0.unwrap_or(Verdict::ANSWER).as_outcome(decide)
    }

    fn rest(&mut self) {
        if let Some(gate) = &mut self.gate {
            gate.leave();
        }
    }

    fn hear(&mut self, call_id: u64, event: Event) {
        self.notify.hear(&RetryEvent {
            call_id,
            label: self.label,
            event,
        });
    }
}

/// The way to a permit, and the permit.
struct Gate {
    limit: Arc<Semaphore>,
    state: GateState,
}

enum GateState {
    Outside,
    Queued(Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>),
    /// Without a permit if the limit was closed: then there is none.
    Inside(#[allow(dead_code)] Option<OwnedSemaphorePermit>), // held, not read
}

impl Gate {
    fn new(limit: Arc<Semaphore>) -> Gate {
        Gate {
            limit,
            state: GateState::Outside,
        }
    }

    fn poll_enter(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.state {
                GateState::Outside => {
                    let limit = self.limit.clone();
                    let permit = async move { limit.acquire_owned().await.ok() };
                    self.state = GateState::Queued(Box::pin(permit));
                }
                GateState::Queued(permit) => {
                    self.state = GateState::Inside(ready!(permit.as_mut().poll(context)));
                }
                GateState::Inside(_) => return Poll::Ready(()),
            }
        }
    }

    fn leave(&mut self) {
        self.state = GateState::Outside;
    }
}
