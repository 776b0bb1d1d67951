//! The aggregates' states per origin behind one lock, and what a call holds of them: a token, a ticket. Each ends once, because its end takes it, and dropping
//! it gives it back.
//!
//! Nothing is awaited, and nobody's code runs, while the lock is held. It knows no runtime and no call; `tests/ledger.rs` runs it under a model checker.

use std::sync::Arc;

use super::origins::{AtRest, Origins};
use super::pure::{
    Admission, Allowed, Breaker, CircuitBreaker, Instant, RetryBudget, Spoken, Ticket, TokenBucket,
    Transition,
};
use super::sync::Mutex;

/// The states. An origin is tracked from its first failure on, for until then a new state would be the same.
pub(super) struct Ledger {
    budget: Option<RetryBudget>,
    breaker: Option<CircuitBreaker>,
    /// Makes the seed of an origin's breaker.
    seed: fn() -> u64,
    origins: Mutex<Tracked>,
}

struct Tracked {
    of: Origins<Arc<str>, State>,
    /// How many origins were ever tracked: the number of the latest.
    numbered: u64,
}

struct State {
    /// Tells it from an earlier one of the same origin, which was forgotten.
    number: u64,
    tokens: Option<TokenBucket>,
    breaker: Option<Breaker>,
}

/// A breaker's transition, and the number of its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turned {
    pub(super) origin: u64,
    pub(super) transition: Transition,
}

/// A token that was taken for a retry. Dropped, it goes back, unless the retry was [made](Token::made).
pub(super) struct Token {
    ledger: Arc<Ledger>,
    origin: Arc<str>,
    is_spent: bool,
}

/// What became of asking for a token.
pub(super) enum Taken {
    /// It was there.
    Token(Token),
    /// There is no budget, or its origin is not tracked.
    Free,
    /// There is none.
    Empty,
}

/// An attempt's ticket. Dropped, it is given back.
pub(super) struct HeldTicket {
    ledger: Arc<Ledger>,
    origin: Arc<str>,
    /// The state that gave it; `None` if the origin was not tracked.
    number: Option<u64>,
    ticket: Option<Ticket>,
}

/// A breaker's answer, with the transition that asking made.
pub(super) struct Asked {
    /// `Err`: refused until then.
    pub(super) admitted: Result<HeldTicket, Instant>,
    pub(super) turned: Option<Turned>,
}

impl Ledger {
    pub(super) fn new(
        budget: Option<RetryBudget>,
        breaker: Option<CircuitBreaker>,
        seed: fn() -> u64,
    ) -> Ledger {
        Ledger {
            budget,
            breaker,
            seed,
            origins: Mutex::new(Tracked {
                of: Origins::new(),
                numbered: 0,
            }),
        }
    }

    /// What a retry to this origin may do.
    pub(super) fn allowed(&self, origin: &Arc<str>, now: Instant) -> Allowed {
        self.with(|tracked| {
            let Some(state) = tracked.of.get(origin) else {
                return Allowed::ALL;
            };
            Allowed {
                budget: state.tokens.as_ref().is_none_or(TokenBucket::has_one),
                breaker: { &state.breaker }
                    .as_ref()
                    .is_none_or(|breaker| breaker.allows_retry(now)),
            }
        })
    }

    /// A token for a retry.
    pub(super) fn take(self: &Arc<Self>, origin: &Arc<str>) -> Taken {
        if self.budget.is_none() {
            return Taken::Free;
        }
        let taken = self.with(|tracked| {
            let state = self.track(tracked, origin)?;
            Some(state.tokens.as_mut()?.take())
        });
        match taken {
            None => Taken::Free,
            Some(false) => Taken::Empty,
            Some(true) => Taken::Token(Token {
                ledger: self.clone(),
                origin: origin.clone(),
                is_spent: false,
            }),
        }
    }

    /// A first attempt succeeded.
    pub(super) fn first_attempt_succeeded(&self, origin: &Arc<str>) {
        if self.budget.is_some() {
            self.with_tokens(origin, |tokens| tokens.first_attempts_succeeded(1));
        }
    }

    /// Asks the breaker for an attempt; `None` if there is no breaker.
    pub(super) fn admit(
        self: &Arc<Self>,
        origin: &Arc<str>,
        now: Instant,
        is_first: bool,
    ) -> Option<Asked> {
        self.breaker?;
        let mut turned = None;
        let admitted = self.with(|tracked| {
            let Some((number, breaker)) = tracked.breaker_of(origin) else {
                return Ok((None, Ticket::of_new_breaker()));
            };
            let (admission, transition) = breaker.admit(now, is_first);
            turned = transition.map(|transition| Turned {
                origin: number,
                transition,
            });
            match admission {
                Admission::Go(ticket) => Ok((Some(number), ticket)),
                Admission::Refused { until } => Err(until),
            }
        });
        Some(Asked {
            admitted: admitted.map(|(number, ticket)| self.held(origin, number, ticket)),
            turned,
        })
    }

