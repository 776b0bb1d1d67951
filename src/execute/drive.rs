//! The loop of every driver: note the snapshot, attempt, say what came of it, decide, wait (timer or edge), resume, begin again.
//!
//! It is one future and starts no task of its own, so that dropping it ends everything.

use std::cell::RefCell;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::aggregates::{AnsweredBy, Stake};
use super::connectivity::{Connectivity, Waiter};
use super::layer::OuterAttempt;
use super::listener::contained;
pub(crate) use super::session::Proof;
use super::session::{CallSession, History, NextStep};
use super::telemetry::{self, AttemptSpan};
use super::timer::Timer;
use super::wait::poll_wait;
use crate::call::Limit;
use crate::connectivity::Snapshot;
use crate::event::{CancelKind, Event, Events, Reason};
use crate::instant::Instant;
use crate::outcome::{InnerRequest, Outcome};
use crate::policy::RetryPolicy;
use crate::request::RequestFacts;

/// What a front end hands to the loop.
pub(crate) trait Attempts {
    /// What an attempt comes back with: answer or error.
    type Output;
    /// One attempt. Dropping it abandons it.
    type Future: Future<Output = Self::Output>;

    /// May an attempt begin? Asked before the call's first attempt (the call begins when the answer is yes) and when a wait is over; not before a
    /// restart.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// The span of an attempt that begins; the loop notes in it how the attempt failed.
    fn span(&mut self, start: &AttemptStart) -> AttemptSpan {
        AttemptSpan::new(start.resends)
    }

    /// Makes an attempt.
    fn attempt(&mut self, start: &AttemptStart) -> Self::Future;

    /// The request that an attempt is, for the attempt around the call; `None` if it is none by itself. A key that was made within the attempt
    /// around is none.
    fn as_inner(&self, above: &OuterAttempt) -> Option<RequestFacts>;

    /// Says what an attempt came to, by handing it to `decide` once. `inner` is what layers further in told; the loop adds it to the outcome. It
    /// may be the app's own code: a panic stops the call, `internal`.
    fn outcome<T>(
        &mut self,
        output: &mut Self::Output,
        inner: &[InnerRequest],
        decide: impl FnOnce(&Outcome<'_>) -> T,
    ) -> T;

    /// The attempt in flight ends by time, its own or that of an attempt around it. Its connection may be dead.
    fn ended_by_time(&mut self) {}

    /// What is known of the attempt in flight, if it has to be abandoned or has reached its limit.
    fn proof(&self) -> Proof {
        Proof::default()
    }

    /// Whose outcome that of the attempt in flight is; `None`: it was dropped at its limit. Asked only of a call with aggregates.
    fn answered_by(&self, _output: Option<&Self::Output>) -> AnsweredBy {
        AnsweredBy::Asked
    }

    /// Whether that output means that someone ended the call: then nothing is asked.
    fn cancelled(&self, _output: &Self::Output) -> Option<CancelKind> {
        None
    }

    /// Before a wait: gives back what the attempt left open. What is returned is the call's last output if no attempt follows.
    fn close(&mut self, output: Self::Output) -> Self::Output {
        output
    }

    /// Another attempt is made. This is what the one before it came back with.
    fn superseded(&mut self, _output: Self::Output) {}

    /// A wait begins, or the call is over: gives back what an attempt needs and a wait does not.
    fn rest(&mut self) {}

    /// Every event, in order. A panic goes no further.
    fn hear(&mut self, _call_id: u64, _event: Event) {}
}

/// An attempt that begins.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "reqwest"), allow(dead_code))] // HTTP reads them all
pub(crate) struct AttemptStart {
    /// Attempts of this call before it.
    pub(crate) resends: u32,
    /// What it may take. The loop itself ends it at `hard`; inactivity is the attempt's own matter.
    pub(crate) limit: Limit,
    /// The network it begins on.
    pub(crate) noted: Snapshot,
    /// The call's time, from which the limit was computed.
    pub(crate) now: Instant,
    /// The attempt that the call is part of.
    pub(crate) above: Option<Arc<OuterAttempt>>,
}

/// How the last attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended<T> {
    /// It came back.
    CameBack(T),
    /// It took longer than it might, and was dropped.
    TimedOut,
    /// It was not made: the circuit breaker refused the call's first attempt.
    Refused {
        /// Until then.
        until: Instant,
    },
}

/// A call that is over.
#[derive(Clone, Debug)]
pub(crate) struct Driven<T> {
    /// The last attempt's.
    pub(crate) ended: Ended<T>,
    /// Why the call stopped; `None`: this is its answer.
    pub(crate) reason: Option<Reason>,
    /// What was tried.
    pub(crate) history: History,
}

