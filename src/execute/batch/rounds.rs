//! The rounds of a batch: what goes with each, and what each came to, for every record and for the wait that follows.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::PollSemaphore;

use super::super::attempt::{Attempt, Keys};
use super::super::drive::{AttemptStart, Attempts};
use super::super::hooks::{CallSite, Classify, Notify};
use super::super::layer::{OuterAttempt, with_inner};
use super::super::listener::{RetryEvent, contained};
use super::super::verdict::Verdict;
use super::record::{Batched, RecordFailure, RecordState};
use super::round::{Round, RoundOperation};
use crate::event::{Event, Reason, Report};
use crate::outcome::{FailureKind, InnerRequest, Outcome, OutcomeClass, What, classify};
use crate::policy::RetryPolicy;
use crate::request::RequestFacts;

/// What makes the rounds.
pub(super) struct Rounds<'p, R, F: RoundOperation<R>, C, N> {
    records: Arc<[R]>,
    states: Vec<RecordState<F::Answer, F::Error>>,
    /// Which go with the next round, ascending.
    pending: Vec<usize>,
    /// Whether a round is under way, or was dropped.
    is_in_flight: bool,
    operation: F,
    policy: &'p RetryPolicy,
    request: RequestFacts,
    as_inner: Option<RequestFacts>,
    keys: Option<Arc<Keys>>,
    /// How many rounds may be under way, of all batches that share it.
    limit: Option<PollSemaphore>,
    /// Held while a round is under way. None if the semaphore was closed: then there is no limit.
    permit: Option<OwnedSemaphorePermit>,
    label: Option<&'p str>,
    classify: C,
    notify: N,
}

