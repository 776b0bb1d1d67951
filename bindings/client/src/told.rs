//! What happens to a call, as it is told to Kotlin.

use std::time::Duration;

use comeback::{
    CancelKind, Event, FailureKind, HttpError, OutcomeClass, Reason, WaitReason, What, WokenBy,
};
use reqwest::header::HeaderMap;

/// One thing about one call: an event, or its end, after which nothing follows.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct Told {
    pub call: i64,
    pub event: Option<ToldEvent>,
    pub end: Option<End>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum EventKind {
    AttemptFailed,
    AttemptAbandoned,
    WaitPlanned,
    Resumed,
    Finished,
}

/// One event. What its kind does not have is empty, 0 or none. Names are those of the vectors: `connect_refused`.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct ToldEvent {
    pub kind: EventKind,
    /// Of a failed attempt.
    pub class: String,
    pub status: i32,
    pub failure: Option<String>,
    pub counted: bool,
    /// Of a wait, and of its end.
    pub planned: i64,
    pub window: i64,
    pub floor: i64,
    pub why: String,
    pub effective: i64,
    pub by: String,
    /// Of the last event. Without a reason the answer was delivered.
    pub reason: Option<String>,
    /// Of the reason `server_wait_too_long`.
    pub ms: i64,
    pub attempts: i32,
    pub elapsed: i64,
    pub may_have_arrived: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum EndKind {
    /// With a response.
    Answered,
    /// The last response was closed before the wait in which the call ended; its status and headers are left.
    Stopped,
    /// Without a response, or in the middle of one.
    Failed,
    /// The request was never valid.
    Invalid,
    /// By `cancel`.
    Cancelled,
    /// The client was closed.
    Closed,
    /// Something of ours panicked.
    Panicked,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct End {
    pub kind: EndKind,
    pub status: i32,
    /// Names and values by turns.
    pub headers: Vec<String>,
    pub body: Vec<u8>,
    /// The kind of the last attempt's failure.
    pub failure: Option<String>,
    /// For people: no URL, header or body is in it.
    pub problem: String,
}

impl Told {
    pub(crate) fn event(call: i64, event: &Event) -> Option<Told> {
        Some(Told {
            call,
            event: Some(told(event)?),
            end: None,
        })
    }

    pub(crate) fn end(call: i64, end: End) -> Told {
        Told {
            call,
            event: None,
            end: Some(end),
        }
    }
}

impl End {
    pub(crate) fn of_kind(kind: EndKind, problem: impl ToString) -> End {
        End {
            kind,
            status: 0,
            headers: Vec::new(),
            body: Vec::new(),
            failure: None,
            problem: problem.to_string(),
        }
    }

    pub(crate) fn answered(status: u16, headers: &HeaderMap, body: Vec<u8>) -> End {
        End {
            status: status.into(),
            headers: by_turns(headers),
            body,
            ..End::of_kind(EndKind::Answered, "")
        }
    }

    pub(crate) fn failed(error: &HttpError) -> End {
        let kind = match (error.status(), error.kind()) {
            (Some(_), _) => EndKind::Stopped,
            (None, Some(_)) => EndKind::Failed,
            (None, None) => EndKind::Invalid,
        };
        End {
            status: error.status().map_or(0, |status| status.as_u16().into()),
            headers: error.headers().map(by_turns).unwrap_or_default(),
            failure: error.kind().map(failure_name),
            ..End::of_kind(kind, error)
        }
    }
}

/// A value that is no UTF-8 is read as Latin-1, as HTTP once had it.
fn by_turns(headers: &HeaderMap) -> Vec<String> {
    let mut turns = Vec::with_capacity(headers.len() * 2);
    for (name, value) in headers {
        turns.push(name.as_str().to_owned());
        turns.push(match std::str::from_utf8(value.as_bytes()) {
            Ok(text) => text.to_owned(),
            Err(_) => value.as_bytes().iter().copied().map(char::from).collect(),
        });
    }
    turns
}

/// None for an event of a kind that this version does not know.
fn told(event: &Event) -> Option<ToldEvent> {
    Some(match *event {
        Event::AttemptFailed {
            class,
            what,
            counted,
        } => {
            let (status, failure) = match what {
                What::Status(status) => (status.into(), None),
                What::Failure(kind) => (0, Some(failure_name(kind))),
            };
            ToldEvent {
                class: class_name(class).to_owned(),
                status,
                failure,
                counted,
                ..nothing(EventKind::AttemptFailed)
            }
        }
        Event::AttemptAbandoned => nothing(EventKind::AttemptAbandoned),
        Event::WaitPlanned(wait) => ToldEvent {
            planned: nanos(wait.planned),
            window: nanos(wait.window),
            floor: nanos(wait.floor),
            why: why_name(wait.why).to_owned(),
            ..nothing(EventKind::WaitPlanned)
        },
        Event::Resumed(resumed) => ToldEvent {
            planned: nanos(resumed.planned),
            effective: nanos(resumed.effective),
            by: by_name(resumed.by).to_owned(),
            ..nothing(EventKind::Resumed)
        },
        Event::Final(end) => ToldEvent {
            reason: end.reason.map(|reason| reason_name(reason).to_owned()),
            ms: match end.reason {
                Some(Reason::ServerWaitTooLong { ms }) => ms,
                _ => 0,
            },
            attempts: i32::try_from(end.counted).unwrap_or(i32::MAX),
            elapsed: nanos(end.elapsed),
            may_have_arrived: end.may_have_arrived,
            ..nothing(EventKind::Finished)
        },
        _ => return None,
    })
}

fn nothing(kind: EventKind) -> ToldEvent {
    ToldEvent {
        kind,
        class: String::new(),
        status: 0,
        failure: None,
        counted: false,
        planned: 0,
        window: 0,
        floor: 0,
        why: String::new(),
        effective: 0,
        by: String::new(),
        reason: None,
        ms: 0,
        attempts: 0,
        elapsed: 0,
        may_have_arrived: false,
    }
}

fn nanos(length: Duration) -> i64 {
    i64::try_from(length.as_nanos()).unwrap_or(i64::MAX)
}

fn failure_name(kind: FailureKind) -> String {
    kind.name().to_owned()
}

fn class_name(class: OutcomeClass) -> &'static str {
    match class {
        OutcomeClass::Success => "success",
        OutcomeClass::TransientStatus => "transient_status",
        OutcomeClass::PermanentStatus => "permanent_status",
        OutcomeClass::NeverSent => "never_sent",
        OutcomeClass::InDoubt => "in_doubt",
        OutcomeClass::PermanentFailure => "permanent_failure",
    }
}

fn why_name(why: WaitReason) -> &'static str {
    match why {
        WaitReason::Server => "server",
        WaitReason::LookUp => "look_up",
        WaitReason::Edge => "edge",
        WaitReason::Offline => "offline",
        _ => "backoff",
    }
}

fn by_name(by: WokenBy) -> &'static str {
    match by {
        WokenBy::Timer => "timer",
        WokenBy::Edge => "edge",
        WokenBy::Probe => "probe",
        _ => "timer",
    }
}

/// What Kotlin does not know is to it something of ours.
fn reason_name(reason: Reason) -> &'static str {
    match reason {
        Reason::Attempts => "attempts",
        Reason::Elapsed => "elapsed",
        Reason::ServerWaitTooLong { .. } => "server_wait_too_long",
        Reason::NotRepeatable => "not_repeatable",
        Reason::BodyNotReplayable => "body_not_replayable",
        Reason::Permanent => "permanent",
        Reason::Offline => "offline",
        Reason::Budget => "budget",
        Reason::Breaker => "breaker",
        Reason::Cancelled(CancelKind::CallTimeout) => "call_timeout",
        Reason::Cancelled(CancelKind::Closed) => "closed",
        Reason::Cancelled(_) => "caller",
        _ => "internal",
    }
}
