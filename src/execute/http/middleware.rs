//! A middleware for `reqwest-middleware` (feature `reqwest-middleware`): retries around a client of the app's own.

use std::io;
use std::sync::Arc;

use http::Extensions;
use reqwest::header::{CACHE_CONTROL, HeaderName, IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
use reqwest::{Request, Response};
use reqwest_middleware::{Error, Middleware, Next};
use tokio::sync::Mutex;

use super::super::connectivity::Connectivity;
use super::super::future::Retryable;
use super::super::verdict::Verdict;
use super::hook::kind_of;
use crate::policy::RetryPolicy;
use crate::request::RequestFacts;

/// Repeats what the middlewares after it and the client send, as a policy allows.
///
/// ```
/// use comeback::{Connectivity, RetryMiddleware, RetryPolicy};
/// use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
///
/// fn with_retries(client: reqwest::Client, hub: &Connectivity) -> ClientWithMiddleware {
///     let retries = RetryMiddleware::new(RetryPolicy::read()).connectivity(hub);
///     ClientBuilder::new(client).with(retries).build()
/// }
/// ```
///
/// The client is the app's, and nobody observes it. So nothing counts as "never sent": a POST goes again only with a key. No key is made; set one on the
/// request. The client's own re-sends and redirects are not seen, and later attempts may begin on connections that are dead. A policy's `connect_timeout`,
/// `read_body` and inactivity limits do nothing here. An [`Executor`](crate::Executor) does all of this.
///
/// A request whose body is a stream goes once. Within another call's attempt a request goes once, and the outer call decides; to it no key counts.
///
/// The result is the last attempt's. If that was dropped at its limit, the error is a middleware's, with a [`RetryError`](crate::RetryError) in it.
#[derive(Clone, Debug)]
pub struct RetryMiddleware {
    policy: Arc<RetryPolicy>,
    connectivity: Option<Connectivity>,
}

impl RetryMiddleware {
    /// By this policy.
    pub fn new(policy: impl Into<Arc<RetryPolicy>>) -> RetryMiddleware {
        RetryMiddleware {
            policy: policy.into(),
            connectivity: None,
        }
    }

    /// The network. Its edges end waits, and its clock is the calls'. Without it only timers end waits.
    pub fn connectivity(mut self, connectivity: &Connectivity) -> Self {
        self.connectivity = Some(connectivity.clone());
        self
    }
}

#[async_trait::async_trait]
impl Middleware for RetryMiddleware {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response, Error> {
        let is_whole = request.try_clone().is_some();
        let facts = facts(&request, &self.policy, is_whole);
        let mut left = Some(request);
        // Lent to one attempt after the other.
        let extensions = Mutex::new(extensions);
        let attempt = || {
            let clone = left.as_ref().and_then(Request::try_clone);
            let request = clone.or_else(|| left.take());
            let (next, extensions) = (next.clone(), &extensions);
            async move {
                let Some(request) = request else {
                    return Err(Error::middleware(io::Error::other("the body is spent")));
                };
                let mut extensions = extensions.lock().await;
                next.run(request, &mut extensions).await
            }
        };
        let mut call = attempt.retry(&self.policy);
        call = call.request(facts).without_key_outside();
        if let Some(connectivity) = &self.connectivity {
            call = call.connectivity(connectivity);
        }
        let result = call.classify(verdict).await;
        result.map_err(|error| error.into_last_or(Error::middleware))
    }
}

fn verdict(result: &Result<Response, Error>) -> Verdict {
    match result {
        Ok(response) => Verdict::of_response(response),
        Err(Error::Reqwest(error)) => Verdict::of_client_error(error),
        Err(Error::Middleware(error)) => Verdict::Unproven(kind_of(&**error)),
    }
}

fn facts(request: &Request, policy: &RetryPolicy, is_whole: bool) -> RequestFacts {
    let headers = request.headers();
    let lines = |name: &HeaderName| -> Vec<&str> {
        let all = headers.get_all(name).iter();
        all.map(|line| line.to_str().unwrap_or("?")).collect()
    };
    let key = HeaderName::try_from(policy.key().header.as_str());
    let conditions = [IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE];
    RequestFacts {
        has_body: request.body().is_some(),
        body_replayable: is_whole,
        ..RequestFacts::read(
            request.method().as_str(),
            key.iter().flat_map(lines),
            conditions.iter().flat_map(lines),
            lines(&CACHE_CONTROL),
        )
    }
}
