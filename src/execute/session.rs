//! One call of a driver: its state, its events, its report. It computes no rule: the core decides, this obeys and tells.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use smallvec::SmallVec;

use crate::breaker::Spoken;
use crate::call::{ASK_WITHIN, Allowed, Call, Limit, Signals, Waiting, first_limit};
use crate::connectivity::Snapshot;
use crate::decide::{Decision, decide_after};
use crate::event::{CancelKind, End, Event, Events, Reason, Report};
use crate::instant::{Instant, duration};
use crate::interrupt::{Interruption, interrupt};
use crate::outcome::{Evidence, FailureKind, Outcome, OutcomeClass, What};
use crate::policy::RetryPolicy;
use crate::request::RequestFacts;
use crate::resume::{Resumed, resume};

use super::aggregates::{AnsweredBy, Stake};
use super::connectivity::Connectivity;
use super::layer::{Attempting, OuterAttempt, OuterEntry, with_inner};
use super::seed::seed_from_system;

/// What a driver does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// The outcome is the answer.
    Deliver,
    /// The call ends with the last outcome.
    Stop(Reason),
    /// Wait until then or an edge, and ask again.
    Sleep { ask_at: Instant },
    /// Make the next attempt.
    Go,
    /// Let the attempt in flight go on; ask again then, or at the next edge.
    Keep { ask_at: Option<Instant> },
    /// Abandon the attempt in flight and make it anew.
    Restart,
}

/// What is known of an attempt in flight. Silence proves nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Proof {
    /// Nothing of the request was sent.
    pub(crate) sent_nothing: bool,
    /// Nothing of its body was handed out.
    pub(crate) body_untouched: bool,
}

impl Proof {
    pub(super) fn timed_out(self) -> Outcome<'static> {
        let kind = if self.sent_nothing {
            FailureKind::BeforeHeaders
        } else {
            FailureKind::AttemptTimeout
        };
        let mut outcome = Outcome::failure(kind);
        outcome.evidence.body_untouched = self.body_untouched;
        outcome
    }

    fn evidence(self) -> Evidence<'static> {
        Evidence {
            sent_nothing: self.sent_nothing,
            body_untouched: self.body_untouched,
            ..Evidence::NONE
        }
    }
}

/// Where the call is.
enum CallState {
    InFlight {
        call: Call,
        /// The snapshot taken before the attempt.
        noted: Snapshot,
        /// What the attempt may take.
        limit: Limit,
    },
    Waiting(Waiting),
    Over(Option<End>),
}

/// Most calls that fail fail once: an attempt, a wait, its end.
type EventList = SmallVec<[Event; 3]>;

/// The events of a call, which become a [`Report`] only for those who read one.
#[derive(Clone, Debug)]
pub(crate) struct History {
    events: EventList,
    end: Option<End>,
}

impl History {
    pub(crate) fn report(self) -> Report {
        let mut report = Report::default();
        for event in &self.events {
            report.hear(event);
        }
        report.end = self.end;
        report
    }
}

const NO_LIMIT: Limit = Limit {
    hard: None,
    inactivity: None,
};

impl CallState {
    fn in_flight(call: Call, limit: Limit) -> CallState {
        CallState::InFlight {
            call,
            noted: Snapshot::UNKNOWN,
            limit,
        }
    }
}

/// One call. Per attempt [`note_attempt`](CallSession::note_attempt), the attempt, [`failed`](CallSession::failed) (or a success: the core
/// tells them apart); after `Sleep` waiting and [`woken`](CallSession::woken); in flight, when the path has grown,
/// [`interrupted`](CallSession::interrupted). Every answer comes with the events it makes, which the driver hands to its listener.
pub(super) struct CallSession {
    state: CallState,
    /// Attempts made before the one in flight.
    resends: u32,
    is_seeded: bool,
    /// The layers around it, and those further in.
    layer: Attempting,
    /// What the attempt around this call knows of the attempt in flight.
    entry: Option<OuterEntry>,
    /// What it holds of the aggregates; `None` without any, and once it is over.
    stake: Option<Box<Stake>>,
    id: u64,
    /// All but the last.
    events: EventList,
}

impl CallSession {
    /// A call that has not begun. Its seed comes from the operating system at its first failure, if none is given.
    pub(super) fn new(
        facts: RequestFacts,
        client_end: Option<Instant>,
        seed: Option<u64>,
        stake: Option<Box<Stake>>,
    ) -> CallSession {
        let call = Call::begin(facts, seed.unwrap_or(0), Instant::LONG_AGO, client_end);
        CallSession {
            state: CallState::in_flight(call, NO_LIMIT),
            resends: 0,
            is_seeded: seed.is_some(),
            layer: Attempting::default(),
            entry: None,
            stake,
            id: 0,
            events: EventList::new(),
        }
    }

