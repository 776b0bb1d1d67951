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
use super::observer::AttemptObserver;
use super::span;
use crate::event::{CancelKind, Event};
use crate::instant::Instant;
use crate::outcome::{FailureKind, InnerRequest, Outcome, OutcomeClass, classify};
use crate::policy::RetryPolicy;
use crate::request::RequestFacts;

/// What is asked of a call.
pub(super) struct CallSpec {
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
pub(super) enum AttemptEnd {
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
    spec: Arc<CallSpec>,
    in_flight: Option<InFlight>,
    span: Option<AttemptSpan>,
}

/// What is known of an attempt, by itself and by the loop.
struct InFlight {
    lease: Arc<Lease>,
    observer: Arc<AttemptObserver>,
    /// When the client's own timer ends the call.
    client_end: Option<tokio::time::Instant>,
}

impl HttpCall {
    pub(super) fn new(executor: Arc<Shared>, spec: Arc<CallSpec>) -> HttpCall {
        HttpCall {
            executor,
            spec,
            in_flight: None,
            span: None,
        }
    }
}

impl Attempts for HttpCall {
    type Output = AttemptEnd;
    type Future = Pin<Box<dyn Future<Output = AttemptEnd> + Send>>;

    fn span(&mut self, start: &AttemptStart) -> AttemptSpan {
        let span = span::of_attempt(self.spec.template.request().method(), start.resends);
        self.span.insert(span).clone()
    }

    fn attempt(&mut self, start: &AttemptStart) -> Self::Future {
        let (executor, spec) = (self.executor.clone(), self.spec.clone());
        let url = spec.template.request().url();
        let lease = Arc::new(executor.clients.lease(start.noted.path, url));
        let inactivity = start.limit.inactivity;
        let connect_limit = shorter(spec.policy.connect_timeout(), inactivity);
        let observer = Arc::new(AttemptObserver::new(spec.template.at_once(), connect_limit));
        let request = spec.template.attempt(&observer);
        let left = spec.client_end.map(|end| end.saturating_since(start.now));
        self.in_flight = Some(InFlight {
            lease: lease.clone(),
            observer: observer.clone(),
            client_end: left.and_then(|left| tokio::time::Instant::now().checked_add(left)),
        });
        let Some(mut request) = request else {
            return Box::pin(std::future::ready(AttemptEnd::Failed(Failure {
                kind: FailureKind::RequestBody,
                error: None,
                sent_nothing: true,
            })));
        };
        if let Some(left) = left.filter(|_| start.resends > 0) {
            *request.timeout_mut() = Some(left);
        }
        Box::pin(async move {
            let head = observer.clone().watch(lease.client.execute(request));
            let head = match inactivity {
                None => head.await.map_err(Some),
                Some(inactivity) => {
                    answer::while_moving(head, inactivity, || observer.still_since())
                        .await
                        .map_or(Err(None), |head| head.map_err(Some))
                }
            };
            let response = match head {
                Ok(response) => response,
                Err(error) => {
                    let failure = Failure::without_head(error, &lease, &observer);
                    if failure.ended_by_time() {
                        executor.suspect(&spec, &lease, &observer);
                    }
                    return AttemptEnd::Failed(failure);
                }
            };
            let response = match inactivity {
                None => response,
                Some(inactivity) => answer::within(response, inactivity),
            };
            let Some(limit) = spec.read_up_to.filter(|_| answer::may_be_read(&response)) else {
                return AttemptEnd::answered(response);
            };
            // A hook that panics is asked once more where its panic stops the call.
            let Ok(opinion) = contained(|| executor.opinion(&spec, Ok(&response))) else {
                return AttemptEnd::answered(response);
            };
            if !spec.delivers(&response, opinion) {
                return AttemptEnd::Answered {
                    response,
                    opinion: Some(opinion),
                };
            }
            match answer::read(response, limit).await {
                Ok(response) => AttemptEnd::Answered {
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
                        executor.suspect(&spec, &lease, &observer);
                    }
                    AttemptEnd::Failed(failure)
                }
            }
        })
    }

