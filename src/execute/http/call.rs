//! One HTTP call: how its attempts are made, and their outcomes. The loop is in `drive`, every rule in the core.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Response, StatusCode};

use super::super::drive::{AttemptStart, Attempts, Driven, Ended};
use super::super::layer::OuterAttempt;
use super::super::listener::{RetryEvent, contained};
use super::super::session::Proof;
use super::super::telemetry::AttemptSpan;
use super::answer;
use super::body::Template;
use super::client::Lease;
use super::error::{Cause, HttpError};
use super::executor::Shared;
use super::failure::{kind_of, kind_of_reading};
use super::span;
use super::witness::Witness;
use crate::event::{CancelKind, Event};
use crate::instant::Instant;
use crate::outcome::{FailureKind, InnerRequest, Outcome, OutcomeClass, classify};
use crate::policy::RetryPolicy;
use crate::request::RequestFacts;

/// What is asked of a call.
pub(super) struct Asked {
    pub(super) template: Template,
    pub(super) facts: RequestFacts,
    /// Whether the request's key is ours.
    pub(super) has_made_key: bool,
    pub(super) policy: Arc<RetryPolicy>,
    pub(super) label: Option<String>,
    /// Reading the body, up to this many bytes, is part of the attempt.
    pub(super) read_up_to: Option<u64>,
    /// When the request's own timeout ends the call.
    pub(super) client_end: Option<Instant>,
}

/// What one attempt came back with.
pub(super) enum Attempted {
    /// A response, its body still to be read.
    Answered {
        response: Response,
        /// The app's opinion of it, if it was asked for already.
        opinion: Option<Option<OutcomeClass>>,
    },
    /// A response that was closed before a wait.
    Closed {
        status: StatusCode,
        headers: HeaderMap,
    },
    /// None, or one that broke off while it was read.
    Failed(Failure),
}

pub(super) struct Failure {
    pub(super) kind: FailureKind,
    pub(super) error: Option<reqwest::Error>,
    /// Proof that no request of the attempt wrote its head, or that its stream was refused.
    pub(super) sent_nothing: bool,
}

/// The attempts of one call.
pub(super) struct HttpCall {
    executor: Arc<Shared>,
    asked: Arc<Asked>,
    in_flight: Option<InFlight>,
    span: Option<AttemptSpan>,
}

/// What is known of an attempt, by itself and by the loop.
struct InFlight {
    lease: Arc<Lease>,
    witness: Arc<Witness>,
    /// When the client's own timer ends the call.
    client_end: Option<tokio::time::Instant>,
}

impl HttpCall {
    pub(super) fn new(executor: Arc<Shared>, asked: Arc<Asked>) -> HttpCall {
        HttpCall {
            executor,
            asked,
            in_flight: None,
            span: None,
        }
    }
}

impl Attempts for HttpCall {
    type Output = Attempted;
    type Future = Pin<Box<dyn Future<Output = Attempted> + Send>>;

    fn span(&mut self, start: &AttemptStart) -> AttemptSpan {
        let span = span::of_attempt(self.asked.template.request().method(), start.resends);
        self.span.insert(span).clone()
    }

