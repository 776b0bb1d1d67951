//! A `tower::Layer` over any service whose requests can be cloned (feature `tower`).

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

use super::connectivity::Connectivity;
use super::future::Retryable;
use super::hooks::{By, Classify, EveryError};
use super::retry_error::RetryError;
use super::verdict::Verdict;
use crate::event::{Reason, Report};
use crate::policy::RetryPolicy;
use crate::request::RequestFacts;

/// Repeats a service's requests as a policy allows. `facts` says what a request is; it decides what may go again, so it must not say more than is true. A key
/// counts only if the request brings it along: the clones are the same request.
///
/// Every error is worth another attempt if the request may be repeated; [`classify`](RetryLayer::classify) says more.
///
/// ```
/// use comeback::{Connectivity, Method, RequestFacts, RetryLayer, RetryPolicy};
/// use tower_layer::Layer;
///
/// #[derive(Clone)]
/// struct Order {
///     method: &'static str,
/// }
///
/// let hub = Connectivity::new();
/// let layer = RetryLayer::new(RetryPolicy::default(), |order: &Order| {
///     RequestFacts::new(Method::parse(order.method))
/// })
/// .connectivity(&hub);
/// # struct AnyService;
/// let service = layer.layer(AnyService);
/// # drop(service);
/// ```
///
/// The first attempt goes to the service that was ready, every later one to a clone that is awaited to be. Within another call's attempt the request goes once, and
/// the outer call decides; to it no key counts, because nobody sees whether it is the same the next time. A service that hands requests to a task of its own
/// (`tower::buffer`) sends them outside of the attempt: calls of ours there retry by themselves.
#[derive(Clone, Debug)]
pub struct RetryLayer<F, V = EveryError> {
    policy: Arc<RetryPolicy>,
    connectivity: Option<Connectivity>,
    facts: F,
    classify: V,
}

/// A service whose requests are repeated, see [`RetryLayer`].
#[derive(Clone, Debug)]
pub struct RetryService<S, F, V = EveryError> {
    inner: S,
    layer: RetryLayer<F, V>,
}

impl<F> RetryLayer<F> {
    /// By this policy.
    pub fn new(policy: impl Into<Arc<RetryPolicy>>, facts: F) -> RetryLayer<F> {
        RetryLayer {
            policy: policy.into(),
            connectivity: None,
            facts,
            classify: EveryError,
        }
    }
}

impl<F, V> RetryLayer<F, V> {
    /// The network. Its edges end waits, and its clock is the calls'. Without it only timers end waits.
    pub fn connectivity(mut self, connectivity: &Connectivity) -> Self {
        self.connectivity = Some(connectivity.clone());
        self
    }

    /// What each result means: as [`Retry::classify`](crate::Retry::classify).
    pub fn classify<T, E, W>(self, classify: W) -> RetryLayer<F, By<W>>
    where
        W: FnMut(&Result<T, E>) -> Verdict,
    {
        RetryLayer {
            policy: self.policy,
            connectivity: self.connectivity,
            facts: self.facts,
            classify: By(classify),
        }
    }
}

impl<S, F: Clone, V: Clone> Layer<S> for RetryLayer<F, V> {
    type Service = RetryService<S, F, V>;

    fn layer(&self, inner: S) -> RetryService<S, F, V> {
        RetryService {
            inner,
            layer: self.clone(),
        }
    }
}

impl<S, R, F, V> Service<R> for RetryService<S, F, V>
where
    S: Service<R> + Clone + Send + 'static,
    S::Future: Send,
    S::Response: Send,
    S::Error: Send,
    R: Clone + Send + 'static,
    F: Fn(&R) -> RequestFacts,
    V: Classify<Result<S::Response, S::Error>> + Clone + Send + 'static,
{
    type Response = S::Response;
    type Error = RetryError<S::Error>;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, RetryError<S::Error>>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        // No call yet, so no attempt.
        let failed =
            |error| RetryError::new(Some(error), None, Reason::Permanent, Report::default());
        self.inner.poll_ready(context).map_err(failed)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let facts = (self.layer.facts)(&request);
        let spare = self.inner.clone();
        let mut ready = Some(std::mem::replace(&mut self.inner, spare.clone()));
        let (policy, connectivity) = (self.layer.policy.clone(), self.layer.connectivity.clone());
        let classify = self.layer.classify.clone();
        let attempt = move || {
            let (service, request) = (ready.take(), request.clone());
            let spare = spare.clone();
            async move {
                let mut service = match service {
                    Some(ready) => ready,
                    None => {
                        let mut service = spare;
                        poll_fn(|context| service.poll_ready(context)).await?;
                        service
                    }
                };
                service.call(request).await
            }
        };
        Box::pin(async move {
            let mut call = attempt.retry(&policy).request(facts).without_key_outside();
            if let Some(connectivity) = &connectivity {
                call = call.connectivity(connectivity);
            }
            call.classified(classify).await
        })
    }
}