    /// The call begins.
    pub(super) fn begin(&mut self, policy: &RetryPolicy, now: Instant) {
        if let CallState::InFlight { call, limit, .. } = &mut self.state {
            call.began = now;
            call.clock = now;
            *limit = first_limit(policy, call);
        }
        self.layer = Attempting::begin();
    }

    /// Asks for the first attempt. If it is refused, the call is over: until when, and its last event.
    pub(super) fn admit_first(&mut self, connectivity: &Connectivity) -> Option<(Instant, Events)> {
        let (stands_down, now) = (self.stands_down(), self.seen());
        let stake = self.stake.as_mut()?;
        let until = stake.admit_first(stands_down, now).err()?;
        let nothing_went_out = Proof {
            sent_nothing: true,
            body_untouched: true,
        };
        let (_, events) = self.stopped(Reason::Breaker, nothing_went_out, connectivity);
        Some((until, events))
    }

    /// Whose outcome the attempt's is; asked only if somebody wants to know. Told before the outcome.
    pub(super) fn answered_by(&mut self, by: impl FnOnce() -> AnsweredBy) {
        if let Some(stake) = &mut self.stake {
            stake.answered_by(by());
        }
    }

    /// The call's place among the layers.
    pub(super) fn layer(&mut self) -> &mut Attempting {
        &mut self.layer
    }

    /// Tells the attempt around this call of the request that the attempt in flight makes, before anything of it goes out.
    pub(super) fn note_above(
        &mut self,
        policy: &RetryPolicy,
        facts: impl FnOnce(&OuterAttempt) -> Option<RequestFacts>,
    ) {
        self.entry = self.layer.above().and_then(|above| {
            let facts = facts(above)?;
            Some(above.note(policy, &facts))
        });
    }

    pub(super) fn above(&self) -> Option<Arc<OuterAttempt>> {
        self.layer.above().cloned()
    }

    /// The latest instant the call has seen: when it began, when it was told to go, when its timer fired.
    pub(super) fn seen(&self) -> Instant {
        match &self.state {
            CallState::InFlight { call, .. } | CallState::Waiting(Waiting { call, .. }) => {
                call.clock
            }
            CallState::Over(_) => Instant::LONG_AGO,
        }
    }

    /// The instant the call is at. Inside a call time never runs backwards.
    pub(super) fn now(&self, connectivity: &Connectivity) -> Instant {
        connectivity.now().max(self.seen())
    }

    /// The call's own timer has fired, so the call is at least that late, whatever its clock says: in paused time timers are ahead of the clock. Without this
    /// a wait that is over would begin again until the clock had followed.
    pub(super) fn reached(&mut self, fired: Option<Instant>) {
        let Some(instant) = fired else { return };
        if let CallState::InFlight { call, .. } | CallState::Waiting(Waiting { call, .. }) =
            &mut self.state
        {
            call.see(instant);
        }
    }

    /// Whether this call makes one attempt and no more.
    pub(super) fn stands_down(&self) -> bool {
        self.layer.stands_down()
    }

    /// What the call's waits are drawn from.
    pub(super) fn seed(&mut self, seed: u64) {
        if let CallState::InFlight { call, .. } = &mut self.state {
            call.seed = seed;
            self.is_seeded = true;
        }
    }

    /// For a call that never ends: ends a wait that was given up.
    pub(super) fn give_up_wait(&mut self) {
        if let CallState::Waiting(waiting) = &self.state {
            self.state = CallState::in_flight(waiting.call.clone(), NO_LIMIT);
        }
    }

    /// For a call that never ends: a round is over, and the caps count from here.
    pub(super) fn begin_round(&mut self, connectivity: &Connectivity) {
        if let CallState::InFlight { call, .. } = &mut self.state {
            call.began = call.see(connectivity.now());
            call.counted = 0;
        }
        self.events.clear();
    }

    /// For a call that never ends: a round succeeded, and the next failure is like the first.
    pub(super) fn start_over(&mut self) {
        match &mut self.state {
            CallState::InFlight { call, .. } | CallState::Waiting(Waiting { call, .. }) => {
                call.n = 0;
                call.previous = None;
            }
            CallState::Over(_) => {}
        }
    }

    /// An attempt begins on this network; returns its limit. No change of the network from here on is missed when it fails.
    pub(super) fn note_attempt(&mut self, network: Snapshot) -> Limit {
        self.layer.begin_attempt();
        match &mut self.state {
            CallState::InFlight { noted, limit, .. } => {
                *noted = network;
                *limit
            }
            _ => NO_LIMIT,
        }
    }

