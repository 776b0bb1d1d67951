//! The questions across the boundary: a flat record in, an answer out.

use super::answer::{Answer, AnswerKind};
use super::hub::NetworkSnapshot;
use super::problem::BoundaryProblem;
use crate::call::{Allowed, Call, Signals};
use crate::decide::Decision;
use crate::instant::{Instant, duration};
use crate::interrupt::Interruption;
use crate::outcome::{Evidence, FailureKind, InnerRequest, Outcome, OutcomeClass, What};
use crate::policy::RetryPolicy;
use crate::request::RequestFacts;
use crate::resume::{Go, Resumed};
use crate::stored::{load, store};

/// The lines of a request's head that say whether it may be repeated, as they stand there.
#[derive(Clone, Debug, Default, uniffi::Record)]
pub struct RequestHead {
    pub method: String,
    /// Of the policy's key header. None of a key that something further in makes anew each time.
    pub key: Vec<String>,
    /// Of If-Match, If-None-Match and If-Unmodified-Since.
    pub conditions: Vec<String>,
    pub cache_control: Vec<String>,
}

impl RequestHead {
    fn facts(&self) -> RequestFacts {
        fn lines(all: &[String]) -> impl Iterator<Item = &str> {
            all.iter().map(String::as_str)
        }
        RequestFacts::read(
            &self.method,
            lines(&self.key),
            lines(&self.conditions),
            lines(&self.cache_control),
        )
    }
}

/// A request that a layer further in made during an attempt.
#[derive(Clone, Debug, uniffi::Record)]
pub struct ToldRequest {
    /// Its own layer's policy; empty: a layer without one.
    pub policy: Vec<u8>,
    pub head: RequestHead,
    pub sent_nothing: bool,
}

#[derive(Clone, Debug, uniffi::Record)]
pub struct BeginInput {
    pub head: RequestHead,
    pub has_body: bool,
    pub body_replayable: bool,
    /// None: from the operating system.
    pub seed: Option<i64>,
    pub began: i64,
    pub client_end: Option<i64>,
}

#[derive(Clone, Debug, uniffi::Record)]
pub struct DecideInput {
    pub policy: Vec<u8>,
    pub call: Vec<u8>,
    /// As it was before the attempt.
    pub noted: NetworkSnapshot,
    pub now: i64,
    pub wall_ms: Option<i64>,
    pub network: NetworkSnapshot,
    /// Of an answer; without one `failure` says what happened.
    pub status: i32,
    pub failure: Option<FailureKind>,
    pub retry_after: Vec<String>,
    pub date: Option<String>,
    pub should_retry: Option<String>,
    pub look_up: i64,
    pub sent_nothing: bool,
    pub body_untouched: bool,
    pub body_spent: bool,
    /// The request as it left, where something further in had changed it.
    pub went_out: Option<RequestHead>,
    pub inner: Vec<ToldRequest>,
    pub overrule: Option<OutcomeClass>,
}

#[derive(Clone, Debug, uniffi::Record)]
pub struct ResumeInput {
    pub policy: Vec<u8>,
    pub waiting: Vec<u8>,
    pub now: i64,
    pub network: NetworkSnapshot,
}

#[derive(Clone, Debug, uniffi::Record)]
pub struct InterruptInput {
    pub policy: Vec<u8>,
    pub call: Vec<u8>,
    /// As it was before the attempt.
    pub noted: NetworkSnapshot,
    pub now: i64,
    pub network: NetworkSnapshot,
    pub sent_nothing: bool,
    pub body_untouched: bool,
    pub inner: Vec<ToldRequest>,
}

/// Begins a call at its first failure or first question; returns a call in flight.
#[uniffi::export]
pub fn begin(input: BeginInput) -> Result<Vec<u8>, BoundaryProblem> {
    let request = RequestFacts {
        has_body: input.has_body,
        body_replayable: input.body_replayable,
        ..input.head.facts()
    };
    let seed = match input.seed {
        Some(seed) => seed as u64,
        None => getrandom::u64().map_err(|error| BoundaryProblem::NoRandomness {
            problem: error.to_string(),
        })?,
    };
    Ok(store(&Call::begin(
        request,
        seed,
        Instant::from_nanos(input.began),
        input.client_end.map(Instant::from_nanos),
    ))?)
}