    fn attempt(&mut self, start: &AttemptStart) -> Self::Future {
        let (executor, asked) = (self.executor.clone(), self.asked.clone());
        let url = asked.template.request().url();
        let lease = Arc::new(executor.clients.lease(start.noted.path, url));
        let inactivity = start.limit.inactivity;
        let connect_limit = shorter(asked.policy.connect_timeout(), inactivity);
        let witness = Arc::new(Witness::new(asked.template.at_once(), connect_limit));
        let request = asked.template.attempt(&witness);
        let left = asked.client_end.map(|end| end.saturating_since(start.now));
        self.in_flight = Some(InFlight {
            lease: lease.clone(),
            witness: witness.clone(),
            client_end: left.and_then(|left| tokio::time::Instant::now().checked_add(left)),
        });
        let Some(mut request) = request else {
            return Box::pin(std::future::ready(Attempted::Failed(Failure {
                kind: FailureKind::RequestBody,
                error: None,
                sent_nothing: true,
            })));
        };
        if let Some(left) = left.filter(|_| start.resends > 0) {
            *request.timeout_mut() = Some(left);
        }
        Box::pin(async move {
            let head = witness.clone().watch(lease.client.execute(request));
            let head = match inactivity {
                None => head.await.map_err(Some),
                Some(inactivity) => {
                    answer::while_moving(head, inactivity, || witness.still_since())
                        .await
                        .map_or(Err(None), |head| head.map_err(Some))
                }
            };
            let response = match head {
                Ok(response) => response,
                Err(error) => {
                    let failure = Failure::without_head(error, &lease, &witness);
                    if failure.ended_by_time() {
                        executor.suspect(&asked, &lease, &witness);
                    }
                    return Attempted::Failed(failure);
                }
            };
            let response = match inactivity {
                None => response,
                Some(inactivity) => answer::within(response, inactivity),
            };
            let Some(limit) = asked.read_up_to.filter(|_| answer::may_be_read(&response)) else {
                return Attempted::answered(response);
            };
            // A hook that panics is asked once more where its panic stops the call.
            let Ok(opinion) = contained(|| executor.opinion(&asked, Ok(&response))) else {
                return Attempted::answered(response);
            };
            if !asked.delivers(&response, opinion) {
                return Attempted::Answered {
                    response,
                    opinion: Some(opinion),
                };
            }
            match answer::read(response, limit).await {
                Ok(response) => Attempted::Answered {
                    response,
                    opinion: Some(opinion),
                },
                Err(error) => {
                    let failure = Failure {
                        kind: kind_of_reading(&error),
                        error: Some(error),
                        sent_nothing: false,
                    };
                    if failure.ended_by_time() {
                        executor.suspect(&asked, &lease, &witness);
                    }
                    Attempted::Failed(failure)
                }
            }
        })
    }

    fn as_inner(&self, above: &OuterAttempt) -> Option<RequestFacts> {
        let asked = &self.asked;
        let name = &asked.policy.key().header;
        let mut lines = asked.template.request().headers().get_all(name).iter();
        let is_made =
            |line: &HeaderValue| line.to_str().is_ok_and(|line| above.has_made_key_in(line));
        Some(RequestFacts {
            has_key: asked.facts.has_key && !asked.has_made_key && !lines.any(is_made),
            ..asked.facts
        })
    }

    fn outcome<T>(
        &mut self,
        output: &mut Attempted,
        _inner: &[InnerRequest],
        decide: impl FnOnce(&Outcome<'_>) -> T,
    ) -> T {
        let (executor, asked) = (&self.executor, &self.asked);
        match output {
            Attempted::Answered { response, opinion } => {
                if let Some(span) = &self.span {
                    span::note_status(span, response.status());
                }
                let overrule = opinion.unwrap_or_else(|| executor.opinion(asked, Ok(response)));
                with_response(asked, response.status(), response.headers(), |outcome| {
                    decide(&Outcome {
                        overrule,
                        ..*outcome
                    })
                })
            }
            Attempted::Closed { status, headers } => with_response(asked, *status, headers, decide),
            Attempted::Failed(failure) => {
                let overrule = failure.error.as_ref();
                let overrule = overrule.and_then(|error| executor.opinion(asked, Err(error)));
                let mut outcome = Outcome::failure(failure.kind);
                outcome.evidence.body_untouched = asked.template.is_untouched();
                outcome.evidence.sent_nothing = failure.sent_nothing;
                outcome.overrule = overrule;
                decide(&outcome)
            }
        }
    }

    fn ended_by_time(&mut self) {
        if let Some(in_flight) = &self.in_flight {
            self.executor
                .suspect(&self.asked, &in_flight.lease, &in_flight.witness);
        }
    }

    fn cancelled(&self, output: &Attempted) -> Option<CancelKind> {
        let Attempted::Failed(Failure {
            error: Some(error), ..
        }) = output
        else {
            return None;
        };
        let end = self.asked.client_end?;
        // The timer has fired, so its time has come, as everywhere.
        let fired = self
            .in_flight
            .as_ref()
            .and_then(|attempt| attempt.client_end);
        let is_over = fired.is_some_and(|end| end <= tokio::time::Instant::now())
            || self.executor.connectivity.now() >= end;
        (error.is_timeout() && is_over).then_some(CancelKind::CallTimeout)
    }

    fn proof(&self) -> Proof {
        match &self.in_flight {
            None => Proof::default(),
            Some(in_flight) => Proof {
                sent_nothing: !in_flight.lease.connected.ever(),
                body_untouched: self.asked.template.is_untouched(),
            },
        }
    }

    /// The next attempt may need the connection, and the server its resources.
    fn close(&mut self, output: Attempted) -> Attempted {
        match output {
            Attempted::Answered { mut response, .. } => Attempted::Closed {
                status: response.status(),
                headers: std::mem::take(response.headers_mut()),
            },
            other => other,
        }
    }

    /// An old client is not held through a wait.
    fn rest(&mut self) {
        self.in_flight = None;
        self.span = None;
    }

    fn hear(&mut self, call_id: u64, event: Event) {
        if let Some(listener) = &self.executor.listener {
            listener.on_event(&RetryEvent {
                call_id,
                label: self.asked.label.as_deref(),
                event,
            });
        }
    }
}

impl Shared {
    fn opinion(
        &self,
        asked: &Asked,
        came: Result<&Response, &reqwest::Error>,
    ) -> Option<OutcomeClass> {
        let classify = self.classify.as_ref()?;
        classify(asked.template.request(), came)
    }