    /// Whether the path has grown since the attempt in flight began.
    pub(super) fn has_moved(&self, network: &Snapshot) -> bool {
        matches!(&self.state, CallState::InFlight { noted, .. } if network.path > noted.path)
    }

    /// When the client itself ends the call.
    pub(super) fn client_end(&self) -> Option<Instant> {
        match &self.state {
            CallState::InFlight { call, .. } | CallState::Waiting(Waiting { call, .. }) => {
                call.client_end
            }
            CallState::Over(_) => None,
        }
    }

    pub(super) fn resends(&self) -> u32 {
        self.resends
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, CallState::Over(_))
    }

    /// The call's number in this process.
    pub(super) fn id(&mut self) -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        if self.id == 0 {
            self.id = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        }
        self.id
    }

    /// What the attempt came to.
    pub(super) fn failed(
        &mut self,
        policy: &RetryPolicy,
        outcome: &Outcome<'_>,
        connectivity: &Connectivity,
    ) -> (NextStep, Events) {
        let (mut call, noted) = match std::mem::replace(&mut self.state, CallState::Over(None)) {
            CallState::InFlight { call, noted, .. } => (call, noted),
            _ => return (NextStep::Stop(Reason::Internal), Events::none()),
        };
        let (inner, asked) = self.layer.inner_requests();
        let sent_nothing = outcome.evidence.sent_nothing;
        let outcome = &Outcome {
            server_wait: outcome.server_wait.max(asked),
            evidence: with_inner(&outcome.evidence, &inner),
            ..*outcome
        };
        if !self.is_seeded {
            self.is_seeded = true;
            call.seed = seed_from_system();
        }
        let mut signals = Signals {
            now: connectivity.now(),
            network: connectivity.snapshot(),
            wall_ms: match outcome.retry_after {
                [] => None, // for dates only
                _ => connectivity.wall_ms(),
            },
            allowed: Allowed::ALL,
        };
        // Of a call that stands down no attempt follows this one.
        let is_last = self.stands_down();
        let step = match self.stake.as_mut() {
            None => decide_after(policy, call, &noted, outcome, &signals, is_last),
            Some(stake) => {
                let now = signals.now.max(call.clock);
                let asked = outcome.longest_server_wait(signals.wall_ms);
                let spoken = Spoken::of(
                    outcome.what,
                    duration(asked.unwrap_or(0)),
                    &noted.seen_by(policy),
                    &signals.network.seen_by(policy),
                );
                stake.spoke(spoken, now);
                signals.allowed = stake.allowed(now);
                let step = decide_after(policy, call.clone(), &noted, outcome, &signals, is_last);
                if step.decision == Decision::Deliver {
                    stake.delivered(spoken);
                } else {
                    stake.failed();
                }
                match &step.decision {
                    Decision::Sleep(sleep) if sleep.costs_token && !stake.take() => {
                        signals.allowed.budget = false;
                        decide_after(policy, call, &noted, outcome, &signals, is_last)
                    }
                    _ => step,
                }
            }
        };
        if let Some(entry) = self.entry.take() {
            let is_failure = matches!(outcome.what, What::Failure(_));
            let wait = asked_wait(outcome, &signals, &step.events);
            entry.ended(is_failure && sent_nothing, wait);
        }
        let next = match step.decision {
            Decision::Deliver => NextStep::Deliver,
            Decision::Stop(reason) => NextStep::Stop(reason),
            Decision::Sleep(sleep) => {
                self.state = CallState::Waiting(sleep.waiting);
                let ask_at = sleep.ask_at;
                NextStep::Sleep { ask_at }
            }
        };
        self.keep(next, step.events)
    }

    /// A wait is over, or may be. Asking early or twice does no harm. `is_ready` is asked before the next attempt: if the driver is not, the
    /// wait goes on.
    pub(super) fn woken(
        &mut self,
        policy: &RetryPolicy,
        network: Snapshot,
        connectivity: &Connectivity,
        is_ready: &mut dyn FnMut() -> bool,
    ) -> (NextStep, Events) {
        let CallState::Waiting(waiting) = std::mem::replace(&mut self.state, CallState::Over(None))
        else {
            return (NextStep::Stop(Reason::Internal), Events::none());
        };
        let mut signals = signals(connectivity, network);
        let now = signals.now.max(waiting.call.clock);
        if let Some(stake) = &self.stake {
            signals.allowed = stake.allowed(now);
        }
        let mut step = resume(policy, waiting.clone(), &signals);
        if matches!(step.decision, Resumed::Go(_)) && !is_ready() {
            // The driver wakes itself when it is ready. Until then the last start must not be missed.
            let ask_at = waiting.call.last_start(policy).plus(1);
            self.state = CallState::Waiting(waiting);
            let ask_at = ask_at.min(self.now(connectivity).plus(ASK_WITHIN));
            return (NextStep::Sleep { ask_at }, Events::none());
        }
        if let (Resumed::Go(_), Some(stake)) = (&step.decision, self.stake.as_mut()) {
            if !stake.admit_retry(now) {
                signals.allowed.breaker = false;
                step = resume(policy, waiting, &signals);
            }
        }
        let next = match step.decision {
            Resumed::Stop(reason) => NextStep::Stop(reason),
            Resumed::Sleep(sleep) => {
                self.state = CallState::Waiting(sleep.waiting);
                let ask_at = sleep.ask_at;
                NextStep::Sleep { ask_at }
            }
            Resumed::Go(go) => {
                self.state = CallState::in_flight(go.call, go.limit);
                self.resends = self.resends.saturating_add(1);
                NextStep::Go
            }
        };
        self.keep(next, step.events)
    }

    /// The path has grown while an attempt is in flight.
    pub(super) fn interrupted(
        &mut self,
        policy: &RetryPolicy,
        network: Snapshot,
        connectivity: &Connectivity,
        proof: Proof,
    ) -> (NextStep, Events) {
        let (call, noted, limit) = match std::mem::replace(&mut self.state, CallState::Over(None)) {
            CallState::InFlight { call, noted, limit } => (call, noted, limit),
            _ => return (NextStep::Stop(Reason::Internal), Events::none()),
        };
        let signals = signals(connectivity, network);
        let (inner, _) = self.layer.inner_requests();
        let evidence = with_inner(&proof.evidence(), &inner);
        let step = interrupt(policy, call, &noted, &signals, &evidence);
        let next = match step.decision {
            Interruption::Keep { call, ask_at } => {
                self.state = CallState::InFlight { call, noted, limit };
                NextStep::Keep { ask_at }
            }
            Interruption::Restart { call, limit } => {
                self.state = CallState::in_flight(call, limit);
                self.resends = self.resends.saturating_add(1);
                NextStep::Restart
            }
        };
        self.keep(next, step.events)
    }

    /// Someone ended the call. `proof` is of the attempt that is or was in flight.
    pub(super) fn cancelled(
        &mut self,
        kind: CancelKind,
        proof: Proof,
        connectivity: &Connectivity,
    ) -> (NextStep, Events) {
        self.stopped(Reason::Cancelled(kind), proof, connectivity)
    }

    /// The driver ends the call.
    pub(super) fn stopped(
        &mut self,
        reason: Reason,
        proof: Proof,
        connectivity: &Connectivity,
    ) -> (NextStep, Events) {
        if let Some(entry) = self.entry.take() {
            entry.ended(proof.sent_nothing, None);
        }
        let mut call = match std::mem::replace(&mut self.state, CallState::Over(None)) {
            CallState::InFlight { mut call, .. } => {
                let (inner, _) = self.layer.inner_requests();
                call.may_have_arrived |= !with_inner(&proof.evidence(), &inner).is_never_sent();
                call
            }
            CallState::Waiting(waiting) => waiting.call,
            over @ CallState::Over(_) => {
                self.state = over;
                return (NextStep::Stop(reason), Events::none());
            }
        };
        call.see(connectivity.now());
        let last = Events::one(call.final_event(Some(reason)));
        self.keep(NextStep::Stop(reason), last)
    }

    /// What was tried; complete once the call is over, and taken then.
    pub(super) fn history(&mut self) -> History {
        let end = match self.state {
            CallState::Over(end) => end,
            _ => None,
        };
        let events = std::mem::take(&mut self.events);
        History { events, end }
    }

    fn keep(&mut self, next: NextStep, events: Events) -> (NextStep, Events) {
        for event in events.iter() {
            if let Event::Final(end) = event {
                self.state = CallState::Over(Some(*end));
                self.stake = None;
                break;
            }
            self.events.push(*event);
        }
        (next, events)
    }
}

/// How long a server asked not to be tried again, with an answer that is worth another try.
fn asked_wait(outcome: &Outcome<'_>, signals: &Signals, events: &Events) -> Option<Duration> {
    let is_transient = events.iter().any(|event| {
        let transient = OutcomeClass::TransientStatus;
        matches!(event, Event::AttemptFailed { class, .. } if *class == transient)
    });
    let wait = || outcome.longest_server_wait(signals.wall_ms).map(duration);
    is_transient.then(wait).flatten()
}

fn signals(connectivity: &Connectivity, network: Snapshot) -> Signals {
    Signals {
        now: connectivity.now(),
        network,
        wall_ms: None, // for an outcome's dates only
        allowed: Allowed::ALL,
    }
}
