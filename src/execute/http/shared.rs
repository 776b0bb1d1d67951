//! What all requests of one executor share.

use std::sync::Arc;

use reqwest::{Request, Response, Url};

use super::super::aggregates::Aggregates;
use super::super::connectivity::Connectivity;
use super::super::listener::RetryListener;
use super::client::{Clients, Lease};
use super::hook::BeforeAttempt;
use super::observer::AttemptObserver;
use super::spec::CallSpec;
use crate::outcome::OutcomeClass;
use crate::policy::RetryPolicy;

pub(super) type Classify =
    dyn Fn(&Request, Result<&Response, &reqwest::Error>) -> Option<OutcomeClass> + Send + Sync;
pub(super) type PolicyFor = dyn Fn(&Request) -> Option<RetryPolicy> + Send + Sync;

/// An executor's settings, and its clients.
pub(super) struct Shared {
    pub(super) clients: Clients,
    pub(super) connectivity: Connectivity,
    pub(super) aggregates: Option<Aggregates>,
    pub(super) policy: Arc<RetryPolicy>,
    pub(super) policy_for: Option<Box<PolicyFor>>,
    pub(super) classify: Option<Box<Classify>>,
    pub(super) before_attempt: Option<Box<BeforeAttempt>>,
    pub(super) listener: Option<Arc<dyn RetryListener>>,
}

/// Scheme, host and port of a URL.
pub(super) fn origin_of(url: &Url) -> Arc<str> {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}://{host}:{port}", url.scheme()).into()
}

impl Shared {
    /// What the app says of an outcome, if it was given the chance.
    pub(super) fn opinion(
        &self,
        spec: &CallSpec,
        came: Result<&Response, &reqwest::Error>,
    ) -> Option<OutcomeClass> {
        let classify = self.classify.as_ref()?;
        classify(spec.template.request(), came)
    }

    /// The attempt ended by time, so its connection may be dead.
    pub(super) fn suspect(&self, spec: &CallSpec, lease: &Lease, observer: &AttemptObserver) {
        let url = spec.template.request().url();
        self.clients.suspect(lease, url, observer.has_answered());
    }
}