#[uniffi::export]
pub fn decide(input: DecideInput) -> Result<Answer, BoundaryProblem> {
    let lines: Vec<&str> = input.retry_after.iter().map(String::as_str).collect();
    let what = match input.failure {
        Some(kind) => What::Failure(kind),
        // No server sends a status that does not fit.
        None => What::Status(u16::try_from(input.status).unwrap_or(u16::MAX)),
    };
    let inner = told(&input.inner)?;
    let outcome = Outcome {
        what,
        retry_after: &lines,
        server_wait: None,
        date: input.date.as_deref(),
        should_retry: input.should_retry.as_deref(),
        look_up: duration(input.look_up),
        evidence: Evidence {
            sent_nothing: input.sent_nothing,
            body_untouched: input.body_untouched,
            body_spent: input.body_spent,
            went_out: input.went_out.as_ref().map(RequestHead::facts),
            inner: &inner,
        },
        overrule: input.overrule,
    };
    let step = crate::decide::decide(
        &load(&input.policy)?,
        load(&input.call)?,
        &input.noted.into(),
        &outcome,
        &Signals {
            now: Instant::from_nanos(input.now),
            network: input.network.into(),
            wall_ms: input.wall_ms,
            allowed: Allowed::ALL,
        },
    );
    match step.decision {
        Decision::Deliver => Ok(Answer::new(AnswerKind::Deliver, step.events)),
        Decision::Stop(_) => Ok(Answer::new(AnswerKind::Stop, step.events)),
        Decision::Sleep(sleep) => Answer::sleep(sleep, step.events),
    }
}

/// Asks for several waits at once: after an edge hundreds are asked for together, and crossing costs more than deciding.
/// The answers have the order of `inputs`; if one input cannot be read there is no answer at all.
#[uniffi::export]
pub fn resume(inputs: Vec<ResumeInput>) -> Result<Vec<Answer>, BoundaryProblem> {
    inputs.iter().map(resume_one).collect()
}

fn resume_one(input: &ResumeInput) -> Result<Answer, BoundaryProblem> {
    let step = crate::resume::resume(
        &load(&input.policy)?,
        load(&input.waiting)?,
        &Signals {
            now: Instant::from_nanos(input.now),
            network: input.network.into(),
            wall_ms: None,
            allowed: Allowed::ALL,
        },
    );
    match step.decision {
        Resumed::Go(Go { call, limit, .. }) => {
            Answer::in_flight(AnswerKind::Go, &call, Some(limit), step.events)
        }
        Resumed::Sleep(sleep) => Answer::sleep(sleep, step.events),
        Resumed::Stop(_) => Ok(Answer::new(AnswerKind::Stop, step.events)),
    }
}

#[uniffi::export]
pub fn interrupt(input: InterruptInput) -> Result<Answer, BoundaryProblem> {
    let inner = told(&input.inner)?;
    let step = crate::interrupt::interrupt(
        &load(&input.policy)?,
        load(&input.call)?,
        &input.noted.into(),
        &Signals {
            now: Instant::from_nanos(input.now),
            network: input.network.into(),
            wall_ms: None,
            allowed: Allowed::ALL,
        },
        &Evidence {
            sent_nothing: input.sent_nothing,
            body_untouched: input.body_untouched,
            body_spent: false,
            went_out: None,
            inner: &inner,
        },
    );
    match step.decision {
        Interruption::Keep { call, ask_at } => {
            let answer = Answer::in_flight(AnswerKind::Keep, &call, None, step.events)?;
            Ok(Answer {
                ask_at: ask_at.map(Instant::as_nanos),
                ..answer
            })
        }
        Interruption::Restart { call, limit } => {
            Answer::in_flight(AnswerKind::Restart, &call, Some(limit), step.events)
        }
    }
}

