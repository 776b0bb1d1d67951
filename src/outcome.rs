//! What an attempt came to, and which class of outcomes that is.
//!
//! Drivers say what they saw (a status with the headers that matter, or the kind of a failure); the class follows here.

use std::fmt;
use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::policy::{Repeat, RetryPolicy};
use crate::request::{RequestFacts, may_repeat};
use crate::retry_after::{hint, trim, whole_milliseconds};

/// What failed, as the driver saw it. The first group never reached the server, the second may have, and the third is not worth another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "uniffi", derive(uniffi::Enum))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The host's name was not resolved.
    Dns,
    /// The connection was refused.
    ConnectRefused,
    /// No route to the host or network.
    ConnectUnreachable,
    /// The connection was not established in time.
    ConnectTimeout,
    /// The TLS handshake was broken off, not because of a certificate.
    TlsBrokenOff,
    /// The server refused the stream (HTTP/2 REFUSED_STREAM, or beyond a GOAWAY).
    RefusedStream,
    /// Positive proof: the client's own layer was heard in this attempt, and the request's headers did not go out.
    BeforeHeaders,
    /// Nothing was read for too long.
    ReadTimeout,
    /// Nothing could be written for too long.
    WriteTimeout,
    /// The connection was reset.
    Reset,
    /// The connection ended in the middle.
    UnexpectedEnd,
    /// The stream was reset.
    StreamReset,
    /// The attempt reached its time limit.
    AttemptTimeout,
    /// Another I/O error of the platform or the client, or one that says nothing more.
    OtherIo,
    /// A certificate was not accepted.
    Certificate,
    /// A pinned certificate did not match, or the host name did not.
    Pinning,
    /// The peer broke the protocol, or the client refuses to speak it.
    Protocol,
    /// A local file could not be read or written.
    LocalFile,
    /// A value could not be written or read.
    Serialisation,
    /// The request's body itself failed.
    RequestBody,
    /// A type that is neither the platform's nor the client's. Only the app knows what it means.
    Unlisted,
}

