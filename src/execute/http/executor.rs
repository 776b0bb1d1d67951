//! The executor: one per app, cheap to clone.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use reqwest::header::HeaderMap;
use reqwest::{ClientBuilder, IntoUrl, Method, Request, Response};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;

use super::super::aggregates::{AggregatesBuilder, BreakerEvent};
use super::super::connectivity::Connectivity;
use super::super::listener::RetryListener;
use super::client::{Clients, Settings, default_tls};
use super::error::HttpError;
use super::hook::{AttemptHead, BeforeAttempt};
use super::request::HttpRequest;
use super::shared::{Classify, PolicyFor, Shared};
use crate::outcome::OutcomeClass;
use crate::policy::{CircuitBreaker, RetryBudget, RetryPolicy};

/// Sends HTTP requests over reqwest, and sends them again where the policy allows it: at once when the network is back.
///
/// ```no_run
/// use comeback::{Connectivity, Executor, Reported, RetryPolicy};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let hub = Connectivity::new();
/// let executor = Executor::builder()
///     .policy(RetryPolicy::read())
///     .connectivity(hub.clone())
///     .build()?;
/// let response = executor.get("https://example.org/orders").send().await?;
/// println!("{} after {:?}", response.status(), response.retry_report());
/// hub.restored(); // from whoever knows: pending waits end
/// # Ok(())
/// # }
/// ```
///
/// Within another call's attempt (`.retry(..)`, a batch's round) a request goes once, and the outer call decides; otherwise layers would multiply.
///
/// Dropping the future that [`send`](HttpRequest::send) made ends the call: its attempt is cancelled, the server sees the connection or
/// the stream end.
#[derive(Clone)]
pub struct Executor(Arc<Shared>);

impl Executor {
    /// A builder with the default policy and without knowledge of the network.
    pub fn builder() -> ExecutorBuilder {
        ExecutorBuilder {
            policy: RetryPolicy::default(),
            policy_for: None,
            classify: None,
            before_attempt: None,
            listener: None,
            connectivity: None,
            aggregates: AggregatesBuilder::default(),
            settings: None,
            authorities: Vec::new(),
            tls: None,
        }
    }

    /// What is known of the network.
    pub fn connectivity(&self) -> &Connectivity {
        &self.0.connectivity
    }

    /// A GET.
    pub fn get(&self, url: impl IntoUrl) -> HttpRequest {
        self.request(Method::GET, url)
    }

    /// A HEAD.
    pub fn head(&self, url: impl IntoUrl) -> HttpRequest {
        self.request(Method::HEAD, url)
    }

    /// A POST. Without an idempotency key it goes again only if it provably was not sent.
    pub fn post(&self, url: impl IntoUrl) -> HttpRequest {
        self.request(Method::POST, url)
    }

    /// A PUT.
    pub fn put(&self, url: impl IntoUrl) -> HttpRequest {
        self.request(Method::PUT, url)
    }

    /// A PATCH. Without an idempotency key it goes again only if it provably was not sent.
    pub fn patch(&self, url: impl IntoUrl) -> HttpRequest {
        self.request(Method::PATCH, url)
    }

    /// A DELETE.
    pub fn delete(&self, url: impl IntoUrl) -> HttpRequest {
        self.request(Method::DELETE, url)
    }

    /// A request of any method.
    pub fn request(&self, method: Method, url: impl IntoUrl) -> HttpRequest {
        // By the client's own builder, which tells the server who a URL names (`https://user:password@host`).
        let request = self.0.clients.any().request(method, url).build();
        HttpRequest::new(self.0.clone(), request)
    }

    /// A request made elsewhere, to be given a policy, a key or a body factory.
    pub fn prepare(&self, request: Request) -> HttpRequest {
        HttpRequest::new(self.0.clone(), Ok(request))
    }

    /// Sends a request made elsewhere: `prepare(request).send()`.
    ///
    /// # Errors
    /// As [`HttpRequest::send`].
    pub async fn execute(&self, request: Request) -> Result<Response, HttpError> {
        self.prepare(request).send().await
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Executor")
            .field("policy", &self.0.policy)
            .field("connectivity", &self.0.connectivity)
            .finish_non_exhaustive()
    }
}

