//! The circuit breaker of one origin: after too many failures that speak of the server, its retries stop for a while.
//!
//! ```text
//!          failures of the last window say so
//!   closed ───────────────────────────────────▶ open ──▶ half-open, when its time is over
//!      ▲                                          ▲ │        │   at most `probes` tickets are out
//!      └────────────── a success ─────────────────┼─┴────────┤
//!                                                 └──────────┘ a failure that speaks of the server
//! ```
//!
//! Each attempt has a [`Ticket`], from [`Breaker::admit`], and ends it once, by [`Breaker::end`]. Each transition starts a generation. The end of an older
//! generation's ticket changes nothing: it tells of a time that is over.

use std::collections::VecDeque;
use std::time::Duration;

use crate::budget::was_away;
use crate::connectivity::Snapshot;
use crate::draw::{splitmix64, uniform};
use crate::instant::{Instant, SECOND, nanos};
use crate::outcome::{FailureKind, What};
use crate::policy::CircuitBreaker;

/// How long it is open at most, by how often it opened since it was last closed. The time itself is drawn from its upper half.
const OPEN_FOR: [i64; 5] = [
    5 * SECOND,
    10 * SECOND,
    20 * SECOND,
    40 * SECOND,
    60 * SECOND,
];
/// A server's `Retry-After` keeps it open no longer than this.
const LONGEST_HINT: i64 = 60 * SECOND;
/// A probe that has not ended after this does not count any more.
const LAPSES_AFTER: i64 = 60 * SECOND;

/// What an attempt's outcome says of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// It works.
    Success,
    /// It is down, or overloaded as a whole; with what `Retry-After` asked for.
    Failure {
        /// Zero if nothing was asked for.
        retry_after: Duration,
    },
    /// Nothing. It may be this request, this client, or the network.
    Nothing,
}

impl Spoken {
    /// What this outcome says. `noted` is the snapshot before the attempt, `now` the one after it.
    ///
    /// A gateway's statuses, a refused connection or stream, and a TLS handshake that is broken off speak of the server; the latter only where the network is
    /// not known to have been away. Not 408, 409, 425, 429 and 500, and nothing *in doubt*: a dead radio must not look like a dead server.
    pub fn of(what: What, retry_after: Duration, noted: &Snapshot, now: &Snapshot) -> Spoken {
        match what {
            What::Status(502..=504 | 520..=524 | 529 | 530) => Spoken::Failure { retry_after },
            What::Status(408 | 409 | 425 | 429) => Spoken::Nothing,
            What::Status(status) if status < 500 => Spoken::Success,
            What::Failure(
                FailureKind::ConnectRefused
                | FailureKind::TlsBrokenOff
                | FailureKind::RefusedStream,
            ) if !was_away(noted, now) => Spoken::Failure { retry_after },
            What::Status(_) | What::Failure(_) => Spoken::Nothing,
        }
    }
}

/// An attempt that was admitted. It ends once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a ticket ends once: Breaker::end"]
pub struct Ticket {
    generation: u64,
    /// Among the probes of its generation.
    probe: Option<u64>,
}

impl Ticket {
    /// The ticket of an attempt that began when its origin was not tracked: that of a new breaker.
    pub fn of_new_breaker() -> Ticket {
        Ticket {
            generation: 0,
            probe: None,
        }
    }
}

/// The answer of [`Breaker::admit`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The attempt may go.
    Go(Ticket),
    /// It may not.
    Refused {
        /// When another one may be admitted: the end of its open time, or, half-open, when the oldest probe lapses.
        until: Instant,
    },
}

/// A change that is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// It opened.
    Opened {
        /// Until when.
        until: Instant,
    },
    /// Its open time is over.
    HalfOpen,
    /// It closed.
    Closed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Open {
        until: Instant,
    },
    /// With the probes that are out: number and when it lapses.
    HalfOpen(Vec<(u64, Instant)>),
}

/// The breaker of one origin. A pure state machine: it reads no clock, and its draws follow from `seed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breaker {
    rules: CircuitBreaker,
    seed: u64,
    state: State,
    generation: u64,
    /// How often it opened, ever: names the draw.
    openings: u64,
    /// How often it opened since it was last closed.
    in_a_row: usize,
    /// The latest outcomes that spoke: true for a failure.
    ring: VecDeque<bool>,
    probes: u64,
    /// The latest time seen: it never runs backwards.
    clock: Instant,
}

impl Breaker {
    /// A closed one. `seed` comes from the operating system, and differs per origin.
    pub fn new(rules: CircuitBreaker, seed: u64) -> Breaker {
        Breaker {
            rules,
            seed,
            state: State::Closed,
            generation: 0,
            openings: 0,
            in_a_row: 0,
            ring: VecDeque::new(),
            probes: 0,
            clock: Instant::LONG_AGO,
        }
    }

    /// Whether a retry may be made, as far as is known now: what [`decide`](crate::decide) is told. While it is open none is.
    pub fn allows_retry(&self, now: Instant) -> bool {
        !matches!(self.state, State::Open { until } if self.clock.max(now) < until)
    }