impl FailureKind {
    /// All kinds.
    pub const ALL: &'static [FailureKind] = &[
        FailureKind::Dns,
        FailureKind::ConnectRefused,
        FailureKind::ConnectUnreachable,
        FailureKind::ConnectTimeout,
        FailureKind::TlsBrokenOff,
        FailureKind::RefusedStream,
        FailureKind::BeforeHeaders,
        FailureKind::ReadTimeout,
        FailureKind::WriteTimeout,
        FailureKind::Reset,
        FailureKind::UnexpectedEnd,
        FailureKind::StreamReset,
        FailureKind::AttemptTimeout,
        FailureKind::OtherIo,
        FailureKind::Certificate,
        FailureKind::Pinning,
        FailureKind::Protocol,
        FailureKind::LocalFile,
        FailureKind::Serialisation,
        FailureKind::RequestBody,
        FailureKind::Unlisted,
    ];

    /// The class this kind belongs to by itself; an outcome's class asks for proof too: [`Evidence::sent_nothing`].
    #[inline]
    pub const fn class(self) -> OutcomeClass {
        use FailureKind::*;
        match self {
            Dns | ConnectRefused | ConnectUnreachable | ConnectTimeout | TlsBrokenOff
            | RefusedStream | BeforeHeaders => OutcomeClass::NeverSent,
            ReadTimeout | WriteTimeout | Reset | UnexpectedEnd | StreamReset | AttemptTimeout
            | OtherIo => OutcomeClass::InDoubt,
            Certificate | Pinning | Protocol | LocalFile | Serialisation | RequestBody
            | Unlisted => OutcomeClass::PermanentFailure,
        }
    }

    /// The kind of an I/O error, as far as the error itself tells: the same for the executor, for `.retry` and for a driver of your own. What it wraps
    /// goes before its own kind.
    ///
    /// It knows nothing of the rest of the attempt. [`ConnectRefused`](FailureKind::ConnectRefused) means that this connect was refused, not that the
    /// attempt sent nothing before it.
    ///
    /// ```
    /// use comeback::FailureKind;
    /// use std::io::{Error, ErrorKind};
    ///
    /// assert_eq!(FailureKind::of_io(&ErrorKind::ConnectionReset.into()), FailureKind::Reset);
    /// let wrapped = Error::other(Error::from(ErrorKind::UnexpectedEof));
    /// assert_eq!(FailureKind::of_io(&wrapped), FailureKind::UnexpectedEnd);
    /// ```
    pub fn of_io(error: &io::Error) -> FailureKind {
        use io::ErrorKind::*;
        let mut error = error;
        for _ in 0..LONGEST_CHAIN {
            let wrapped = error.get_ref().and_then(|inner| inner.downcast_ref());
            match wrapped {
                Some(inner) => error = inner,
                None => break,
            }
        }
        match error.kind() {
            ConnectionRefused => FailureKind::ConnectRefused,
            HostUnreachable | NetworkUnreachable | NetworkDown | AddrNotAvailable => {
                FailureKind::ConnectUnreachable
            }
            TimedOut => FailureKind::ReadTimeout,
            ConnectionReset | ConnectionAborted | BrokenPipe => FailureKind::Reset,
            UnexpectedEof => FailureKind::UnexpectedEnd,
            NotFound | AlreadyExists | IsADirectory | NotADirectory | DirectoryNotEmpty
            | ReadOnlyFilesystem | StorageFull => FailureKind::LocalFile,
            _ => FailureKind::OtherIo,
        }
    }

    /// The name as it stands in events: `connect_refused`.
    pub fn name(self) -> &'static str {
        use FailureKind::*;
        match self {
            Dns => "dns",
            ConnectRefused => "connect_refused",
            ConnectUnreachable => "connect_unreachable",
            ConnectTimeout => "connect_timeout",
            TlsBrokenOff => "tls_broken_off",
            RefusedStream => "refused_stream",
            BeforeHeaders => "before_headers",
            ReadTimeout => "read_timeout",
            WriteTimeout => "write_timeout",
            Reset => "reset",
            UnexpectedEnd => "unexpected_end",
            StreamReset => "stream_reset",
            AttemptTimeout => "attempt_timeout",
            OtherIo => "other_io",
            Certificate => "certificate",
            Pinning => "pinning",
            Protocol => "protocol",
            LocalFile => "local_file",
            Serialisation => "serialisation",
            RequestBody => "request_body",
            Unlisted => "unlisted",
        }
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<FailureKind> {
        FailureKind::ALL
            .iter()
            .copied()
            .find(|kind| kind.name() == name)
    }
}

/// An error that wraps more than these goes in a circle.
const LONGEST_CHAIN: usize = 64;

/// What an outcome means for the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "uniffi", derive(uniffi::Enum))]
#[serde(rename_all = "snake_case")]
pub enum OutcomeClass {
    /// The answer.
    Success,
    /// A status worth another attempt, if the request may be repeated.
    TransientStatus,
    /// A status that is the answer.
    PermanentStatus,
    /// The server never saw the request: worth another attempt, whatever the method.
    NeverSent,
    /// The server may have seen the request: worth another attempt, if it may be repeated.
    InDoubt,
    /// Not worth another attempt.
    PermanentFailure,
}

/// What one attempt came back with. Built by [`response`](Outcome::response) or [`failure`](Outcome::failure); the rest is optional.
///
/// ```
/// use comeback::Outcome;
///
/// let overloaded = Outcome {
///     retry_after: &["2"],
///     ..Outcome::response(503)
/// };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome<'a> {
    /// The status, or the kind of the failure.
    pub what: What,
    /// The lines of the answer's `Retry-After`, in any order.
    pub retry_after: &'a [&'a str],
    /// How long a server asked not to be tried again, where that is known as a length: said by the app, or read from the answers that inner requests
    /// got. It is rounded up to a whole millisecond. The longest of it and the lines applies.
    pub server_wait: Option<Duration>,
    /// The response's own `Date`.
    pub date: Option<&'a str>,
    /// The value of the header that the policy names as the server's explicit word.
    pub should_retry: Option<&'a str>,
    /// How long the platform remembers a failed look-up, from the failure on; zero if the driver asked past that memory.
    pub look_up: Duration,
    /// What the driver knows of the attempt itself.
    pub evidence: Evidence<'a>,
    /// The app's own opinion of the class. It never lifts the rules on repeating: see [`classify`].
    pub overrule: Option<OutcomeClass>,
}

