//! What the caller learns: reasons, events, and the report as a fold of one call's events.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::instant::Milliseconds;
use crate::outcome::{OutcomeClass, What};

/// Why a call ended with a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// All attempts are used up.
    Attempts,
    /// No attempt can start before the deadline.
    Elapsed,
    /// The server asked for a longer wait than there is time.
    ServerWaitTooLong {
        /// How long it asked for, in milliseconds, rounded down.
        ms: i64,
    },
    /// The request may have reached the server, and must not reach it twice.
    NotRepeatable,
    /// The body cannot be sent again byte for byte.
    BodyNotReplayable,
    /// The failure is not worth another attempt.
    Permanent,
    /// There is no network.
    Offline,
    /// The retry budget of the origin is used up.
    Budget,
    /// The circuit breaker of the origin lets no retry through.
    Breaker,
    /// The call was ended from outside.
    Cancelled(CancelKind),
    /// Comeback itself failed. The call ends with the outcome it has.
    Internal,
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Reason::Attempts => "all attempts are used up",
            Reason::Elapsed => "no attempt can start before the deadline",
            Reason::ServerWaitTooLong { ms } => {
                return write!(
                    out,
                    "the server asked for a wait of {ms} ms, and there is less time"
                );
            }
            Reason::NotRepeatable => "it may have arrived, and must not arrive twice",
            Reason::BodyNotReplayable => "the body cannot be sent again",
            Reason::Permanent => "not worth another attempt",
            Reason::Offline => "there is no network",
            Reason::Budget => "the retry budget of this origin is used up",
            Reason::Breaker => "the circuit breaker of this origin is open",
            Reason::Cancelled(CancelKind::Caller) => "the caller ended it",
            Reason::Cancelled(CancelKind::CallTimeout) => "the client's own call timeout ended it",
            Reason::Cancelled(CancelKind::Closed) => "the client was closed",
            Reason::Internal => "Comeback itself failed",
        })
    }
}

/// A reason by its name, as logs and vectors have it: `attempts`, `server_wait_too_long(3000)`, `cancelled(caller)`. [`Reason`]'s own text is a sentence.
struct Named(Reason);

impl fmt::Display for Named {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.0 {
            Reason::Attempts => "attempts",
            Reason::Elapsed => "elapsed",
            Reason::ServerWaitTooLong { ms } => {
                return write!(out, "server_wait_too_long({ms})");
            }
            Reason::NotRepeatable => "not_repeatable",
            Reason::BodyNotReplayable => "body_not_replayable",
            Reason::Permanent => "permanent",
            Reason::Offline => "offline",
            Reason::Budget => "budget",
            Reason::Breaker => "breaker",
            Reason::Cancelled(CancelKind::Caller) => "cancelled(caller)",
            Reason::Cancelled(CancelKind::CallTimeout) => "cancelled(call_timeout)",
            Reason::Cancelled(CancelKind::Closed) => "cancelled(closed)",
            Reason::Internal => "internal",
        })
    }
}

/// Who or what ended a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CancelKind {
    /// The caller.
    Caller,
    /// The client's own call timeout.
    CallTimeout,
    /// The client or executor was closed.
    Closed,
}

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "uniffi", derive(uniffi::Enum))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WaitReason {
    /// The drawn wait.
    Backoff,
    /// The server asked for it. No edge ends it.
    Server,
    /// The platform remembers a failed look-up for so long.
    LookUp,
    /// An edge ended the drawn wait. What is left is the spread, or the distance to the last woken start.
    Edge,
    /// Parked until the network is back.
    Offline,
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "uniffi", derive(uniffi::Enum))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WokenBy {
    /// The timer.
    Timer,
    /// A restored edge.
    Edge,
    /// A parked call's probe.
    Probe,
}

/// Something that happened to a call. Drivers add the call's id and label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// An attempt failed.
    AttemptFailed {
        /// The class of its outcome.
        class: OutcomeClass,
        /// Its status or the kind of its failure.
        what: What,
        /// Whether it counts against `max_attempts`.
        counted: bool,
    },
    /// An attempt was abandoned, and a new one is made on the new network.
    AttemptAbandoned,
    /// A wait begins, or turns into a park.
    WaitPlanned(PlannedWait),
    /// A wait ended, and an attempt starts.
    Resumed(ResumedWait),
    /// The last event of a call.
    Final(End),
}