    fn as_inner(&self, above: &OuterAttempt) -> Option<RequestFacts> {
        let spec = &self.spec;
        let name = &spec.policy.key().header;
        let mut lines = spec.template.request().headers().get_all(name).iter();
        let is_made =
            |line: &HeaderValue| line.to_str().is_ok_and(|line| above.has_made_key_in(line));
        Some(RequestFacts {
            has_key: spec.facts.has_key && !spec.has_made_key && !lines.any(is_made),
            ..spec.facts
        })
    }

    fn outcome<T>(
        &mut self,
        output: &mut AttemptEnd,
        _inner: &[InnerRequest],
        decide: impl FnOnce(&Outcome<'_>) -> T,
    ) -> T {
        let (executor, spec) = (&self.executor, &self.spec);
        match output {
            AttemptEnd::Answered { response, opinion } => {
                if let Some(span) = &self.span {
                    span::note_status(span, response.status());
                }
                let overrule = opinion.unwrap_or_else(|| executor.opinion(spec, Ok(response)));
                with_response(spec, response.status(), response.headers(), |outcome| {
                    decide(&Outcome {
                        overrule,
                        ..*outcome
                    })
                })
            }
            AttemptEnd::Closed { status, headers } => with_response(spec, *status, headers, decide),
            AttemptEnd::Failed(failure) => {
                let overrule = failure.error.as_ref();
                let overrule = overrule.and_then(|error| executor.opinion(spec, Err(error)));
                let mut outcome = Outcome::failure(failure.kind);
                outcome.evidence.body_untouched = spec.template.is_untouched();
                outcome.evidence.sent_nothing = failure.sent_nothing;
                outcome.overrule = overrule;
                decide(&outcome)
            }
        }
    }

    fn ended_by_time(&mut self) {
        if let Some(in_flight) = &self.in_flight {
            self.executor
                .suspect(&self.spec, &in_flight.lease, &in_flight.observer);
        }
    }

    fn cancelled(&self, output: &AttemptEnd) -> Option<CancelKind> {
        let AttemptEnd::Failed(Failure {
            error: Some(error), ..
        }) = output
        else {
            return None;
        };
        let end = self.spec.client_end?;
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
                body_untouched: self.spec.template.is_untouched(),
            },
        }
    }

    /// The next attempt may need the connection, and the server its resources.
    fn close(&mut self, output: AttemptEnd) -> AttemptEnd {
        match output {
            AttemptEnd::Answered { mut response, .. } => AttemptEnd::Closed {
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
                label: self.spec.label.as_deref(),
                event,
            });
        }
    }
}

impl Shared {
    fn opinion(
        &self,
        spec: &CallSpec,
        came: Result<&Response, &reqwest::Error>,
    ) -> Option<OutcomeClass> {
        let classify = self.classify.as_ref()?;
        classify(spec.template.request(), came)
    }

    fn suspect(&self, spec: &CallSpec, lease: &Lease, observer: &AttemptObserver) {
        let url = spec.template.request().url();
        self.clients.suspect(lease, url, observer.has_answered());
    }
}

impl CallSpec {
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

impl AttemptEnd {
    fn answered(response: Response) -> AttemptEnd {
        AttemptEnd::Answered {
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
        observer: &AttemptObserver,
    ) -> Failure {
        let kind = error.as_ref().map(|error| kind_of(error, observer));
        let is_proof = error.as_ref().is_some_and(|error| observer.is_proof(error));
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
pub(super) fn settle(driven: Driven<AttemptEnd>) -> Result<Response, HttpError> {
    let Driven {
        ended,
        reason,
        history,
    } = driven;
    let report = history.report();
    let cause = match ended {
        Ended::CameBack(AttemptEnd::Answered { mut response, .. }) => {
            let is_first_answer = report.attempts.is_empty() && report.abandoned == 0;
            if reason.is_some() || !is_first_answer {
                response.extensions_mut().insert(report);
            }
            return Ok(response);
        }
        Ended::CameBack(AttemptEnd::Closed { status, headers }) => {
            Cause::Closed { status, headers }
        }
        Ended::CameBack(AttemptEnd::Failed(Failure { kind, error, .. })) => {
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
    spec: &CallSpec,
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
        should_retry: spec.policy.should_retry_header().and_then(text),
        ..Outcome::response(status.as_u16())
    })
}

fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
