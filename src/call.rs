//! The state of one call, and what the three questions about it (`decide`, `resume`, `interrupt`) share.
//!
//! A state is a small plain value: it can be copied, compared, serialised and replayed, and there is nothing to release. Its serialised
//! form is stored; a change of it is a change of format.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::connectivity::Snapshot;
use crate::draw::{Purpose, uniform, word};
use crate::event::{End, Event, Events, PlannedWait, Reason, WaitReason};
use crate::instant::{Instant, SECOND, duration};
use crate::policy::{BEFORE_DEADLINE, Offline, RetryPolicy, Wake};
use crate::request::RequestFacts;

/// Woken starts keep this distance.
pub(crate) const WAKE_SPACING: i64 = SECOND;
/// A sleeping driver asks again after this long at the latest.
pub(crate) const ASK_WITHIN: i64 = 30 * SECOND;
/// A later attempt's inactivity timeouts are not shorter than this.
const LEAST_INACTIVITY: i64 = 2 * SECOND;
/// With `offline = auto` a call parks while the loss is younger than this.
const YOUNG_LOSS: i64 = 600 * SECOND;

/// What the driver sees at the moment it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signals {
    /// Now, on the clock of the whole call.
    pub now: Instant,
    /// The hub's snapshot.
    pub network: Snapshot,
    /// The wall clock as Unix milliseconds, for HTTP dates only; `None` if unknown.
    pub wall_ms: Option<i64>,
    /// What the aggregates of the call's origin say.
    pub allowed: Allowed,
}

/// What the aggregates of the call's origin let a retry do: see [`TokenBucket`](crate::TokenBucket) and [`Breaker`](crate::Breaker).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The budget has a token. Asked for a retry that costs one.
    pub budget: bool,
    /// The breaker lets retries through.
    pub breaker: bool,
}

impl Allowed {
    /// Where neither is configured, everything is.
    pub const ALL: Allowed = Allowed {
        budget: true,
        breaker: true,
    };
}

impl Default for Allowed {
    fn default() -> Allowed {
        Allowed::ALL
    }
}

impl Signals {
    /// The same as a call with this policy sees them.
    #[inline]
    pub(crate) fn seen_by(&self, policy: &RetryPolicy) -> Signals {
        Signals {
            network: self.network.seen_by(policy),
            ..*self
        }
    }
}

impl Snapshot {
    /// The network as a call with this policy sees it: under `ignore` nothing is ever known.
    #[inline]
    pub(crate) fn seen_by(&self, policy: &RetryPolicy) -> Snapshot {
        match policy.offline {
            Offline::Ignore => Snapshot::UNKNOWN,
            Offline::Auto | Offline::Park | Offline::FailFast => *self,
        }
    }
}

/// What an attempt may take, from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// Until the response head, hard.
    pub hard: Option<Duration>,
    /// The longest connect, read or write without progress. The client's own limit holds if it is shorter, and if this is `None`.
    pub inactivity: Option<Duration>,
}

/// A decision and the events it makes, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step<D> {
    /// What to do.
    pub decision: D,
    /// What to tell, before doing it.
    pub events: Events,
}

impl<D> Step<D> {
    #[inline]
    pub(crate) fn new(decision: D, events: Events) -> Step<D> {
        Step { decision, events }
    }
}

/// Wait, then ask `resume`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sleep {
    /// What to ask with.
    pub waiting: Waiting,
    /// When to ask: at this instant, at an edge, or earlier. At most 30 s away.
    pub ask_at: Instant,
    /// What the wait is for.
    pub why: WaitReason,
    /// Whether the retry takes a token of the budget: then take it now, and if there is none, ask [`decide`](crate::decide) again with an empty budget.
    /// Only `decide` says so; sleeping on costs nothing more.
    pub costs_token: bool,
}

/// A call whose attempt is in flight. [`decide`](crate::decide) consumes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    pub(crate) request: RequestFacts,
    pub(crate) seed: u64,
    pub(crate) began: Instant,
    /// The latest time seen: inside a call it never runs backwards.
    pub(crate) clock: Instant,
    pub(crate) client_end: Option<Instant>,
    /// Counted attempts that have ended.
    pub(crate) counted: u32,
    /// Failures, counted or not: the number of the next one, which names its draws.
    pub(crate) failures: u32,
    /// Counted failures: the number of the window.
    pub(crate) n: u32,
    /// The last drawn wait, in nanoseconds.
    pub(crate) previous: Option<i64>,
    /// The last woken start: by an edge, or a restart.
    pub(crate) woken_at: Option<Instant>,
    /// Whether an attempt so far may have reached the server: true unless each is proved to have sent nothing.
    pub(crate) may_have_arrived: bool,
}

