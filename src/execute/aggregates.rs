//! What all calls to one origin may do together, as a call sees it: it asks before its attempts, and tells what they came to. The rules are in
//! [`TokenBucket`](crate::TokenBucket) and [`Breaker`](crate::Breaker), the lock in `ledger.rs`.

use std::fmt;
use std::sync::Arc;

use super::ledger::{Asked, HeldTicket, Ledger, Taken, Token, Turned};
use super::listener::contained;
use super::seed::seed_from_system;
use super::telemetry;
use crate::breaker::{Spoken, Transition};
use crate::call::Allowed;
use crate::instant::Instant;
use crate::policy::{CircuitBreaker, RetryBudget};

/// A circuit breaker opened, became half-open or closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerEvent {
    /// A number for the origin, from 1; not its name. It is the same as long as the origin is not at rest.
    pub origin: u64,
    /// What happened.
    pub transition: Transition,
}

type OnBreaker = dyn Fn(&BreakerEvent) + Send + Sync;

/// A retry budget, a circuit breaker, or both, with the state of each origin. Shared by all calls that are to be limited together; cheap to clone.
///
/// An `Executor` has its own (`ExecutorBuilder::retry_budget` and `circuit_breaker`). For futures and batches the caller makes one and names the origin:
///
/// ```
/// use comeback::{Aggregates, CircuitBreaker, RetryBudget, RetryPolicy, Retryable};
///
/// # async fn load() -> Result<(), std::io::Error> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let aggregates = Aggregates::builder()
///     .retry_budget(RetryBudget::new(20)?)
///     .circuit_breaker(CircuitBreaker::default())
///     .build();
/// load.retry(&RetryPolicy::read()).aggregates(&aggregates, "database").await?;
/// # Ok(())
/// # }
/// ```
///
/// Its calls should go by one clock, so by one [`Connectivity`](crate::Connectivity).
#[derive(Clone)]
pub struct Aggregates(Arc<Shared>);

struct Shared {
    ledger: Arc<Ledger>,
    on_breaker: Option<Box<OnBreaker>>,
}

/// Sets up [`Aggregates`].
#[must_use = "nothing is built before `build`"]
#[derive(Default)]
pub struct AggregatesBuilder {
    budget: Option<RetryBudget>,
    breaker: Option<CircuitBreaker>,
    on_breaker: Option<Box<OnBreaker>>,
}

impl AggregatesBuilder {
    /// How many retries all calls to one origin may make together.
    pub fn retry_budget(mut self, budget: RetryBudget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// When the retries to one origin stop for a while.
    pub fn circuit_breaker(mut self, breaker: CircuitBreaker) -> Self {
        self.breaker = Some(breaker);
        self
    }

    /// Hears each breaker's transitions, on the task whose attempt made them. It must not block. If it panics, the panic goes no further. Transitions that two
    /// tasks make at the same moment may be heard in either order.
    pub fn on_breaker(mut self, hear: impl Fn(&BreakerEvent) + Send + Sync + 'static) -> Self {
        self.on_breaker = Some(Box::new(hear));
        self
    }

    /// The aggregates, with every origin at rest.
    pub fn build(self) -> Aggregates {
        Aggregates(Arc::new(Shared {
            ledger: Arc::new(Ledger::new(self.budget, self.breaker, seed_from_system)),
            on_breaker: self.on_breaker,
        }))
    }

    /// The same; `None` if neither is configured.
    #[cfg(feature = "reqwest")]
    pub(super) fn build_if_any(self) -> Option<Aggregates> {
        (self.budget.is_some() || self.breaker.is_some()).then(|| self.build())
    }
}

impl Aggregates {
    /// Without a budget and a breaker.
    pub fn builder() -> AggregatesBuilder {
        AggregatesBuilder::default()
    }

    /// A call to this origin.
    pub(super) fn stake(&self, origin: Arc<str>) -> Box<Stake> {
        Box::new(Stake {
            aggregates: self.clone(),
            origin: Some(origin),
            stands_down: false,
            is_first: true,
            token: None,
            ticket: None,
        })
    }

    fn ledger(&self) -> &Arc<Ledger> {
        &self.0.ledger
    }

    fn tell(&self, turned: Option<Turned>) {
        let Some(Turned { origin, transition }) = turned else {
            return;
        };
        telemetry::tell_breaker(origin, transition);
        if let Some(hear) = &self.0.on_breaker {
            // A listener's panic is its own.
            let _ = contained(|| hear(&BreakerEvent { origin, transition }));
        }
    }
}

impl fmt::Debug for Aggregates {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Aggregates").finish_non_exhaustive()
    }
}

