//! Retries on a thread that may wait: no runtime, no future.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};

use super::aggregates::Aggregates;
use super::connectivity::{Connectivity, Waiter};
use super::hooks::{
    By, CallSite, Classify, EveryError, Nobody, Notify, To, When, call_site_setters,
};
use super::listener::{RetryEvent, contained};
use super::retry_error::RetryError;
use super::session::{CallSession, NextStep, Proof};
use super::telemetry;
use super::verdict::Verdict;
use crate::event::{Events, Reason};
use crate::policy::RetryPolicy;
use crate::request::RequestFacts;

/// Gives every function or closure `FnMut() -> Result<T, E>` the method [`retry_blocking`](RetryableBlocking::retry_blocking).
///
/// ```
/// use comeback::{Connectivity, RetryPolicy, RetryableBlocking, Verdict};
/// use std::net::TcpStream;
/// # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
/// # let address = server.local_addr()?;
///
/// let hub = Connectivity::new();
/// let connect = || TcpStream::connect(address);
/// let socket = connect
///     .retry_blocking(&RetryPolicy::read())
///     .connectivity(&hub)
///     .classify(Verdict::of_io)
///     .call()?;
/// # drop(socket);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait RetryableBlocking<T, E>: Sized {
    /// A call that makes this operation's attempts as `policy` says. Nothing happens before [`call`](RetryBlocking::call). By calling this you say that the
    /// operation **may be repeated**, as with [`Retryable::retry`](crate::Retryable::retry).
    fn retry_blocking(self, policy: &RetryPolicy) -> RetryBlocking<'_, Self>;
}

impl<F: FnMut() -> Result<T, E>, T, E> RetryableBlocking<T, E> for F {
    fn retry_blocking(self, policy: &RetryPolicy) -> RetryBlocking<'_, F> {
        RetryBlocking {
            operation: self,
            policy,
            site: CallSite::new(),
            classify: EveryError,
            notify: Nobody,
        }
    }
}

/// A call to be made on this thread, see [`RetryableBlocking`].
///
/// - It waits by parking its thread, until its time has come or the hub tells of an edge. Do not call it on a thread that must not wait, such as one
///   of an asynchronous runtime.
/// - Nothing ends an attempt but the operation itself: `attempt_timeout` and `cut_at_deadline` do nothing here, and a change of the network begins no attempt anew.
/// - In everything else it is like [`Retry`](crate::Retry).
#[must_use = "nothing happens before `call`"]
pub struct RetryBlocking<'p, F, C = EveryError, N = Nobody> {
    operation: F,
    policy: &'p RetryPolicy,
    site: CallSite<'p>,
    classify: C,
    notify: N,
}

impl<'p, F, C, N> RetryBlocking<'p, F, C, N> {
    call_site_setters!();

    /// Which errors are worth another attempt: as [`Retry::when`](crate::Retry::when).
    pub fn when<T, E, W: FnMut(&E) -> bool>(self, when: W) -> RetryBlocking<'p, F, When<W>, N>
    where
        F: FnMut() -> Result<T, E>,
    {
        self.with(When(when))
    }

    /// What each result means: as [`Retry::classify`](crate::Retry::classify).
    pub fn classify<T, E, V>(self, classify: V) -> RetryBlocking<'p, F, By<V>, N>
    where
        F: FnMut() -> Result<T, E>,
        V: FnMut(&Result<T, E>) -> Verdict,
    {
        self.with(By(classify))
    }

    /// Hears the call's events in order.
    pub fn notify<L: FnMut(&RetryEvent<'_>)>(self, notify: L) -> RetryBlocking<'p, F, C, To<L>> {
        RetryBlocking {
            operation: self.operation,
            policy: self.policy,
            site: self.site,
            classify: self.classify,
            notify: To(notify),
        }
    }

    fn with<V>(self, classify: V) -> RetryBlocking<'p, F, V, N> {
        RetryBlocking {
            operation: self.operation,
            policy: self.policy,
            site: self.site,
            classify,
            notify: self.notify,
        }
    }

    /// Makes the call.
    ///
    /// # Errors
    /// If the last attempt failed: its error, why there was no further one, and what was tried. Or a circuit breaker refused the first one.
    pub fn call<T, E>(mut self) -> Result<T, RetryError<E>>
    where
        F: FnMut() -> Result<T, E>,
        C: Classify<Result<T, E>>,
        N: Notify,
    {
        let (policy, label) = (self.policy, self.site.label);
        let as_inner = self.site.as_inner(policy);
        let setting = self.site.setting();
        let connectivity = setting.connectivity.known_to(policy, false);
        let mut session = CallSession::new(setting.facts, None, setting.seed, setting.stake);
        let mut notify = self.notify;
        let mut tell = |session: &mut CallSession, events: Events| {
            for event in events {
                let call_id = session.id();
                telemetry::tell(call_id, &event);
                let event = RetryEvent {
                    call_id,
                    label,
                    event,
                };
                // A listener's panic is its own.
                let _ = contained(|| notify.hear(&event));
            }
        };
        session.begin(policy, connectivity.now());
        if let Some((until, events)) = session.admit_first(&connectivity) {
            tell(&mut session, events);
            return Err(RetryError::refused(until, session.history().report()));
        }
        let (reason, last) = loop {
            session.note_attempt(connectivity.snapshot());
            session.note_above(policy, |_| as_inner);
            let result = session.layer().within(&mut self.operation);
            let judged = contained(|| self.classify.verdict(&result));
            let (next, events) = match judged {
                Ok(verdict) => session.failed(policy, &verdict.outcome(), &connectivity),
                Err(()) => session.stopped(Reason::Internal, Proof::default(), &connectivity),
            };
            tell(&mut session, events);
            match wait(next, &mut session, policy, &connectivity, &mut tell) {
                NextStep::Stop(reason) => break (Some(reason), result),
                NextStep::Go => {}
                _ => break (None, result),
            }
        };
        last.map_err(|error| {
            // An error that was classified as the answer is not worth another attempt.
            let reason = reason.unwrap_or(Reason::Permanent);
            RetryError::new(Some(error), None, reason, session.history().report())
        })
    }
}

/// Parks the thread until the core says go or stop.
fn wait(
    mut next: NextStep,
    session: &mut CallSession,
    policy: &RetryPolicy,
    connectivity: &Connectivity,
    tell: &mut dyn FnMut(&mut CallSession, Events),
) -> NextStep {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut waiter = Waiter::new(connectivity.clone());
    while matches!(next, NextStep::Sleep { .. }) {
        // An edge from here on unparks the thread, even before it parks.
        let network = waiter.listen(&waker);
        let (asked, events) = session.woken(policy, network, connectivity, &mut || true);
        tell(session, events);
        next = asked;
        if let NextStep::Sleep { ask_at } = next {
            thread::park_timeout(ask_at.saturating_since(session.now(connectivity)));
        }
    }
    next
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