impl Call {
    /// A call that began when its driver was entered. `seed` comes from the operating system and differs per call; `client_end` is the
    /// instant of the client's own call timeout, if it has one.
    pub fn begin(
        request: RequestFacts,
        seed: u64,
        began: Instant,
        client_end: Option<Instant>,
    ) -> Call {
        Call {
            request,
            seed,
            began,
            clock: began,
            client_end,
            counted: 0,
            failures: 0,
            n: 0,
            previous: None,
            woken_at: None,
            may_have_arrived: false,
        }
    }

    /// Counted attempts that have ended.
    pub fn counted(&self) -> u32 {
        self.counted
    }

    /// Whether an attempt that has ended may have reached the server.
    pub fn may_have_arrived(&self) -> bool {
        self.may_have_arrived
    }

    /// When the driver was entered.
    pub fn began(&self) -> Instant {
        self.began
    }

    #[inline]
    pub(crate) fn see(&mut self, now: Instant) -> Instant {
        self.clock = self.clock.max(now);
        self.clock
    }

    #[inline]
    fn deadline(&self, policy: &RetryPolicy) -> Instant {
        let own = self.began.plus(policy.max_elapsed);
        self.client_end.map_or(own, |end| own.min(end))
    }

    /// Nothing starts later; after it the time is over.
    #[inline]
    pub(crate) fn last_start(&self, policy: &RetryPolicy) -> Instant {
        self.deadline(policy).plus(-BEFORE_DEADLINE)
    }

    /// The limit of a later attempt that starts now.
    pub(crate) fn limit(&self, policy: &RetryPolicy) -> Limit {
        let left = self.deadline(policy).nanos_since(self.clock);
        Limit {
            hard: self.hard_limit(policy),
            inactivity: Some(duration(left.max(LEAST_INACTIVITY))),
        }
    }

    fn hard_limit(&self, policy: &RetryPolicy) -> Option<Duration> {
        let left = self.deadline(policy).nanos_since(self.clock);
        let cut = policy.cut_at_deadline.then_some(left);
        let shorter = match (policy.attempt_timeout, cut) {
            (Some(timeout), Some(left)) => Some(timeout.min(left)),
            (timeout, left) => timeout.or(left),
        };
        shorter.map(duration)
    }

    /// A start that keeps its distance from the last woken one.
    pub(crate) fn spaced(&self, start: Instant) -> Instant {
        self.woken_at
            .map_or(start, |woken| start.max(woken.plus(WAKE_SPACING)))
    }

    /// When the next attempt starts after an edge that is seen now, without regard to a floor.
    fn woken_start(&self, policy: &RetryPolicy) -> Instant {
        let number = self.failures.saturating_sub(1);
        let spread = uniform(
            word(self.seed, number, Purpose::Spread),
            0,
            policy.wake_spread,
        );
        self.spaced(self.clock.plus(spread))
    }

    #[inline]
    pub(crate) fn final_event(&self, reason: Option<Reason>) -> Event {
        Event::Final(End {
            reason,
            counted: self.counted,
            elapsed: self.clock.saturating_since(self.began),
            may_have_arrived: self.may_have_arrived,
        })
    }
}

/// The limit of a call's first attempt: its inactivity timeouts are the app's own.
pub fn first_limit(policy: &RetryPolicy, call: &Call) -> Limit {
    Limit {
        hard: call.hard_limit(policy),
        inactivity: None,
    }
}

/// Why a call stops whose time is over.
#[inline]
pub(crate) fn time_over(network: &Snapshot) -> Reason {
    if network.is_absent() {
        Reason::Offline
    } else {
        Reason::Elapsed
    }
}