    /// A ticket for an attempt that does not ask. It tells what it finds, and takes no probe's place.
    pub(super) fn watch(self: &Arc<Self>, origin: &Arc<str>) -> Option<HeldTicket> {
        self.breaker?;
        let (number, ticket) = self.with(|tracked| match tracked.breaker_of(origin) {
            Some((number, breaker)) => (Some(number), breaker.watch()),
            None => (None, Ticket::of_new_breaker()),
        });
        Some(self.held(origin, number, ticket))
    }

    /// The same after the attempt, where another origin answered than was asked. Only while its breaker is closed: nobody knows in which generation the attempt
    /// began.
    pub(super) fn watched(self: &Arc<Self>, origin: &Arc<str>) -> Option<HeldTicket> {
        let is_closed = self.with(|tracked| {
            let breaker = tracked.breaker_of(origin);
            breaker.is_none_or(|(_, breaker)| breaker.is_closed())
        });
        if is_closed { self.watch(origin) } else { None }
    }

    fn held(
        self: &Arc<Self>,
        origin: &Arc<str>,
        number: Option<u64>,
        ticket: Ticket,
    ) -> HeldTicket {
        HeldTicket {
            ledger: self.clone(),
            origin: origin.clone(),
            number,
            ticket: Some(ticket),
        }
    }

    fn end(&self, held: &mut HeldTicket, now: Instant, spoken: Spoken) -> Option<Turned> {
        let ticket = held.ticket.take()?;
        let is_failure = matches!(spoken, Spoken::Failure { .. });
        self.with(|tracked| {
            let state = match held.number {
                None if is_failure => self.track(tracked, &held.origin),
                _ => tracked.of.get(&held.origin),
            }?;
            if held.number.is_some_and(|number| number != state.number) {
                return None; // its breaker was forgotten
            }
            let transition = state.breaker.as_mut()?.end(ticket, now, spoken)?;
            Some(Turned {
                origin: state.number,
                transition,
            })
        })
    }

    fn with_tokens(&self, origin: &Arc<str>, change: impl FnOnce(&mut TokenBucket)) {
        self.with(|tracked| {
            // Where the origin is not tracked, the bucket is full.
            let state = tracked.of.get(origin);
            if let Some(tokens) = state.and_then(|state| state.tokens.as_mut()) {
                change(tokens);
            }
        });
    }

    fn track<'a>(&self, tracked: &'a mut Tracked, origin: &Arc<str>) -> Option<&'a mut State> {
        let Tracked { of, numbered } = tracked;
        of.get_or_track(origin.clone(), || {
            *numbered += 1;
            State {
                number: *numbered,
                tokens: self.budget.map(TokenBucket::new),
                breaker: self.breaker.map(|rules| Breaker::new(rules, (self.seed)())),
            }
        })
    }

    fn with<T>(&self, access: impl FnOnce(&mut Tracked) -> T) -> T {
        // Nothing that can panic is called under the lock.
        let mut tracked = self
            .origins
            .lock()
            .unwrap_or_else(|poison| poison.into_inner());
        access(&mut tracked)
    }
}

impl Tracked {
    fn breaker_of(&mut self, origin: &Arc<str>) -> Option<(u64, &mut Breaker)> {
        let state = self.of.get(origin)?;
        Some((state.number, state.breaker.as_mut()?))
    }
}

impl AtRest for State {
    fn is_at_rest(&self) -> bool {
        self.tokens.as_ref().is_none_or(TokenBucket::is_full)
            && self.breaker.as_ref().is_none_or(Breaker::is_at_rest)
    }
}

impl Token {
    /// Its retry begins: from now on the token is spent, unless the retry succeeds.
    pub(super) fn made(&mut self) {
        self.is_spent = true;
    }

    /// Its retry succeeded.
    pub(super) fn put_back(mut self) {
        self.is_spent = false;
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if !self.is_spent {
            self.ledger.with_tokens(&self.origin, TokenBucket::put_back);
        }
    }
}

impl HeldTicket {
    /// The attempt has ended.
    pub(super) fn end(mut self, now: Instant, spoken: Spoken) -> Option<Turned> {
        let ledger = self.ledger.clone();
        ledger.end(&mut self, now, spoken)
    }
}

impl Drop for HeldTicket {
    fn drop(&mut self) {
        let ledger = self.ledger.clone();
        // A breaker goes by the latest time that it has seen.
        let _ = ledger.end(self, Instant::LONG_AGO, Spoken::Nothing);
    }
}
