//! A sleeping call: does it start its next attempt now?

use crate::call::{Call, Limit, Signals, Sleep, Step, Waiting, fails_fast, time_over};
use crate::event::{Event, Events, Reason, ResumedWait, WokenBy};
use crate::instant::duration;
use crate::policy::RetryPolicy;

/// The answer of [`resume`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// Start the next attempt now.
    Go(Go),
    /// Sleep on.
    Sleep(Sleep),
    /// The call ends with the last attempt's outcome.
    Stop(Reason),
}

/// The next attempt starts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Go {
    /// The call whose attempt is in flight now.
    pub call: Call,
    /// What ended the wait.
    pub by: WokenBy,
    /// What the attempt may take.
    pub limit: Limit,
}

/// Asked after a timer, at an edge, or at any other moment; asking early or twice is harmless and makes no event.
///
/// With a circuit breaker, ask for admission ([`Breaker::admit`](crate::Breaker::admit)) once the answer is `Go`. If it is refused, ask again with the same
/// waiting call and [`Allowed::breaker`](crate::Allowed) false.
pub fn resume(policy: &RetryPolicy, mut waiting: Waiting, signals: &Signals) -> Step<Resumed> {
    let signals = &signals.seen_by(policy);
    let now = waiting.call.see(signals.now);
    let last_start = waiting.call.last_start(policy);
    if now > last_start {
        return stop(&waiting.call, time_over(&signals.network));
    }

    // Even if an edge has come and gone.
    if signals.network.is_absent() && waiting.transport {
        if fails_fast(policy, &signals.network, now) {
            return stop(&waiting.call, Reason::Offline);
        }
        let turns = waiting.parked_at.is_none();
        waiting.park(policy, &signals.network);
        if waiting.probe_at(policy).is_some_and(|probe| now >= probe) {
            return go(policy, waiting, signals, WokenBy::Probe);
        }
        let events = if turns {
            Events::one(waiting.plan())
        } else {
            Events::none()
        };
        return Step::new(Resumed::Sleep(waiting.sleep()), events);
    }

    if waiting.parked_at.is_some() {
        waiting.unpark(policy); // only an edge leaves offline
    } else if signals.network.epoch > waiting.epoch {
        waiting.cut_by_edge(policy);
    }
    if waiting.until > last_start {
        return stop(&waiting.call, Reason::Elapsed);
    }
    if now < waiting.until {
        return Step::new(Resumed::Sleep(waiting.sleep()), Events::none());
    }
    let by = if waiting.woken {
        WokenBy::Edge
    } else {
        WokenBy::Timer
    };
    go(policy, waiting, signals, by)
}

fn stop(call: &Call, reason: Reason) -> Step<Resumed> {
    Step::new(
        Resumed::Stop(reason),
        Events::one(call.final_event(Some(reason))),
    )
}

fn go(policy: &RetryPolicy, waiting: Waiting, signals: &Signals, by: WokenBy) -> Step<Resumed> {
    if !signals.allowed.breaker {
        return stop(&waiting.call, Reason::Breaker);
    }
    let mut call = waiting.call;
    let now = call.clock;
    if by == WokenBy::Edge {
        call.woken_at = Some(now);
    }
    let limit = call.limit(policy);
    Step::new(
        Resumed::Go(Go { call, by, limit }),
        Events::one(Event::Resumed(ResumedWait {
            planned: duration(waiting.planned),
            effective: now.saturating_since(waiting.since),
            by,
        })),
    )
}