/// Whether a call that would park stops instead.
#[inline]
pub(crate) fn fails_fast(policy: &RetryPolicy, network: &Snapshot, now: Instant) -> bool {
    match policy.offline {
        Offline::FailFast => true,
        Offline::Auto => now.nanos_since(network.since) >= YOUNG_LOSS,
        Offline::Park | Offline::Ignore => false,
    }
}

/// A call between two attempts. Only this can be [`resume`](crate::resume)d.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    pub(crate) call: Call,
    /// Of the snapshot noted before the attempt that failed.
    pub(crate) epoch: u64,
    /// When it failed.
    pub(crate) since: Instant,
    /// Nothing starts before this. Without a floor it is `since`.
    pub(crate) floor: Instant,
    pub(crate) floor_by: Floor,
    /// Whether the failure was no answer of the server.
    pub(crate) transport: bool,
    /// The window drawn from, in nanoseconds.
    pub(crate) window: i64,
    /// When the wait ends as it stands, floor included. For a park: its probe or, without one, the first instant at which the call stops.
    pub(crate) until: Instant,
    /// Whether an edge set `until`.
    pub(crate) woken: bool,
    pub(crate) parked_at: Option<Instant>,
    /// What the latest event said, in nanoseconds.
    pub(crate) planned: i64,
}

/// What set a floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Floor {
    None,
    /// `Retry-After`: no edge touches the wait.
    Server,
    /// The platform remembers a failed look-up.
    LookUp,
}

impl Waiting {
    /// The call that waits.
    pub fn call(&self) -> &Call {
        &self.call
    }

    #[inline]
    pub(crate) fn why(&self) -> WaitReason {
        match (self.parked_at, self.floor_by) {
            (Some(_), _) => WaitReason::Offline,
            (None, Floor::Server) => WaitReason::Server,
            (None, Floor::LookUp) => WaitReason::LookUp,
            (None, Floor::None) if self.woken => WaitReason::Edge,
            (None, Floor::None) => WaitReason::Backoff,
        }
    }

    /// An edge ends a drawn wait. It never touches a wait that the server asked for, never ends a floor, and never makes a wait longer.
    pub(crate) fn cut_by_edge(&mut self, policy: &RetryPolicy) {
        let may = match policy.wake {
            Wake::Any => true,
            Wake::Transport => self.transport,
            Wake::None => false,
        };
        if may && self.floor_by != Floor::Server {
            let until = self.call.woken_start(policy).max(self.floor);
            if until < self.until {
                self.until = until;
                self.woken = true;
            }
        }
    }

    /// Sleeps until the probe or, without one, the first instant at which the call stops.
    pub(crate) fn park(&mut self, policy: &RetryPolicy, network: &Snapshot) {
        self.parked_at.get_or_insert(self.call.clock);
        let mut until = self.call.last_start(policy).plus(1);
        if let Some(probe) = self.probe_at(policy) {
            until = until.min(probe);
        }
        if policy.offline == Offline::Auto {
            until = until.min(network.since.plus(YOUNG_LOSS));
        }
        self.until = until;
    }

    /// The network is back: an edge ends a park whatever `wake` says.
    pub(crate) fn unpark(&mut self, policy: &RetryPolicy) {
        self.parked_at = None;
        self.until = self.call.woken_start(policy).max(self.floor);
        self.woken = true;
    }

    /// When a parked call makes its probe: only with two or more attempts left, and never before a floor.
    pub(crate) fn probe_at(&self, policy: &RetryPolicy) -> Option<Instant> {
        let left = policy.max_attempts.saturating_sub(self.call.counted);
        let probe = self.parked_at?.plus(policy.offline_probe?);
        (left >= 2).then(|| probe.max(self.floor))
    }

    /// Notes the wait as it is now planned, for the event that tells of it.
    #[inline(always)] // on the path of every wait: 1 ns of 18
    pub(crate) fn plan(&mut self) -> Event {
        self.planned = self.until.nanos_since(self.since);
        Event::WaitPlanned(PlannedWait {
            planned: duration(self.planned),
            window: duration(self.window),
            floor: self.floor.saturating_since(self.since),
            why: self.why(),
        })
    }

    #[inline]
    pub(crate) fn sleep(self) -> Sleep {
        Sleep {
            ask_at: self.until.min(self.call.clock.plus(ASK_WITHIN)),
            why: self.why(),
            costs_token: false,
            waiting: self,
        }
    }
}