fn told(requests: &[ToldRequest]) -> Result<Vec<InnerRequest>, BoundaryProblem> {
    let by = |request: &ToldRequest| {
        let policy = match request.policy.as_slice() {
            [] => RetryPolicy::default(),
            bytes => load(bytes)?,
        };
        let facts = request.head.facts();
        Ok(InnerRequest::of(&policy, &facts, request.sent_nothing))
    };
    requests.iter().map(by).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectivity::{NetworkState, Snapshot};
    use crate::event::{WaitReason, WokenBy};
    use crate::instant::nanos;

    fn call() -> Vec<u8> {
        begin(BeginInput {
            head: RequestHead {
                method: "GET".to_owned(),
                ..RequestHead::default()
            },
            has_body: false,
            body_replayable: true,
            seed: Some(-1),
            began: 0,
            client_end: None,
        })
        .unwrap()
    }

    /// A refused connection while nothing is known of the network.
    fn refused() -> DecideInput {
        DecideInput {
            policy: store(&RetryPolicy::default()).unwrap(),
            call: call(),
            noted: Snapshot::UNKNOWN.into(),
            now: 0,
            wall_ms: None,
            network: Snapshot::UNKNOWN.into(),
            status: 0,
            failure: Some(FailureKind::ConnectRefused),
            retry_after: Vec::new(),
            date: None,
            should_retry: None,
            look_up: 0,
            sent_nothing: true,
            body_untouched: false,
            body_spent: false,
            went_out: None,
            inner: Vec::new(),
            overrule: None,
        }
    }

    #[test]
    fn a_status_that_cannot_be_is_an_answer() {
        for status in [i32::MIN, -1, 0, 600, 65_536 + 503, i32::MAX] {
            let answer = decide(DecideInput {
                status,
                failure: None,
                ..refused()
            });
            assert_eq!(answer.unwrap().kind, AnswerKind::Deliver, "{status}");
        }
    }

    #[test]
    fn a_negative_look_up_sets_no_floor() {
        let answer = decide(DecideInput {
            failure: Some(FailureKind::Dns),
            look_up: -1,
            ..refused()
        });
        let wait = answer.unwrap().wait.unwrap();
        assert_eq!((wait.floor, wait.why), (0, WaitReason::Backoff));
    }

    #[test]
    fn a_seed_crosses_as_its_bits() {
        let answer = decide(refused()).unwrap();
        let wait = RetryPolicy::default().waits(u64::MAX).next().map(nanos);
        assert_eq!(answer.wait.map(|wait| wait.planned), wait);
        assert_eq!(answer.ask_at, wait);
    }

    #[test]
    fn a_call_goes_from_question_to_question_as_bytes() {
        let slept = decide(refused()).unwrap();
        assert_eq!((slept.kind, slept.counted), (AnswerKind::Sleep, 1));
        let went = resume_one(&ResumeInput {
            policy: refused().policy,
            waiting: slept.state.clone(),
            now: slept.ask_at.unwrap(),
            network: Snapshot::UNKNOWN.into(),
        })
        .unwrap();
        assert_eq!(
            (went.kind, went.resumed.map(|resumed| resumed.by)),
            (AnswerKind::Go, Some(WokenBy::Timer))
        );
        // A sleeping call has no attempt to decide on.
        let mixed_up = decide(DecideInput {
            call: slept.state,
            ..refused()
        });
        assert!(matches!(mixed_up, Err(BoundaryProblem::Unreadable { .. })));
        let again = decide(DecideInput {
            call: went.state,
            ..refused()
        });
        assert_eq!(again.unwrap().counted, 2);
    }

    #[test]
    fn an_attempt_is_begun_anew_across_the_boundary() {
        let restarted = interrupt(InterruptInput {
            policy: refused().policy,
            call: call(),
            noted: NetworkSnapshot {
                state: NetworkState::Offline,
                since: 0,
                epoch: 0,
                path: 0,
            },
            now: 1,
            network: NetworkSnapshot {
                state: NetworkState::Online,
                since: 1,
                epoch: 1,
                path: 1,
            },
            sent_nothing: false,
            body_untouched: false,
            inner: Vec::new(),
        })
        .unwrap();
        assert_eq!(
            (restarted.kind, restarted.counted),
            (AnswerKind::Restart, 1)
        );
        assert!(restarted.abandoned && restarted.inactivity.is_some());
    }
}