/// Sets up an [`Executor`].
#[must_use = "nothing is built before `build`"]
pub struct ExecutorBuilder {
    policy: RetryPolicy,
    policy_for: Option<Box<PolicyFor>>,
    classify: Option<Box<Classify>>,
    before_attempt: Option<Box<BeforeAttempt>>,
    listener: Option<Arc<dyn RetryListener>>,
    connectivity: Option<Connectivity>,
    aggregates: AggregatesBuilder,
    settings: Option<Box<Settings>>,
    authorities: Vec<CertificateDer<'static>>,
    tls: Option<ClientConfig>,
}

impl ExecutorBuilder {
    /// The policy of requests that have none of their own.
    pub fn policy(mut self, policy: RetryPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Chooses a policy by the request; `None` means the executor's. A request's own policy comes before it.
    pub fn policy_for(
        mut self,
        choose: impl Fn(&Request) -> Option<RetryPolicy> + Send + Sync + 'static,
    ) -> Self {
        self.policy_for = Some(Box::new(choose));
        self
    }

    /// The app's class for an outcome; `None` leaves it to Comeback. It never makes a request repeatable. It sees the whole request except a body that is
    /// a stream, and cannot read a response's body. If it panics, the call stops with `internal` and the outcome it has.
    pub fn classify(
        mut self,
        classify: impl Fn(&Request, Result<&Response, &reqwest::Error>) -> Option<OutcomeClass>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.classify = Some(Box::new(classify));
        self
    }

    /// Makes headers for each attempt before it is made: a signature, a token that may have to be refreshed, the attempt's number. Headers of the same names
    /// are replaced.
    ///
    /// ```
    /// use comeback::{Executor, RetryPolicy};
    /// use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
    ///
    /// async fn fresh_token() -> Result<HeaderValue, std::io::Error> {
    ///     Ok(HeaderValue::from_static("Bearer abc"))
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let executor = Executor::builder()
    ///     .before_attempt(|attempt| async move {
    ///         let mut headers = HeaderMap::new();
    ///         headers.insert("attempt", HeaderValue::from(attempt.number()));
    ///         headers.insert(AUTHORIZATION, fresh_token().await?);
    ///         Ok::<_, std::io::Error>(headers)
    ///     })
    ///     .build()?;
    /// # drop(executor);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// - If it fails, the attempt has failed, and has sent nothing of its own request. The kind is that of the error: of an `HttpError`, of reqwest's, of an
    ///   I/O error. An error of any other type stops the call.
    /// - Requests that it makes by a layer of ours are within the attempt: they go once, and the call is not repeated if one of them must not be. What it sends
    ///   by other means is yours to know.
    /// - It takes part in the attempt's time: in `attempt_timeout`, and in a later attempt's inactivity limit.
    /// - What decides whether a request may go again belongs on the request: an idempotency key and conditions (`If-Match` and its like) of the hook's are left out.
    /// - If it panics, the panic goes on to whoever awaits the call.
    pub fn before_attempt<H, A, E>(mut self, hook: H) -> Self
    where
        H: Fn(AttemptHead) -> A + Send + Sync + 'static,
        A: Future<Output = Result<HeaderMap, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.before_attempt = Some(Box::new(move |head| {
            let made = hook(head);
            Box::pin(async move { made.await.map_err(Into::into) })
        }));
        self
    }

