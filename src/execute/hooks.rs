//! What an app may say and hear at a call site: closures by their type, so that none is boxed.

use super::aggregates::Stake;
use super::connectivity::Connectivity;
use super::drive::CallSetting;
use super::listener::RetryEvent;
use super::verdict::Verdict;
use crate::policy::{Repeat, RetryPolicy};
use crate::request::{Method, RequestFacts};

/// What a call site may say besides its hooks, for one operation and for a batch alike.
pub(super) struct CallSite<'p> {
    pub(super) connectivity: Option<Connectivity>,
    pub(super) request: Option<RequestFacts>,
    pub(super) label: Option<&'p str>,
    pub(super) seed: Option<u64>,
    pub(super) restart: bool,
    /// Whether the request's key counts to an attempt around the call.
    pub(super) shows_key: bool,
    pub(super) stake: Option<Box<Stake>>,
}

impl CallSite<'_> {
    /// Nothing was said: what is asked to be retried may be repeated, as a GET.
    pub(super) fn new() -> Self {
        CallSite {
            connectivity: None,
            request: None,
            label: None,
            seed: None,
            restart: false,
            shows_key: true,
            stake: None,
        }
    }

    pub(super) fn request(&self) -> RequestFacts {
        self.request.unwrap_or(RequestFacts::new(Method::Get))
    }

    /// What an attempt around the call is to know of it: an operation is no request, unless the app says that it is one, or that it must not be
    /// repeated.
    pub(super) fn as_inner(&self, policy: &RetryPolicy) -> Option<RequestFacts> {
        let is_said = self.request.is_some() || policy.repeat == Repeat::Never;
        let request = self.request();
        is_said.then_some(RequestFacts {
            has_key: request.has_key && self.shows_key,
            ..request
        })
    }

    pub(super) fn setting(self) -> CallSetting {
        let request = self.request();
        let connectivity = self.connectivity.unwrap_or_else(Connectivity::unknown);
        CallSetting {
            seed: self.seed,
            restarts: self.restart,
            stake: self.stake,
            ..CallSetting::new(request, connectivity)
        }
    }
}

/// What `Retry`, `RetryBlocking` and `Batch` may all be told, for each to place in its own `impl`. They hold it in a field `site`. Where an attempt can be
/// dropped: `with restart`.
macro_rules! call_site_setters {
    (with restart) => {
        call_site_setters!();

        /// Whether an attempt is dropped and begun anew when the network changes under it. By default it is not, because a future does not say whether
        /// it needs the network. Use it for an operation that has connections of its own and would hang then, if the operation may be dropped and made
        /// again. An attempt that may have sent something counts.
        pub fn restart(mut self, restart: bool) -> Self {
            self.site.restart = restart;
            self
        }
    };
    () => {
        /// The network. Its edges end waits, and its clock is the call's. Without it only timers end waits.
        pub fn connectivity(mut self, connectivity: &Connectivity) -> Self {
            self.site.connectivity = Some(connectivity.clone());
            self
        }

        /// What kind of request an attempt is, if it is one. For example, a POST without a key goes again only if it provably never arrived
        /// ([`Verdict::NEVER_SENT`]).
        pub fn request(mut self, request: RequestFacts) -> Self {
            self.site.request = Some(request);
            self
        }

        /// The retry budget and the circuit breaker of `origin`, your name for the server that the operation goes to. Calls that name the same origin share
        /// its state. They tell what they came to: an answer that is no overload counts as a success, an error speaks of the server only if it was classified.
        ///
        /// Within another call's attempt the outer call decides, so this one asks neither; the breaker hears what it came to.
        pub fn aggregates(
            mut self,
            aggregates: &Aggregates,
            origin: impl Into<std::sync::Arc<str>>,
        ) -> Self {
            self.site.stake = Some(aggregates.stake(origin.into()));
            self
        }

        /// Your name for the call, for its events.
        pub fn label(mut self, label: &'p str) -> Self {
            self.site.label = Some(label);
            self
        }

        /// The seed of the call's waits, to replay them. Without it the seed comes from the operating system.
        pub fn seed(mut self, seed: u64) -> Self {
            self.site.seed = Some(seed);
            self
        }
    };
}
pub(super) use call_site_setters;

/// Says what a result means. Implemented here only.
pub trait Classify<O>: sealed::Sealed {
    /// What it means.
    fn verdict(&mut self, output: &O) -> Verdict;
}

/// Hears a call's events. Implemented here only.
pub trait Notify: sealed::Sealed {
    /// One event.
    fn hear(&mut self, event: &RetryEvent<'_>);
}

mod sealed {
    pub trait Sealed {}
}

/// Every error is worth another try: see [`Retryable::retry`](crate::Retryable::retry).
#[derive(Clone, Copy, Debug)]
pub struct EveryError;

impl sealed::Sealed for EveryError {}

impl<T, E> Classify<Result<T, E>> for EveryError {
    fn verdict(&mut self, output: &Result<T, E>) -> Verdict {
        match output {
            Ok(_) => Verdict::ANSWER,
            Err(_) => Verdict::IN_DOUBT,
        }
    }
}

/// Some errors are: see [`Retry::when`](crate::Retry::when).
#[derive(Clone, Copy, Debug)]
pub struct When<W>(pub(super) W);

impl<W> sealed::Sealed for When<W> {}

impl<T, E, W: FnMut(&E) -> bool> Classify<Result<T, E>> for When<W> {
    fn verdict(&mut self, output: &Result<T, E>) -> Verdict {
        match output {
            Ok(_) => Verdict::ANSWER,
            Err(error) if self.0(error) => Verdict::IN_DOUBT,
            Err(_) => Verdict::PERMANENT,
        }
    }
}

/// The app says what each result means: see [`Retry::classify`](crate::Retry::classify).
#[derive(Clone, Copy, Debug)]
pub struct By<V>(pub(super) V);

impl<V> sealed::Sealed for By<V> {}

impl<O, V: FnMut(&O) -> Verdict> Classify<O> for By<V> {
    fn verdict(&mut self, output: &O) -> Verdict {
        self.0(output)
    }
}

/// Nobody hears the events.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl sealed::Sealed for Nobody {}

impl Notify for Nobody {
    fn hear(&mut self, _event: &RetryEvent<'_>) {}
}

/// The app hears the events: see [`Retry::notify`](crate::Retry::notify).
#[derive(Clone, Copy, Debug)]
pub struct To<L>(pub(super) L);

impl<L> sealed::Sealed for To<L> {}

impl<L: FnMut(&RetryEvent<'_>)> Notify for To<L> {
    fn hear(&mut self, event: &RetryEvent<'_>) {
        self.0(event);
    }
}