/// What does not change in a call.
pub(crate) struct CallSetting {
    pub(crate) facts: RequestFacts,
    pub(crate) connectivity: Connectivity,
    /// The client's own timeout of the whole call.
    pub(crate) client_end: Option<Instant>,
    /// Whether the request stays on this machine, so that the network does not concern it.
    pub(crate) is_loopback: bool,
    /// For replays; else from the operating system.
    pub(crate) seed: Option<u64>,
    /// Whether an attempt may be begun anew when the network changes under it.
    pub(crate) restarts: bool,
    /// What the call holds of the aggregates of its origin, if there are any.
    pub(crate) stake: Option<Box<Stake>>,
}

impl CallSetting {
    pub(crate) fn new(facts: RequestFacts, connectivity: Connectivity) -> CallSetting {
        CallSetting {
            facts,
            connectivity,
            client_end: None,
            is_loopback: false,
            seed: None,
            restarts: false,
            stake: None,
        }
    }
}

pin_project! {
    #[project = PhaseProjection]
    #[project_replace = PhaseTaken]
    enum Phase<F, T> {
        NotBegun,
        /// An attempt is to be made.
        Begin,
        InFlight {
            #[pin]
            attempt: F,
            span: AttemptSpan,
            hard_end: Option<Instant>,
            // When to ask `interrupt` again, if it said "not yet".
            ask_at: Option<Instant>,
        },
        Waiting { last: Ended<T> },
        Over,
    }
}

pin_project! {
    /// A call: begun at its first poll, over when it is ready, ended by dropping it.
    pub(crate) struct Drive<A, P>
    where
        A: Attempts,
    {
        attempts: A,
        policy: P,
        restarts: bool,
        session: CallSession,
        waiter: Waiter,
        #[pin]
        phase: Phase<A::Future, A::Output>,
        #[pin]
        timer: Timer,
    }

    impl<A, P> PinnedDrop for Drive<A, P>
    where
        A: Attempts,
    {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let begun = !matches!(this.phase.as_mut().project(), PhaseProjection::NotBegun);
            if begun && !this.session.is_over() {
                let proof = match this.phase.as_mut().project() {
                    PhaseProjection::InFlight { .. } => {
                        if this.session.layer().is_ended_by_time() {
                            this.attempts.ended_by_time();
                        }
                        this.attempts.proof()
                    }
                    _ => Proof::default(),
                };
                let connectivity = this.waiter.connectivity();
                let (_, events) = this.session.cancelled(CancelKind::Caller, proof, connectivity);
                tell(this.attempts, this.session, events);
            }
        }
    }
}

impl<A, P> Drive<A, P>
where
    A: Attempts,
    P: Deref<Target = RetryPolicy>,
{
    pub(crate) fn new(attempts: A, policy: P, setting: CallSetting) -> Drive<A, P> {
        let connectivity = setting.connectivity.known_to(&policy, setting.is_loopback);
        Drive {
            attempts,
            policy,
            restarts: setting.restarts,
            session: CallSession::new(
                setting.facts,
                setting.client_end,
                setting.seed,
                setting.stake,
            ),
            waiter: Waiter::new(connectivity),
            phase: Phase::NotBegun,
            timer: Timer::new(),
        }
    }

    /// What makes the attempts, when the call is over.
    pub(crate) fn project_attempts(self: Pin<&mut Self>) -> &mut A {
        self.project().attempts
    }
}