impl<'p, R, F: RoundOperation<R>, C, N> Rounds<'p, R, F, C, N> {
    pub(super) fn new(
        records: Arc<[R]>,
        operation: F,
        policy: &'p RetryPolicy,
        limit: Option<Arc<Semaphore>>,
        site: &CallSite<'p>,
        classify: C,
        notify: N,
    ) -> Self {
        Rounds {
            pending: (0..records.len()).collect(),
            states: records.iter().map(|_| RecordState::new()).collect(),
            is_in_flight: false,
            records,
            operation,
            policy,
            request: site.request(),
            as_inner: site.as_inner(policy),
            keys: None,
            limit: limit.map(PollSemaphore::new),
            permit: None,
            label: site.label,
            classify,
            notify,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// No round follows.
    pub(super) fn end(
        &mut self,
        reason: Option<Reason>,
        report: Report,
    ) -> Batched<F::Answer, F::Error> {
        let states = std::mem::take(&mut self.states);
        Batched {
            records: states.into_iter().map(|state| state.end(reason)).collect(),
            reason,
            report,
        }
    }

    /// Nobody knows what became of its records.
    pub(super) fn round_was_dropped(&mut self) {
        if std::mem::take(&mut self.is_in_flight) {
            for &index in &self.pending {
                self.states[index].may_have_arrived = true;
                self.states[index].in_doubt = true;
                self.states[index].failure = Some(RecordFailure::TimedOut);
            }
        }
    }
}

/// What an error means for its record.
struct Weighed {
    /// Why it goes no further.
    reason: Option<Reason>,
    in_doubt: bool,
    may_have_arrived: bool,
}

impl<T, E> RecordState<T, E> {
    fn take(&mut self, weighed: &Weighed) {
        self.reason = weighed.reason;
        self.in_doubt |= weighed.in_doubt;
        self.may_have_arrived |= weighed.may_have_arrived;
    }
}

impl<R, F: RoundOperation<R>, C: Classify<F::Error>, N> Rounds<'_, R, F, C, N> {
    fn weigh(&mut self, error: &F::Error, inner: &[InnerRequest], round: &mut Heard) -> Weighed {
        let Ok(verdict) = contained(|| self.classify.verdict(error)) else {
            return Weighed {
                reason: Some(Reason::Internal),
                in_doubt: true,
                may_have_arrived: true,
            };
        };
        let outcome = verdict.outcome();
        let evidence = with_inner(&outcome.evidence, inner);
        let class = classify(
            self.policy,
            &self.request,
            &Outcome {
                evidence,
                ..outcome
            },
        );
        let is_status = matches!(outcome.what, What::Status(_));
        let weighed = Weighed {
            reason: match class {
                OutcomeClass::Success
                | OutcomeClass::PermanentStatus
                | OutcomeClass::PermanentFailure => Some(Reason::Permanent),
                OutcomeClass::NeverSent => None,
                OutcomeClass::TransientStatus | OutcomeClass::InDoubt => {
                    let may = evidence.may_repeat(self.policy, &self.request);
                    (!may).then_some(Reason::NotRepeatable)
                }
            },
            in_doubt: class == OutcomeClass::InDoubt,
            may_have_arrived: is_status || !evidence.is_never_sent(),
        };
        if weighed.reason.is_none() {
            round.hear(verdict);
        }
        weighed
    }
}

/// What a round came to for the records that go again: one outcome for all of them.
#[derive(Default)]
struct Heard(Option<Verdict>);

impl Heard {
    /// The one that says most: an answer before a failure, overload before other answers, a longer `Retry-After` before a shorter one, and a failure in doubt
    /// before one that was never sent.
    fn hear(&mut self, verdict: Verdict) {
        let weight = |verdict: &Verdict| match *verdict {
            Verdict::Status {
                status,
                retry_after,
            } => (2, matches!(status, 429 | 503), retry_after),
            Verdict::Failed(kind) => (u8::from(kind.class() == OutcomeClass::InDoubt), false, None),
            Verdict::Unproven(_) => (1, false, None),
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

impl<R, F, C, N> Attempts for Rounds<'_, R, F, C, N>
where
    R: Clone,
    F: RoundOperation<R>,
    C: Classify<F::Error>,
    N: Notify,
{
    type Output = <F::Future as Future>::Output;
    type Future = F::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.limit {
            Some(limit) if self.permit.is_none() => {
                self.permit = ready!(limit.poll_acquire(context));
            }
            _ => {}
        }
        Poll::Ready(())
    }

    fn attempt(&mut self, start: &AttemptStart) -> F::Future {
        self.round_was_dropped();
        self.is_in_flight = true;
        for &index in &self.pending {
            let state = &mut self.states[index];
            state.rounds = state.rounds.saturating_add(1);
        }
        let records = if self.pending.len() == self.records.len() {
            self.records.clone()
        } else {
            let pending = self.pending.iter();
            pending.map(|&index| self.records[index].clone()).collect()
        };
        let attempt = Attempt::of_call(&mut self.keys, start);
        self.operation.make(Round::new(records, attempt))
    }

    fn as_inner(&self, _above: &OuterAttempt) -> Option<RequestFacts> {
        self.as_inner
    }

    fn outcome<D>(
        &mut self,
        output: &mut Self::Output,
        inner: &[InnerRequest],
        decide: impl FnOnce(&Outcome<'_>) -> D,
    ) -> D {
        self.is_in_flight = false;
        let sent = std::mem::take(&mut self.pending);
        let mut round = Heard::default();
        match std::mem::replace(output, Ok(Vec::new())) {
            Ok(results) if results.len() == sent.len() => {
                for (index, result) in sent.into_iter().zip(results) {
                    let error = match result {
                        Ok(answer) => {
                            self.states[index].answer = Some(answer);
                            continue;
                        }
                        Err(error) => error,
                    };
                    let weighed = self.weigh(&error, inner, &mut round);
                    let state = &mut self.states[index];
                    state.failure = Some(RecordFailure::Record(error));
                    state.take(&weighed);
                    if weighed.reason.is_none() {
                        self.pending.push(index);
                    }
                }
            }
            Ok(results) => {
                let (sent_count, returned) = (sent.len(), results.len());
                for index in sent {
                    self.states[index].in_doubt = true;
                    self.states[index].may_have_arrived = true;
                    self.states[index].failure = Some(RecordFailure::WrongLength {
                        sent: sent_count,
                        returned,
                    });
                }
                return decide(&Outcome::failure(FailureKind::Protocol));
            }
            Err(error) => {
                let weighed = self.weigh(&error, inner, &mut round);
                let error = Arc::new(error);
                for &index in &sent {
                    let state = &mut self.states[index];
                    state.failure = Some(RecordFailure::Round(error.clone()));
                    state.take(&weighed);
                }
                if weighed.reason.is_none() {
                    self.pending = sent;
                }
            }
        }
        decide(&round.0.unwrap_or(Verdict::ANSWER).outcome())
    }

    fn rest(&mut self) {
        self.permit = None;
        // A new one, because a place in the queue would be handed a permit that nobody uses.
        self.limit = self
            .limit
            .take()
            .map(|limit| PollSemaphore::new(limit.into_inner()));
    }

    fn hear(&mut self, call_id: u64, event: Event) {
        self.notify.hear(&RetryEvent {
            call_id,
            label: self.label,
            event,
        });
    }
}