    /// Hears the events of all calls.
    pub fn listener(mut self, listener: impl RetryListener + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// Where edges come from, and the clock all calls go by.
    pub fn connectivity(mut self, connectivity: Connectivity) -> Self {
        self.connectivity = Some(connectivity);
        self
    }

    /// How many retries all calls to one origin may make together. Without it only each call's own policy limits them.
    ///
    /// ```
    /// use comeback::{CircuitBreaker, Executor, RetryBudget};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let executor = Executor::builder()
    ///     .retry_budget(RetryBudget::default())
    ///     .circuit_breaker(CircuitBreaker::default())
    ///     .on_breaker(|event| println!("origin {}: {:?}", event.origin, event.transition))
    ///     .build()?;
    /// # drop(executor);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// An origin is scheme, host and port of the URL that answered. Where a redirect may hide it, nothing is asked or told.
    pub fn retry_budget(mut self, budget: RetryBudget) -> Self {
        self.aggregates = self.aggregates.retry_budget(budget);
        self
    }

    /// When the retries to one origin stop for a while. First attempts go on, unless it says [`refuse_first`](CircuitBreaker::refuse_first).
    pub fn circuit_breaker(mut self, breaker: CircuitBreaker) -> Self {
        self.aggregates = self.aggregates.circuit_breaker(breaker);
        self
    }

    /// Hears the circuit breakers: see [`AggregatesBuilder::on_breaker`].
    pub fn on_breaker(mut self, hear: impl Fn(&BreakerEvent) + Send + Sync + 'static) -> Self {
        self.aggregates = self.aggregates.on_breaker(hear);
        self
    }

    /// The app's own settings of the HTTP client: proxies, time-outs, redirects, default headers, cookies.
    ///
    /// Called once now, and again whenever the network's path has grown or an origin's connections have become suspect (an attempt ended by time),
    /// because a client's pool cannot be emptied: hand shared things in (a cookie store by `cookie_provider`) instead of having each client make its own. What the rules must see belongs on the request:
    /// they know nothing of default headers. `timeout` ends each attempt; a time-out for the call is the request's own
    /// ([`HttpRequest::timeout`]). Settings of TLS have no effect here, nor has `http1_only` over TLS, because HTTP/2 is what TLS offers:
    /// see [`tls`](Self::tls). `retry` has none: reqwest's own retries are off.
    pub fn client(
        mut self,
        settings: impl Fn(ClientBuilder) -> ClientBuilder + Send + Sync + 'static,
    ) -> Self {
        self.settings = Some(Box::new(settings));
        self
    }

    /// Trusts this authority (a DER certificate) beside Mozilla's roots.
    pub fn trust(mut self, authority: impl Into<Vec<u8>>) -> Self {
        self.authorities
            .push(CertificateDer::from(authority.into()));
        self
    }

    /// TLS as the app has it, instead of ours (rustls with ring, Mozilla's roots bundled, HTTP/2 offered): client certificates, the
    /// platform's verifier, other protocols.
    pub fn tls(mut self, config: ClientConfig) -> Self {
        self.tls = Some(config);
        self
    }

    /// The executor, with its first client built: what is wrong with the settings is said here.
    ///
    /// # Errors
    /// If reqwest refuses the settings, or an authority is no certificate.
    pub fn build(self) -> Result<Executor, ExecutorError> {
        let tls = match self.tls {
            Some(tls) => tls,
            None => default_tls(&self.authorities).map_err(ExecutorError::tls)?,
        };
        let connectivity = self.connectivity.unwrap_or_else(Connectivity::unknown);
        let path = connectivity.snapshot().path;
        Ok(Executor(Arc::new(Shared {
            clients: Clients::new(tls, self.settings, path).map_err(ExecutorError::client)?,
            connectivity,
            aggregates: self.aggregates.build_if_any(),
            policy: Arc::new(self.policy),
            policy_for: self.policy_for,
            classify: self.classify,
            before_attempt: self.before_attempt,
            listener: self.listener,
        })))
    }
}

impl fmt::Debug for ExecutorBuilder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ExecutorBuilder")
            .field("policy", &self.policy)
            .field("connectivity", &self.connectivity)
            .finish_non_exhaustive()
    }
}

/// An executor could not be built.
#[derive(Debug)]
pub struct ExecutorError {
    what: &'static str,
    source: Box<dyn Error + Send + Sync>,
}

impl ExecutorError {
    fn tls(source: rustls::Error) -> ExecutorError {
        ExecutorError {
            what: "TLS cannot be set up; `trust` takes DER certificates of authorities",
            source: source.into(),
        }
    }

    fn client(source: reqwest::Error) -> ExecutorError {
        ExecutorError {
            what: "the HTTP client cannot be built; see the settings given to `client`",
            source: source.into(),
        }
    }
}

impl fmt::Display for ExecutorError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.what, self.source)
    }
}

impl Error for ExecutorError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
