//! One HTTP call: its attempts and their outcomes, for the loop. The loop is in `drive`, every rule in the core.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Response;
use reqwest::header::HeaderValue;

use super::super::aggregates::AnsweredBy;
use super::super::drive::{AttemptStart, Attempts, Driven, Ended};
use super::super::layer::OuterAttempt;
use super::super::listener::RetryEvent;
use super::super::session::Proof;
use super::super::telemetry::AttemptSpan;
use super::attempt::{self, AttemptEnd};
use super::client::Lease;
use super::error::{Cause, HttpError};
use super::failure::Failure;
use super::observer::AttemptObserver;
use super::shared::Shared;
use super::span;
use super::spec::CallSpec;
use crate::event::{CancelKind, Event};
use crate::outcome::{FailureKind, InnerRequest, Outcome};
use crate::request::RequestFacts;

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
            return Box::pin(std::future::ready(AttemptEnd::Failed(
                Failure::without_body(),
            )));
        };
        if let Some(left) = left.filter(|_| start.resends > 0) {
            *request.timeout_mut() = Some(left);
        }
        Box::pin(attempt::make(
            executor,
            spec,
            lease,
            observer,
            request,
            inactivity,
            start.resends.saturating_add(1),
        ))
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
                spec.with_answer(response.status(), response.headers(), |outcome| {
                    decide(&Outcome {
                        overrule,
                        ..*outcome
                    })
                })
            }
            AttemptEnd::Closed { status, headers } => spec.with_answer(*status, headers, decide),
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

    fn answered_by(&self, output: Option<&AttemptEnd>) -> AnsweredBy {
        let Some(in_flight) = &self.in_flight else {
            return AnsweredBy::Nobody;
        };
        let observer = &in_flight.observer;
        let was_made = match output {
            Some(AttemptEnd::Failed(failure)) => failure.was_made,
            Some(_) | None => true,
        };
        if !was_made {
            AnsweredBy::Nobody
        } else if let Some(origin) = observer.origin() {
            AnsweredBy::Other(origin.clone())
        } else if observer.has_answered() || !observer.shows_all_hops() {
            AnsweredBy::Hidden
        } else {
            AnsweredBy::Asked
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

/// What becomes of a call that is over.
pub(super) fn settle(driven: Driven<AttemptEnd>) -> Result<Response, HttpError> {
    let Driven {
        ended,
        reason,
        history,
    } = driven;
    let report = history.report();
    let cause = match ended {
        Ended::Refused { until } => Cause::Refused { until },
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
        Ended::CameBack(AttemptEnd::Failed(failure)) => failure.into(),
        Ended::TimedOut => Cause::Failed {
            kind: FailureKind::AttemptTimeout,
            error: None,
        },
    };
    let may_have_arrived = report.may_have_arrived();
    Err(HttpError::new(cause, reason, report, may_have_arrived))
}

fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
