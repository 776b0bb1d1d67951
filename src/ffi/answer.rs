//! What crosses back: what to do next, the state to hand back, and the events.

use super::problem::BoundaryProblem;
use crate::call::{Call, Limit, Sleep};
use crate::event::{Event, Events, Reason, WaitReason, WokenBy};
use crate::instant::nanos;
use crate::outcome::{FailureKind, OutcomeClass, What};
use crate::stored::store;

#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum AnswerKind {
    Deliver,
    Stop,
    Sleep,
    Go,
    Keep,
    Restart,
}

/// What to do, the state to hand back with the next question, and the events in the order failed, abandoned, wait, resumed, end.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct Answer {
    pub kind: AnswerKind,
    /// After `Sleep` a waiting call, after `Go`, `Keep` and `Restart` a call in flight, else empty.
    pub state: Vec<u8>,
    /// Counted attempts that have ended.
    pub counted: i32,
    /// Whether one of the attempts that have ended may have reached the server.
    pub may_have_arrived: bool,
    pub ask_at: Option<i64>,
    pub hard: Option<i64>,
    pub inactivity: Option<i64>,
    pub failed: Option<FailedEvent>,
    pub abandoned: bool,
    pub wait: Option<WaitEvent>,
    pub resumed: Option<ResumedEvent>,
    pub end: Option<EndEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Record)]
pub struct FailedEvent {
    pub class: OutcomeClass,
    /// 0 without an answer.
    pub status: i32,
    pub failure: Option<FailureKind>,
    pub counted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Record)]
pub struct WaitEvent {
    pub planned: i64,
    pub window: i64,
    pub floor: i64,
    pub why: WaitReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Record)]
pub struct ResumedEvent {
    pub planned: i64,
    pub effective: i64,
    pub by: WokenBy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Record)]
pub struct EndEvent {
    pub reason: EndReason,
    /// Of `ServerWaitTooLong`.
    pub ms: Option<i64>,
    pub counted: i32,
    pub elapsed: i64,
    pub may_have_arrived: bool,
}

/// The reasons the core itself stops for; the rest are the drivers'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum EndReason {
    Done,
    Attempts,
    Elapsed,
    ServerWaitTooLong,
    NotRepeatable,
    BodyNotReplayable,
    Permanent,
    Offline,
    Budget,
    Breaker,
    Internal,
}

fn count(attempts: u32) -> i32 {
    i32::try_from(attempts).unwrap_or(i32::MAX)
}

impl Answer {
    pub(super) fn new(kind: AnswerKind, events: Events) -> Answer {
        let mut answer = Answer {
            kind,
            state: Vec::new(),
            counted: 0,
            may_have_arrived: false,
            ask_at: None,
            hard: None,
            inactivity: None,
            failed: None,
            abandoned: false,
            wait: None,
            resumed: None,
            end: None,
        };
        for event in events {
            answer.tell(event);
        }
        answer
    }

    pub(super) fn sleep(sleep: Sleep, events: Events) -> Result<Answer, BoundaryProblem> {
        Ok(Answer {
            state: store(&sleep.waiting)?,
            counted: count(sleep.waiting.call().counted()),
            may_have_arrived: sleep.waiting.call().may_have_arrived(),
            ask_at: Some(sleep.ask_at.as_nanos()),
            ..Answer::new(AnswerKind::Sleep, events)
        })
    }

    pub(super) fn in_flight(
        kind: AnswerKind,
        call: &Call,
        limit: Option<Limit>,
        events: Events,
    ) -> Result<Answer, BoundaryProblem> {
        Ok(Answer {
            state: store(call)?,
            counted: count(call.counted()),
            may_have_arrived: call.may_have_arrived(),
            hard: limit.and_then(|limit| limit.hard).map(nanos),
            inactivity: limit.and_then(|limit| limit.inactivity).map(nanos),
            ..Answer::new(kind, events)
        })
    }

    fn tell(&mut self, event: Event) {
        match event {
            Event::AttemptFailed {
                class,
                what,
                counted,
            } => {
                let (status, failure) = match what {
                    What::Status(status) => (status.into(), None),
                    What::Failure(kind) => (0, Some(kind)),
                };
                self.failed = Some(FailedEvent {
                    class,
                    status,
                    failure,
                    counted,
                });
            }
            Event::AttemptAbandoned => self.abandoned = true,
            Event::WaitPlanned(wait) => {
                self.wait = Some(WaitEvent {
                    planned: nanos(wait.planned),
                    window: nanos(wait.window),
                    floor: nanos(wait.floor),
                    why: wait.why,
                });
            }
            Event::Resumed(resumed) => {
                self.resumed = Some(ResumedEvent {
                    planned: nanos(resumed.planned),
                    effective: nanos(resumed.effective),
                    by: resumed.by,
                });
            }
            Event::Final(end) => {
                let (reason, ms) = end_reason(end.reason);
                self.counted = count(end.counted);
                self.may_have_arrived = end.may_have_arrived;
                self.end = Some(EndEvent {
                    reason,
                    ms,
                    counted: self.counted,
                    elapsed: nanos(end.elapsed),
                    may_have_arrived: end.may_have_arrived,
                });
            }
        }
    }
}

fn end_reason(reason: Option<Reason>) -> (EndReason, Option<i64>) {
    let reason = match reason {
        None => EndReason::Done,
        Some(Reason::Attempts) => EndReason::Attempts,
        Some(Reason::Elapsed) => EndReason::Elapsed,
        Some(Reason::ServerWaitTooLong { ms }) => return (EndReason::ServerWaitTooLong, Some(ms)),
        Some(Reason::NotRepeatable) => EndReason::NotRepeatable,
        Some(Reason::BodyNotReplayable) => EndReason::BodyNotReplayable,
        Some(Reason::Permanent) => EndReason::Permanent,
        Some(Reason::Offline) => EndReason::Offline,
        Some(Reason::Budget) => EndReason::Budget,
        Some(Reason::Breaker) => EndReason::Breaker,
        // The core never stops for what only drivers see.
        Some(Reason::Cancelled(_) | Reason::Internal) => EndReason::Internal,
    };
    (reason, None)
}