/// What a driver knows of an attempt: what was sent, and by which layer. Silence proves nothing, so [`Evidence::NONE`] is the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence<'a> {
    /// Positive proof that no request of this attempt wrote its head, or that its stream was refused. Without it a failure is never
    /// taken for *never sent*, whatever its kind says: the kind may be that of another request. [`Outcome::failure`] presets it by the kind;
    /// a driver that has no proof clears it.
    pub sent_nothing: bool,
    /// Whether it is known that nothing of the request's body was handed out.
    pub body_untouched: bool,
    /// Whether the body cannot go again after this attempt, whatever the request says of it: it proved to be another one than before, or the attempt
    /// goes on alone and may still be writing it.
    pub body_spent: bool,
    /// The request as it left, if the driver saw it and something further in had changed it.
    pub went_out: Option<RequestFacts>,
    /// The requests that layers further in reported.
    pub inner: &'a [InnerRequest],
}

impl Evidence<'_> {
    /// Nothing is known.
    pub const NONE: Evidence<'static> = Evidence {
        sent_nothing: false,
        body_untouched: false,
        body_spent: false,
        went_out: None,
        inner: &[],
    };

    /// Whether it is proved that no layer sent anything in this attempt.
    pub(crate) fn is_never_sent(&self) -> bool {
        self.sent_nothing && self.inner.iter().all(|request| request.sent_nothing)
    }

    /// Whether the next attempt can send the body of `request` as this one was given it.
    pub(crate) fn may_replay(&self, request: &RequestFacts) -> bool {
        (request.body_replayable || self.body_untouched) && !self.body_spent
    }

    /// Whether all that this attempt may have sent may be sent again: the request that came in, the one that left, and every request that a
    /// layer further in made. `repeat = always` is the caller's word for all of them.
    pub(crate) fn may_repeat(&self, policy: &RetryPolicy, request: &RequestFacts) -> bool {
        let left_may = |left: RequestFacts| may_repeat(policy, &left.sent_for(request));
        let inner_may = |inner: &InnerRequest| inner.may_repeat || inner.sent_nothing;
        match policy.repeat {
            Repeat::Always => true,
            Repeat::Never => false,
            Repeat::Auto => {
                may_repeat(policy, request)
                    && self.went_out.is_none_or(left_may)
                    && self.inner.iter().all(inner_may)
            }
        }
    }
}

/// A status or the kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// The server answered with this status.
    Status(u16),
    /// There was no answer.
    Failure(FailureKind),
}

/// As it stands in logs: `503`, `connect_refused`.
impl fmt::Display for What {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Status(status) => write!(out, "{status}"),
            What::Failure(kind) => out.write_str(kind.name()),
        }
    }
}

impl<'a> Outcome<'a> {
    /// The server answered.
    pub const fn response(status: u16) -> Outcome<'a> {
        Outcome::of(What::Status(status))
    }

    /// There was no answer.
    pub const fn failure(kind: FailureKind) -> Outcome<'a> {
        let mut outcome = Outcome::of(What::Failure(kind));
        outcome.evidence.sent_nothing = matches!(kind.class(), OutcomeClass::NeverSent);
        outcome
    }

    /// Whether a server said how long to wait, readable or not.
    pub(crate) fn has_server_wait(&self) -> bool {
        self.server_wait.is_some() || !self.retry_after.is_empty()
    }

    /// How long a server asked to wait, in nanoseconds: the longest of all that can be read. `wall_ms` is for dates.
    pub(crate) fn longest_server_wait(&self, wall_ms: Option<i64>) -> Option<i64> {
        let known = self.server_wait.map(whole_milliseconds);
        hint(self.retry_after, self.date, wall_ms).max(known)
    }

    const fn of(what: What) -> Outcome<'a> {
        Outcome {
            what,
            retry_after: &[],
            server_wait: None,
            date: None,
            should_retry: None,
            look_up: Duration::ZERO,
            evidence: Evidence::NONE,
            overrule: None,
        }
    }
}

