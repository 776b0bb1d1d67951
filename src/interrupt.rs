//! The path changed during an attempt: is the attempt begun anew on the new network?
//!
//! Without this, an attempt on the dead network would wait for its timeouts while the only window of signal passes.

use crate::call::{Call, Limit, Signals, Step};
use crate::connectivity::Snapshot;
use crate::event::{Event, Events};
use crate::instant::Instant;
use crate::outcome::Evidence;
use crate::policy::RetryPolicy;

/// The answer of [`interrupt`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// Let the attempt go on.
    Keep {
        /// The call, unchanged but for its clock.
        call: Call,
        /// When to ask again; `None`: at the next edge.
        ask_at: Option<Instant>,
    },
    /// Abandon the attempt and begin it anew at once.
    Restart {
        /// The call whose new attempt is in flight now.
        call: Call,
        /// What the new attempt may take.
        limit: Limit,
    },
}

/// Asked by a driver that can abandon one attempt, while it is in flight without a response head; `noted` is the snapshot taken before
/// the attempt.
///
/// An attempt that provably sent nothing is begun anew, uncounted, if its body can be replayed or is known to be untouched. One that may have
/// been sent is begun anew, counted, if it may be repeated, has no body, and is not the last. Every other attempt is kept.
pub fn interrupt(
    policy: &RetryPolicy,
    mut call: Call,
    noted: &Snapshot,
    signals: &Signals,
    evidence: &Evidence<'_>,
) -> Step<Interruption> {
    let (noted, signals) = (&noted.seen_by(policy), &signals.seen_by(policy));
    let now = call.see(signals.now);
    let request = &call.request;
    let sent_nothing = evidence.is_never_sent();
    let allowed = if sent_nothing {
        evidence.may_replay(request)
    } else {
        let left = policy.max_attempts.saturating_sub(call.counted); // the one in flight included
        evidence.may_repeat(policy, request) && !request.has_body && left >= 2
    };
    let moved = signals.network.path > noted.path && !signals.network.is_absent();
    let start = call.spaced(now);
    if !(allowed && moved && start <= call.last_start(policy)) {
        return keep(call, None);
    }
    if start > now {
        return keep(call, Some(start));
    }
    if !sent_nothing {
        call.counted = call.counted.saturating_add(1);
        call.may_have_arrived = true;
    }
    call.woken_at = Some(now);
    let limit = call.limit(policy);
    Step::new(
        Interruption::Restart { call, limit },
        Events::one(Event::AttemptAbandoned),
    )
}

fn keep(call: Call, ask_at: Option<Instant>) -> Step<Interruption> {
    Step::new(Interruption::Keep { call, ask_at }, Events::none())
}
