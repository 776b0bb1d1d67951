//! One HTTP call: how its attempts are made, and what they came to. The loop is `drive`'s, every rule the core's.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};

use super::super::drive::{AttemptStart, Attempts, Driven, Ended};
use super::super::listener::RetryEvent;
use super::super::session::Proof;
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
use crate::outcome::{FailureKind, Outcome, OutcomeClass, classify};
use crate::policy::RetryPolicy;
use crate::request::RequestFacts;

/// What is asked of a call.
pub(super) struct Asked {
    pub(super) template: Template,
    pub(super) facts: RequestFacts,
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
    Answered(Response),
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
    /// A server had answered in this attempt: nothing is "never sent" any more.
    answered: bool,
}

/// The attempts of one call.
pub(super) struct HttpCall {
    executor: Arc<Shared>,
    asked: Arc<Asked>,
    in_flight: Option<InFlight>,
}

struct InFlight {
    lease: Lease,
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
        }
    }
}

impl Attempts for HttpCall {
    const HAS_SPAN: bool = true;
    type Output = Attempted;
    type Future = Pin<Box<dyn Future<Output = Attempted> + Send>>;

    fn attempt(&mut self, start: &AttemptStart) -> Self::Future {
        let asked = self.asked.clone();
        let lease = self.executor.clients.on_path(start.noted.path);
        let inactivity = start.limit.inactivity;
        let connect_limit = shorter(asked.policy.connect_timeout(), inactivity);
        let witness = Arc::new(Witness::new(asked.template.request(), connect_limit));
        let request = asked.template.attempt(&witness);
        let client = lease.client.clone();
        let left = asked.client_end.map(|end| end.saturating_since(start.now));
        self.in_flight = Some(InFlight {
            lease,
            witness: witness.clone(),
            client_end: left.and_then(|left| tokio::time::Instant::now().checked_add(left)),
        });
        let Some(mut request) = request else {
            return Box::pin(std::future::ready(Attempted::Failed(Failure {
                kind: FailureKind::RequestBody,
                error: None,
                answered: false,
            })));
        };
        if let Some(left) = left.filter(|_| start.resends > 0) {
            *request.timeout_mut() = Some(left);
        }
        let span = span::of_attempt(request.method(), start.resends);
        Box::pin(span.around(async move {
            let head = witness.clone().watch(client.execute(request));
            let head = match inactivity.filter(|_| asked.template.moves_visibly()) {
                None => head.await,
                Some(inactivity) => {
                    match answer::while_moving(head, inactivity, || witness.still_since()).await {
                        Some(head) => head,
                        None => return Attempted::stood_still(&witness),
                    }
                }
            };
            let response = match head {
                Ok(response) => response,
                Err(error) => {
                    return Attempted::Failed(Failure {
                        kind: kind_of(&error, &witness),
                        error: Some(error),
                        answered: witness.has_answered(),
                    });
                }
            };
            witness.head_came();
            let response = match inactivity {
                None => response,
                Some(inactivity) => answer::within(response, inactivity),
            };
            match asked.read_up_to {
                Some(limit) if asked.delivers(&response) => {
                    match answer::read(response, limit).await {
                        Ok(response) => Attempted::Answered(response),
                        Err(error) => Attempted::Failed(Failure {
                            kind: kind_of_reading(&error),
                            error: Some(error),
                            answered: true,
                        }),
                    }
                }
                _ => Attempted::Answered(response),
            }
        }))
    }

    fn outcome<T>(&mut self, output: &mut Attempted, decide: impl FnOnce(&Outcome<'_>) -> T) -> T {
        let asked = &self.asked;
        let overrule = |came: Result<&Response, &reqwest::Error>| {
            let classify = self.executor.classify.as_ref()?;
            classify(asked.template.request(), came)
        };
        match output {
            Attempted::Answered(response) => {
                let overrule = overrule(Ok(response));
                with_response(asked, response.status(), response.headers(), |outcome| {
                    decide(&Outcome {
                        overrule,
                        ..*outcome
                    })
                })
            }
            Attempted::Closed { status, headers } => with_response(asked, *status, headers, decide),
            Attempted::Failed(failure) => {
                let overrule = failure
                    .error
                    .as_ref()
                    .and_then(|error| overrule(Err(error)));
                let mut outcome = Outcome::failure(failure.kind);
                outcome.evidence.body_untouched = asked.template.is_untouched();
                // A redirect that was followed was sent, whatever the kind says of the request after it.
                outcome.evidence.sent_nothing &= !failure.answered;
                outcome.overrule = overrule;
                decide(&outcome)
            }
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
        // A timer that fired is believed, as everywhere.
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
                head_came: in_flight.witness.has_head_come(),
            },
        }
    }

    /// The next attempt may need the connection, and the server its resources.
    fn close(&mut self, output: Attempted) -> Attempted {
        match output {
            Attempted::Answered(mut response) => Attempted::Closed {
                status: response.status(),
                headers: std::mem::take(response.headers_mut()),
            },
            other => other,
        }
    }

    /// An old client is not held through a wait.
    fn rest(&mut self) {
        self.in_flight = None;
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

impl Asked {
    /// Whether this answer is the call's, as far as its head tells.
    fn delivers(&self, response: &Response) -> bool {
        with_response(self, response.status(), response.headers(), |outcome| {
            let class = classify(&self.policy, &self.facts, outcome);
            matches!(class, OutcomeClass::Success | OutcomeClass::PermanentStatus)
        })
    }
}

impl Attempted {
    /// Nothing of the attempt moved for too long.
    fn stood_still(witness: &Witness) -> Attempted {
        Attempted::Failed(Failure {
            kind: FailureKind::ReadTimeout,
            error: None,
            answered: witness.has_answered(),
        })
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
        Ended::CameBack(Attempted::Answered(mut response)) => {
            let is_first_answer = report.attempts.is_empty() && report.abandoned == 0;
            if reason.is_some() || !is_first_answer {
                response.extensions_mut().insert(report);
            }
            return Ok(response);
        }
        Ended::CameBack(Attempted::Closed { status, headers }) => Cause::Closed { status, headers },
        Ended::CameBack(Attempted::Failed(Failure {
            kind,
            error,
            answered,
        })) => Cause::Failed {
            kind,
            error,
            answered,
        },
        Ended::TimedOut => Cause::Failed {
            kind: FailureKind::AttemptTimeout,
            error: None,
            answered: false, // the report tells of it
        },
    };
    Err(HttpError::new(cause, reason, report))
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