/// A request that a layer further in made during an attempt, whether it was answered or not. That layer stood down and reports what it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct InnerRequest {
    /// Whether it may be repeated although it may have arrived.
    pub may_repeat: bool,
    /// Positive proof that it did not write its head.
    pub sent_nothing: bool,
}

impl InnerRequest {
    /// A request with these facts, judged by its own layer's policy. A key that the inner layer made does not count: its next request would have
    /// a different key.
    pub fn of(policy: &RetryPolicy, facts: &RequestFacts, sent_nothing: bool) -> InnerRequest {
        InnerRequest {
            may_repeat: may_repeat(policy, facts),
            sent_nothing,
        }
    }
}

/// The class of an outcome.
///
/// An overrule cannot turn a response into a failure or a failure into a response, and only what is proved to be never sent can be called so.
pub fn classify(
    policy: &RetryPolicy,
    request: &RequestFacts,
    outcome: &Outcome<'_>,
) -> OutcomeClass {
    use OutcomeClass::*;
    match outcome.what {
        What::Status(status) => match outcome.overrule {
            Some(Success) => Success,
            Some(TransientStatus | NeverSent | InDoubt) => TransientStatus,
            Some(PermanentStatus | PermanentFailure) => PermanentStatus,
            None => {
                let left = outcome
                    .evidence
                    .went_out
                    .map_or(*request, |left| left.sent_for(request));
                class_of_status(policy, &left, status, outcome.should_retry)
            }
        },
        What::Failure(kind) => match outcome.overrule {
            None => class_of_failure(kind, outcome),
            Some(NeverSent) if class_of_failure(kind, outcome) == NeverSent => NeverSent,
            Some(NeverSent | InDoubt | TransientStatus) => InDoubt,
            Some(Success | PermanentStatus | PermanentFailure) => PermanentFailure,
        },
    }
}

/// Proof decides between *never sent* and *in doubt*, not the kind: the failure may be that of another request, or say too little.
#[inline]
fn class_of_failure(kind: FailureKind, outcome: &Outcome<'_>) -> OutcomeClass {
    match kind.class() {
        OutcomeClass::NeverSent | OutcomeClass::InDoubt if outcome.evidence.is_never_sent() => {
            OutcomeClass::NeverSent
        }
        OutcomeClass::NeverSent => OutcomeClass::InDoubt,
        other => other,
    }
}

fn class_of_status(
    policy: &RetryPolicy,
    request: &RequestFacts,
    status: u16,
    should_retry: Option<&str>,
) -> OutcomeClass {
    if !(400..=599).contains(&status) {
        return OutcomeClass::Success;
    }
    if status == 504 && request.only_if_cached {
        return OutcomeClass::PermanentStatus; // the cache's own answer, not a gateway's
    }
    let word = should_retry
        .filter(|_| policy.should_retry_header.is_some())
        .map(trim);
    let transient = match word {
        Some(word) if word.eq_ignore_ascii_case("true") => true,
        Some(word) if word.eq_ignore_ascii_case("false") => false,
        _ => policy.retry_statuses.contains(status) && (status != 409 || request.has_key),
    };
    if transient {
        OutcomeClass::TransientStatus
    } else {
        OutcomeClass::PermanentStatus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_of_what_a_server_said_and_of_the_known_length_applies_in_whole_milliseconds() {
        let wait = |lines: &[&str], known: Option<Duration>| {
            let outcome = Outcome {
                retry_after: lines,
                server_wait: known,
                ..Outcome::response(503)
            };
            outcome.longest_server_wait(None)
        };
        assert_eq!(wait(&[], None), None);
        assert_eq!(wait(&["junk"], None), None);
        assert_eq!(
            wait(&["1"], Some(Duration::from_millis(500))),
            Some(1_000_000_000)
        );
        assert_eq!(
            wait(&["1"], Some(Duration::from_secs(2))),
            Some(2_000_000_000)
        );
        assert_eq!(wait(&[], Some(Duration::ZERO)), Some(0));
        assert_eq!(wait(&[], Some(Duration::from_nanos(1))), Some(1_000_000));
        assert_eq!(
            wait(&[], Some(Duration::from_nanos(1_250_000_001))),
            Some(1_251_000_000)
        );
        assert_eq!(wait(&[], Some(Duration::MAX)), Some(i64::MAX));
    }
}