impl<A, P> Future for Drive<A, P>
where
    A: Attempts,
    P: Deref<Target = RetryPolicy>,
{
    type Output = Driven<A::Output>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Driven<A::Output>> {
        let mut this = self.project();
        let policy: &RetryPolicy = this.policy;
        let (next, last) = loop {
            match this.phase.as_mut().project() {
                PhaseProjection::NotBegun => {
                    ready!(this.attempts.poll_ready(context));
                    let now = this.waiter.connectivity().now();
                    this.session.begin(policy, now);
                    this.phase.set(Phase::Begin);
                    let connectivity = this.waiter.connectivity();
                    if let Some((until, events)) = this.session.admit_first(connectivity) {
                        this.phase.set(Phase::Over);
                        tell(this.attempts, this.session, events);
                        break (NextStep::Stop(Reason::Breaker), Ended::Refused { until });
                    }
                }
                PhaseProjection::Begin => {
                    let connectivity = this.waiter.connectivity();
                    let noted = connectivity.snapshot();
                    let start = AttemptStart {
                        resends: this.session.resends(),
                        limit: this.session.note_attempt(noted),
                        noted,
                        now: this.session.seen(),
                        above: this.session.above(),
                    };
                    this.session
                        .note_above(policy, |above| this.attempts.as_inner(above));
                    let hard = start.limit.hard;
                    let hard_end = hard.map(|hard| start.now.saturating_add(hard));
                    // If the client's own timeout comes first, the client ends the attempt, with its own error.
                    let client_end = this.session.client_end();
                    let hard_end = hard_end.filter(|hard_end| {
                        client_end.is_none_or(|client_end| *hard_end < client_end)
                    });
                    let span = this.attempts.span(&start);
                    let begin = || this.attempts.attempt(&start);
                    this.phase.set(Phase::InFlight {
                        attempt: span.within(|| this.session.layer().within(begin)),
                        span,
                        hard_end,
                        ask_at: None,
                    });
                }
                PhaseProjection::InFlight {
                    attempt,
                    span,
                    hard_end,
                    ask_at,
                } => {
                    this.session.reached(this.timer.as_mut().fired());
                    let poll = || attempt.poll(context);
                    let mut ended = match span.within(|| this.session.layer().within(poll)) {
                        Poll::Ready(output) => Ended::CameBack(output),
                        Poll::Pending => {
                            let network = this.waiter.listen(context.waker());
                            let connectivity = this.waiter.connectivity();
                            let may_restart = *this.restarts && !this.session.stands_down();
                            if may_restart && this.session.has_moved(&network) {
                                let proof = this.attempts.proof();
                                let (next, events) =
                                    this.session
                                        .interrupted(policy, network, connectivity, proof);
                                *ask_at = match next {
                                    NextStep::Keep { ask_at } => ask_at,
                                    _ => None,
                                };
                                if next == NextStep::Restart {
                                    this.session.layer().end_by_time();
                                    this.attempts.ended_by_time();
                                    this.phase.set(Phase::Begin); // the abandoned attempt is gone first
                                    this.timer.as_mut().stop();
                                    tell(this.attempts, this.session, events);
                                    continue;
                                }
                            }
                            let until = match (*hard_end, *ask_at) {
                                (Some(end), Some(at)) => end.min(at),
                                (Some(until), None) | (None, Some(until)) => until,
                                (None, None) => return Poll::Pending,
                            };
                            let now = this.session.now(connectivity);
                            ready!(this.timer.as_mut().poll_until(until, now, context));
                            this.session.reached(this.timer.as_mut().fired());
                            if hard_end.is_none_or(|end| this.session.now(connectivity) < end) {
                                continue;
                            }
                            this.session.layer().end_by_time();
                            this.attempts.ended_by_time();
                            Ended::TimedOut
                        }
                    };
                    let proof = this.attempts.proof();
                    let span = span.clone();
                    this.phase.set(Phase::Over);
                    this.timer.as_mut().stop();
                    let connectivity = this.waiter.connectivity();
                    let (next, events) = match &mut ended {
                        Ended::CameBack(output) => match this.attempts.cancelled(output) {
                            Some(kind) => this.session.cancelled(kind, proof, connectivity),
                            None => contained(|| {
                                this.session
                                    .answered_by(|| this.attempts.answered_by(Some(output)));
                                let (inner, _) = this.session.layer().inner_requests();
                                this.attempts.outcome(output, &inner, |outcome| {
                                    this.session.failed(policy, outcome, connectivity)
                                })
                            })
                            .unwrap_or_else(|()| {
                                let unknown = Proof::default();
                                this.session
                                    .stopped(Reason::Internal, unknown, connectivity)
                            }),
                        },
                        Ended::TimedOut => {
                            this.session.answered_by(|| this.attempts.answered_by(None));
                            this.session
                                .failed(policy, &proof.timed_out(), connectivity)
                        }
                        Ended::Refused { .. } => {
                            unreachable!("an attempt in flight was not refused")
                        }
                    };
                    for event in events.iter() {
                        span.note(event);
                    }
                    tell(this.attempts, this.session, events);
                    if !matches!(next, NextStep::Sleep { .. }) {
                        break (next, ended);
                    }
                    let last = match ended {
                        Ended::CameBack(output) => Ended::CameBack(this.attempts.close(output)),
                        ended => ended,
                    };
                    this.attempts.rest();
                    this.phase.set(Phase::Waiting { last });
                }
                PhaseProjection::Waiting { .. } => {
                    let attempts = RefCell::new(&mut *this.attempts);
                    let next = ready!(poll_wait(
                        this.session,
                        policy,
                        this.waiter,
                        this.timer.as_mut(),
                        context,
                        &mut |context| attempts.borrow_mut().poll_ready(context).is_ready(),
                        &mut |session, events| tell(*attempts.borrow_mut(), session, events),
                    ));
                    let taken = this.phase.as_mut().project_replace(Phase::Begin);
                    if let PhaseTaken::Waiting { last } = taken {
                        if next == NextStep::Go {
                            if let Ended::CameBack(output) = last {
                                this.attempts.superseded(output);
                            }
                            continue;
                        }
                        this.phase.set(Phase::Over);
                        break (next, last);
                    }
                }
                #[allow(clippy::panic)] // as the standard library's futures do
                PhaseProjection::Over => panic!("a call was polled after it was ready"),
            }
        };
        this.waiter.leave();
        this.attempts.rest();
        Poll::Ready(Driven {
            ended: last,
            reason: match next {
                NextStep::Stop(reason) => Some(reason),
                _ => None,
            },
            history: this.session.history(),
        })
    }
}

fn tell<A: Attempts>(attempts: &mut A, session: &mut CallSession, events: Events) {
    for event in events {
        let id = session.id();
        telemetry::tell(id, &event);
        // A listener's panic is its own.
        let _ = contained(|| attempts.hear(id, event));
    }
}