/// A wait as it was planned. All lengths count from the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlannedWait {
    /// When the next attempt starts. For a park: when its probe is made, or, without a probe, when the call stops.
    pub planned: Duration,
    /// The window drawn from.
    pub window: Duration,
    /// Nothing starts before this.
    pub floor: Duration,
    /// What the wait is for.
    pub why: WaitReason,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResumedWait {
    /// What the latest [`Event::WaitPlanned`] said.
    pub planned: Duration,
    /// How long the wait was, from the failure on.
    pub effective: Duration,
    /// What ended it.
    pub by: WokenBy,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct End {
    /// Why it stopped; `None` if the last outcome is the call's answer.
    pub reason: Option<Reason>,
    /// Counted attempts.
    pub counted: u32,
    /// Since the beginning.
    pub elapsed: Duration,
    /// Whether any attempt may have reached the server. False only if every attempt provably wrote no head or had its stream refused; then the
    /// app may send the request again by other means. True where nobody knows.
    pub may_have_arrived: bool,
}

/// The events of one step, in order: at most two, held inline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events([Option<Event>; 2]);

impl Events {
    #[inline]
    pub(crate) fn none() -> Events {
        Events::default()
    }

    #[inline]
    pub(crate) fn one(event: Event) -> Events {
        Events([Some(event), None])
    }

    #[inline]
    pub(crate) fn two(first: Event, second: Event) -> Events {
        Events([Some(first), Some(second)])
    }

    /// The events in order.
    pub fn iter(&self) -> impl Iterator<Item = &Event> {
        self.0.iter().flatten()
    }
}

impl IntoIterator for Events {
    type Item = Event;
    type IntoIter = IntoEvents;

    fn into_iter(self) -> IntoEvents {
        IntoEvents(self.0.into_iter().flatten())
    }
}

/// The [`Events`] of a step, one by one.
#[derive(Clone, Debug)]
pub struct IntoEvents(std::iter::Flatten<std::array::IntoIter<Option<Event>, 2>>);

impl Iterator for IntoEvents {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

/// What became of a call. The listener builds it from the call's events, because the call's state holds no history.
///
/// Its text is one line for a log:
///
/// ```text
/// attempts after 2104 ms, 3 counted; failed [503, reset, 503]
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// The failed attempts in order.
    pub attempts: Vec<FailedAttempt>,
    /// How many attempts were abandoned for a new one on the new network.
    pub abandoned: u32,
    /// How the call ended; `None` while it goes on.
    pub end: Option<End>,
}

/// One failed attempt of a [`Report`] and what followed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FailedAttempt {
    /// The class of its outcome.
    pub class: OutcomeClass,
    /// Its status or the kind of its failure.
    pub what: What,
    /// Whether it counts against `max_attempts`.
    pub counted: bool,
    /// The waits planned after it: one, and another for each time it turned into a park.
    pub waits: Vec<PlannedWait>,
    /// How the wait ended; `None` if no attempt followed.
    pub resumed: Option<ResumedWait>,
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.end {
            None => out.write_str("goes on")?,
            Some(end) => {
                match end.reason {
                    None => out.write_str("done")?,
                    Some(reason) => write!(out, "{}", Named(reason))?,
                }
                let elapsed = Milliseconds::whole(end.elapsed);
                write!(out, " after {elapsed}, {} counted", end.counted)?;
            }
        }
        out.write_str("; failed [")?;
        for (place, attempt) in self.attempts.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(out, "{comma}{}", attempt.what)?;
        }
        out.write_str("]")?;
        match self.abandoned {
            0 => Ok(()),
            abandoned => write!(out, ", abandoned {abandoned}"),
        }
    }
}

impl Report {
    /// [`End::may_have_arrived`] of a call that is over; true while it goes on.
    pub fn may_have_arrived(&self) -> bool {
        self.end.is_none_or(|end| end.may_have_arrived)
    }

    /// Takes in the next event. Events that cannot come here (a wait before any failure, anything after the end) are ignored.
    pub fn hear(&mut self, event: &Event) {
        if self.end.is_some() {
            return;
        }
        match *event {
            Event::AttemptFailed {
                class,
                what,
                counted,
            } => self.attempts.push(FailedAttempt {
                class,
                what,
                counted,
                waits: Vec::new(),
                resumed: None,
            }),
            Event::AttemptAbandoned => self.abandoned = self.abandoned.saturating_add(1),
            Event::WaitPlanned(wait) => {
                if let Some(attempt) = self.attempts.last_mut() {
                    attempt.waits.push(wait);
                }
            }
            Event::Resumed(resumed) => {
                if let Some(attempt) = self.attempts.last_mut() {
                    attempt.resumed = Some(resumed);
                }
            }
            Event::Final(end) => self.end = Some(end),
        }
    }
}