impl fmt::Debug for AggregatesBuilder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AggregatesBuilder")
            .field("budget", &self.budget)
            .field("breaker", &self.breaker)
            .finish_non_exhaustive()
    }
}

/// Whose outcome an attempt's is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "reqwest"), allow(dead_code))] // only HTTP follows redirects
pub(crate) enum AnsweredBy {
    /// The origin's that was asked.
    Asked,
    /// Another one's, because of a redirect.
    Other(Arc<str>),
    /// A redirect may have led it elsewhere.
    Hidden,
    /// No request of the attempt went to the origin.
    Nobody,
}

/// What one call holds of the aggregates of its origin. What it holds when it is dropped is given back.
pub(super) struct Stake {
    aggregates: Aggregates,
    /// Of the latest answer; before it, of the request. `None` where a redirect may hide it.
    origin: Option<Arc<str>>,
    stands_down: bool,
    /// Whether no attempt has failed yet.
    is_first: bool,
    /// Of the retry that is awaited or in flight.
    token: Option<Token>,
    /// Of the attempt in flight. A restart keeps it.
    ticket: Option<HeldTicket>,
}

impl Stake {
    /// The first attempt asks. `Err`: it is refused until then. One that stands down does not ask, for the outer call decides; what it finds counts.
    pub(super) fn admit_first(&mut self, stands_down: bool, now: Instant) -> Result<(), Instant> {
        self.stands_down = stands_down;
        if stands_down {
            self.ticket = { &self.origin }
                .as_ref()
                .and_then(|origin| self.aggregates.ledger().watch(origin));
            return Ok(());
        }
        self.admit(now)
    }

    /// A retry asks; then its token is on its way too.
    pub(super) fn admit_retry(&mut self, now: Instant) -> bool {
        let is_admitted = self.admit(now).is_ok();
        if let Some(token) = self.token.as_mut().filter(|_| is_admitted) {
            token.made();
        }
        is_admitted
    }

    fn admit(&mut self, now: Instant) -> Result<(), Instant> {
        let Some(origin) = &self.origin else {
            return Ok(());
        };
        let asked = self.aggregates.ledger().admit(origin, now, self.is_first);
        let Some(Asked { admitted, turned }) = asked else {
            return Ok(());
        };
        self.aggregates.tell(turned);
        self.ticket = Some(admitted?);
        Ok(())
    }

    /// What a retry may do.
    pub(super) fn allowed(&self, now: Instant) -> Allowed {
        match &self.origin {
            Some(origin) => self.aggregates.ledger().allowed(origin, now),
            None => Allowed::ALL,
        }
    }

    /// Whose outcome the attempt's is. It is told before the outcome.
    pub(super) fn answered_by(&mut self, by: AnsweredBy) {
        let origin = match by {
            AnsweredBy::Asked => return,
            AnsweredBy::Nobody => {
                self.ticket = None;
                return;
            }
            AnsweredBy::Hidden => None,
            AnsweredBy::Other(origin) if self.origin.as_ref() == Some(&origin) => return,
            AnsweredBy::Other(origin) => Some(origin),
        };
        let ledger = self.aggregates.ledger();
        self.ticket = origin.as_ref().and_then(|origin| ledger.watched(origin));
        self.origin = origin;
    }

    /// What the attempt's outcome says of the server.
    pub(super) fn spoke(&mut self, spoken: Spoken, now: Instant) {
        if let Some(ticket) = self.ticket.take() {
            self.aggregates.tell(ticket.end(now, spoken));
        }
    }

    /// The attempt's outcome is the call's answer.
    pub(super) fn delivered(&mut self, spoken: Spoken) {
        if spoken != Spoken::Success {
            return; // an answer that is no success spends the token
        }
        match (self.token.take(), &self.origin) {
            (Some(token), _) => token.put_back(),
            (None, Some(origin)) if self.is_first && !self.stands_down => {
                self.aggregates.ledger().first_attempt_succeeded(origin);
            }
            (None, _) => {}
        }
    }

    /// The attempt failed: its token is spent.
    pub(super) fn failed(&mut self) {
        self.is_first = false;
        self.token = None;
    }

    /// Takes the token of the retry that is planned. False if there is none.
    pub(super) fn take(&mut self) -> bool {
        let Some(origin) = &self.origin else {
            return true;
        };
        match self.aggregates.ledger().take(origin) {
            Taken::Token(token) => self.token = Some(token),
            Taken::Free => {}
            Taken::Empty => return false,
        }
        true
    }
}