    fn suspect(&self, asked: &Asked, lease: &Lease, witness: &Witness) {
        let url = asked.template.request().url();
        self.clients.suspect(lease, url, witness.has_answered());
    }
}

impl Asked {
    /// Whether this answer is the call's, as far as its head and the app tell.
    fn delivers(&self, response: &Response, overrule: Option<OutcomeClass>) -> bool {
        with_response(self, response.status(), response.headers(), |outcome| {
            let outcome = Outcome {
                overrule,
                ..*outcome
            };
            let class = classify(&self.policy, &self.facts, &outcome);
            matches!(class, OutcomeClass::Success | OutcomeClass::PermanentStatus)
        })
    }
}

impl Attempted {
    fn answered(response: Response) -> Attempted {
        Attempted::Answered {
            response,
            opinion: None,
        }
    }
}

impl Failure {
    /// No response head came: with the client's error, or with none because nothing moved for too long.
    pub(super) fn without_head(
        error: Option<reqwest::Error>,
        lease: &Lease,
        witness: &Witness,
    ) -> Failure {
        let kind = error.as_ref().map(|error| kind_of(error, witness));
        let is_proof = error.as_ref().is_some_and(|error| witness.is_proof(error));
        Failure {
            kind: kind.unwrap_or(FailureKind::ReadTimeout),
            error,
            sent_nothing: is_proof || !lease.connected.ever(),
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

/// What becomes of a call that is over.
pub(super) fn settle(driven: Driven<Attempted>) -> Result<Response, HttpError> {
    let Driven {
        ended,
        reason,
        history,
    } = driven;
    let report = history.report();
    let cause = match ended {
        Ended::CameBack(Attempted::Answered { mut response, .. }) => {
            let is_first_answer = report.attempts.is_empty() && report.abandoned == 0;
            if reason.is_some() || !is_first_answer {
                response.extensions_mut().insert(report);
            }
            return Ok(response);
        }
        Ended::CameBack(Attempted::Closed { status, headers }) => Cause::Closed { status, headers },
        Ended::CameBack(Attempted::Failed(Failure { kind, error, .. })) => {
            Cause::Failed { kind, error }
        }
        Ended::TimedOut => Cause::Failed {
            kind: FailureKind::AttemptTimeout,
            error: None,
        },
    };
    let may_have_arrived = report.may_have_arrived();
    Err(HttpError::new(cause, reason, report, may_have_arrived))
}

fn with_response<T>(
    asked: &Asked,
    status: StatusCode,
    headers: &HeaderMap,
    use_it: impl FnOnce(&Outcome<'_>) -> T,
) -> T {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let waits: Vec<&str> = headers
        .get_all(RETRY_AFTER)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .collect();
    use_it(&Outcome {
        retry_after: &waits,
        date: text(DATE.as_str()),
        should_retry: asked.policy.should_retry_header().and_then(text),
        ..Outcome::response(status.as_u16())
    })
}

fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