    /// Asks for an attempt: a call's first one, or a retry.
    ///
    /// A first attempt is refused only with [`refuse_first`](CircuitBreaker::refuse_first). A transition is told if its open time is over.
    pub fn admit(&mut self, now: Instant, is_first: bool) -> (Admission, Option<Transition>) {
        let now = self.see(now);
        let mut told = None;
        if matches!(self.state, State::Open { until } if until <= now) {
            self.turn(State::HalfOpen(Vec::new()));
            told = Some(Transition::HalfOpen);
        }
        let must_ask = !is_first || self.rules.refuse_first();
        let generation = self.generation;
        let admission = match &mut self.state {
            State::Open { until } if must_ask => Admission::Refused { until: *until },
            State::HalfOpen(out) if must_ask => {
                out.retain(|(_, lapses)| now < *lapses);
                if out.len() < usize::from(self.rules.probes()) {
                    let probe = self.probes;
                    self.probes += 1;
                    out.push((probe, now.plus(LAPSES_AFTER)));
                    Admission::Go(Ticket {
                        generation,
                        probe: Some(probe),
                    })
                } else {
                    let until = out.iter().map(|(_, lapses)| *lapses).min();
                    Admission::Refused {
                        until: until.unwrap_or(now),
                    }
                }
            }
            State::Closed | State::Open { .. } | State::HalfOpen(_) => Admission::Go(Ticket {
                generation,
                probe: None,
            }),
        };
        (admission, told)
    }

    /// A ticket for an attempt that does not ask, because another call decides about it. It takes no probe's place.
    pub fn watch(&self) -> Ticket {
        Ticket {
            generation: self.generation,
            probe: None,
        }
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// The attempt of `ticket` has ended, or was not made after all ([`Spoken::Nothing`]).
    ///
    /// The end of a ticket of an earlier generation changes nothing, and neither does that of a probe that has lapsed or ended before.
    pub fn end(&mut self, ticket: Ticket, now: Instant, spoken: Spoken) -> Option<Transition> {
        let now = self.see(now);
        if ticket.generation != self.generation || !self.gives_back(&ticket, now) {
            return None;
        }
        match (&self.state, spoken) {
            (_, Spoken::Nothing) => None,
            (State::Closed, Spoken::Success) => {
                self.note(false);
                None
            }
            (State::Closed, Spoken::Failure { retry_after }) => {
                self.note(true);
                let failed = self.ring.iter().filter(|failed| **failed).count();
                (failed >= usize::from(self.rules.failures())).then(|| self.open(retry_after))
            }
            (State::Open { .. } | State::HalfOpen(_), Spoken::Success) => {
                self.ring.clear();
                self.in_a_row = 0;
                self.turn(State::Closed);
                Some(Transition::Closed)
            }
            (State::HalfOpen(_), Spoken::Failure { retry_after }) => Some(self.open(retry_after)),
            (State::Open { .. }, Spoken::Failure { .. }) => None,
        }
    }

    /// So many attempts succeeded while it was closed, since this was last said. Those before the last failure count first: say it before that failure's end.
    pub fn succeeded(&mut self, count: u64) {
        if self.state == State::Closed {
            for _ in 0..count.min(self.rules.window().into()) {
                self.note(false);
            }
        }
    }

    /// Whether it is closed and remembers no failure: then it may be forgotten, for a new one is the same.
    pub fn is_at_rest(&self) -> bool {
        self.state == State::Closed && !self.ring.contains(&true)
    }

    fn see(&mut self, now: Instant) -> Instant {
        self.clock = self.clock.max(now);
        self.clock
    }

    /// False if the ticket is a probe that is not out any more.
    fn gives_back(&mut self, ticket: &Ticket, now: Instant) -> bool {
        match (&mut self.state, ticket.probe) {
            (State::HalfOpen(out), Some(probe)) => {
                let place = out.iter().position(|(number, _)| *number == probe);
                place.is_some_and(|place| now < out.swap_remove(place).1)
            }
            (_, Some(_)) => false,
            (_, None) => true,
        }
    }

    fn note(&mut self, failed: bool) {
        if self.ring.len() == usize::from(self.rules.window()) {
            self.ring.pop_front();
        }
        self.ring.push_back(failed);
    }

    fn open(&mut self, retry_after: Duration) -> Transition {
        let longest = OPEN_FOR[self.in_a_row.min(OPEN_FOR.len() - 1)];
        let drawn = uniform(splitmix64(self.seed, self.openings), longest / 2, longest);
        let length = drawn.max(nanos(retry_after).min(LONGEST_HINT));
        self.openings += 1;
        self.in_a_row += 1;
        self.ring.clear();
        let until = self.clock.plus(length);
        self.turn(State::Open { until });
        Transition::Opened { until }
    }

    fn turn(&mut self, state: State) {
        self.state = state;
        self.generation += 1;
    }
}
