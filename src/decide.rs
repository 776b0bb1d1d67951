//! A failed attempt: does the call go again, and when?

use crate::budget::costs_a_token;
use crate::call::{Call, Floor, Signals, Sleep, Step, Waiting, fails_fast, time_over};
use crate::connectivity::Snapshot;
use crate::draw::{Purpose, Range, word};
use crate::event::{Event, Events, Reason};
use crate::instant::{MILLISECOND, nanos};
use crate::outcome::{FailureKind, Outcome, OutcomeClass, What, classify};
use crate::policy::RetryPolicy;

/// The answer of [`decide`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The outcome is the call's answer.
    Deliver,
    /// The call ends with this attempt's outcome.
    Stop(Reason),
    /// Close what the attempt left open, wait, and ask [`resume`](crate::resume).
    Sleep(Sleep),
}

/// Decides what follows an attempt that came back with `outcome`; `noted` is the snapshot taken before the attempt.
///
/// The first check that applies is the reason to stop: deliver, permanent, not repeatable, body not replayable, attempts, time over,
/// offline, server's wait too long, elapsed. Between attempts and time over: the breaker, and the budget.
///
/// ```
/// use comeback::*;
///
/// let policy = RetryPolicy::read();
/// let call = Call::begin(RequestFacts::new(Method::Get), 42, Instant::from_nanos(0), None);
/// let signals = Signals {
///     now: Instant::from_nanos(30_000_000),
///     network: Snapshot::UNKNOWN,
///     wall_ms: None,
///     allowed: Allowed::ALL,
/// };
/// let outcome = Outcome::failure(FailureKind::Reset);
/// match decide(&policy, call, &Snapshot::UNKNOWN, &outcome, &signals).decision {
///     Decision::Sleep(sleep) => assert!(sleep.ask_at <= Instant::from_nanos(1_030_000_000)),
///     other => panic!("{other:?}"),
/// }
/// ```
pub fn decide(
    policy: &RetryPolicy,
    call: Call,
    noted: &Snapshot,
    outcome: &Outcome<'_>,
    signals: &Signals,
) -> Step<Decision> {
    decide_after(policy, call, noted, outcome, signals, false)
}

/// The same. If the attempt `is_last`, no other follows, counted or not, whatever the policy says.
pub(crate) fn decide_after(
    policy: &RetryPolicy,
    mut call: Call,
    noted: &Snapshot,
    outcome: &Outcome<'_>,
    signals: &Signals,
    is_last: bool,
) -> Step<Decision> {
    let (noted, signals) = (&noted.seen_by(policy), &signals.seen_by(policy));
    let now = call.see(signals.now);
    let class = classify(policy, &call.request, outcome);
    // An attempt that was begun without a network and sent nothing costs nothing.
    let counted = !(class == OutcomeClass::NeverSent && noted.is_absent());
    call.counted = call.counted.saturating_add(counted.into());
    call.may_have_arrived |=
        matches!(outcome.what, What::Status(_)) || !outcome.evidence.is_never_sent();

    if matches!(class, OutcomeClass::Success | OutcomeClass::PermanentStatus) {
        return Step::new(Decision::Deliver, Events::one(call.final_event(None)));
    }
    let failed = Event::AttemptFailed {
        class,
        what: outcome.what,
        counted,
    };
    let stop = |call: &Call, reason| {
        Step::new(
            Decision::Stop(reason),
            Events::two(failed, call.final_event(Some(reason))),
        )
    };

    if class == OutcomeClass::PermanentFailure {
        return stop(&call, Reason::Permanent);
    }
    if class != OutcomeClass::NeverSent && !outcome.evidence.may_repeat(policy, &call.request) {
        return stop(&call, Reason::NotRepeatable);
    }
    if !outcome.evidence.may_replay(&call.request) {
        return stop(&call, Reason::BodyNotReplayable);
    }
    if is_last || call.counted >= policy.max_attempts {
        return stop(&call, Reason::Attempts);
    }
    if !signals.allowed.breaker {
        return stop(&call, Reason::Breaker);
    }
    let costs_token = costs_a_token(class, noted, &signals.network);
    if costs_token && !signals.allowed.budget {
        return stop(&call, Reason::Budget);
    }
    let last_start = call.last_start(policy);
    if now > last_start {
        return stop(&call, time_over(&signals.network));
    }
    let transport = matches!(outcome.what, What::Failure(_));
    let parks = transport && signals.network.is_absent();
    if parks && fails_fast(policy, &signals.network, now) {
        return stop(&call, Reason::Offline);
    }

    let (floor_by, length) = floor(outcome, signals);
    let floor = now.plus(length);
    if floor > last_start {
        let reason = match floor_by {
            Floor::Server => Reason::ServerWaitTooLong {
                ms: length / MILLISECOND,
            },
            Floor::LookUp | Floor::None => Reason::Elapsed,
        };
        return stop(&call, reason);
    }

    let overloaded = matches!(outcome.what, What::Status(429 | 503));
    let window = match &policy.overload {
        Some(overload) if overloaded => overload,
        _ => &policy.window,
    };
    let range = Range::of(policy.jitter, window, call.n, call.previous);
    let drawn = range.draw(word(call.seed, call.failures, Purpose::Wait));
    call.failures = call.failures.saturating_add(1);
    call.n = call.n.saturating_add(counted.into());
    call.previous = Some(drawn);

    let mut waiting = Waiting {
        call,
        epoch: noted.epoch,
        since: now,
        floor,
        floor_by,
        transport,
        window: range.high,
        until: floor.plus(drawn),
        woken: false,
        parked_at: None,
        planned: 0,
    };
    if parks {
        waiting.park(policy, &signals.network);
    } else {
        if signals.network.epoch > noted.epoch {
            waiting.cut_by_edge(policy); // it came during the attempt
        }
        if waiting.until > last_start {
            return stop(&waiting.call, Reason::Elapsed);
        }
    }
    let events = Events::two(failed, waiting.plan());
    let sleep = Sleep {
        costs_token,
        ..waiting.sleep()
    };
    Step::new(Decision::Sleep(sleep), events)
}

/// What sets the floor, and its length. Nothing starts before it; zero means no floor.
fn floor(outcome: &Outcome<'_>, signals: &Signals) -> (Floor, i64) {
    let (by, length) = match outcome.what {
        // Of a block's failure too: a server told one of its inner requests how long to wait.
        _ if outcome.has_server_wait() => {
            let wait = outcome.longest_server_wait(signals.wall_ms);
            (Floor::Server, wait.unwrap_or(0))
        }
        What::Failure(FailureKind::Dns) => (Floor::LookUp, nanos(outcome.look_up)),
        What::Status(_) | What::Failure(_) => return (Floor::None, 0),
    };
    if length > 0 {
        (by, length)
    } else {
        (Floor::None, 0)
    }
}
