//! The four, each as its documentation's first example sets it up.

use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use comeback::{Connectivity, Executor, RetryPolicy};
use reqwest::{Client, Method, Request, Response, StatusCode};
use reqwest_retry::policies::ExponentialBackoff;
use reqwest_retry::{Jitter, RetryTransientMiddleware};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use tower::retry::backoff::{Backoff, ExponentialBackoffMaker, MakeBackoff};
use tower::util::rng::HasherRng;
use tower::{Service, ServiceBuilder, ServiceExt};

/// The budget all are given.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) attempts: u32,
    pub(crate) base: Duration,
    pub(crate) cap: Duration,
    pub(crate) elapsed: Duration,
}

#[derive(Clone, Copy)]
pub(crate) enum Peer {
    ReqwestRetry,
    Backon,
    Tower,
    Comeback,
}

impl Peer {
    pub(crate) const ALL: [Peer; 4] = [
        Peer::ReqwestRetry,
        Peer::Backon,
        Peer::Tower,
        Peer::Comeback,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Peer::ReqwestRetry => "reqwest-retry",
            Peer::Backon => "backon",
            Peer::Tower => "tower::retry",
            Peer::Comeback => "Comeback",
        }
    }

    /// As `Cargo.toml` pins it.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Peer::ReqwestRetry => "reqwest-retry 0.9.1",
            Peer::Backon => "backon 1.6.0",
            Peer::Tower => "tower 0.5.3",
            Peer::Comeback => "Comeback's executor",
        }
    }

    /// What the caller gets.
    pub(crate) async fn call(
        self,
        setting: Setting,
        method: Method,
        url: &str,
        hub: &Connectivity,
    ) -> String {
        let request = Request::new(method, url.parse().unwrap());
        match self {
            Peer::ReqwestRetry => said(reqwest_retry(setting, request).await),
            Peer::Backon => said(backon(setting, request).await),
            Peer::Tower => said(tower(setting, request).await),
            Peer::Comeback => said(comeback(setting, request, hub).await),
        }
    }
}

fn said<E>(result: Result<StatusCode, E>) -> String {
    result.map_or("an error".to_owned(), |status| status.as_u16().to_string())
}

async fn reqwest_retry(
    setting: Setting,
    request: Request,
) -> Result<StatusCode, reqwest_middleware::Error> {
    let policy = ExponentialBackoff::builder()
        .retry_bounds(setting.base, setting.cap)
        .jitter(Jitter::Full)
        .build_with_total_retry_duration_and_max_retries(setting.elapsed, setting.attempts - 1);
    let client = reqwest_middleware::ClientBuilder::new(client())
        .with(RetryTransientMiddleware::new_with_policy(policy))
        .build();
    client.execute(request).await.map(|answer| answer.status())
}

async fn backon(setting: Setting, request: Request) -> Result<StatusCode, reqwest::Error> {
    let client = client();
    let fetch = || async {
        let request = request.try_clone().unwrap();
        let answer = client.execute(request).await?.error_for_status()?;
        Ok(answer.status())
    };
    let transient = |error: &reqwest::Error| {
        error
            .status()
            .is_none_or(|status| status.is_server_error() || status == 429)
    };
    let result = fetch
        .retry(
            ExponentialBuilder::default()
                .with_jitter()
                .with_min_delay(setting.base)
                .with_max_delay(setting.cap)
                .with_max_times(setting.attempts as usize - 1)
                .with_total_delay(Some(setting.elapsed)),
        )
        .when(transient)
        .await;
    match result {
        Err(error) if error.status().is_some() => Ok(error.status().unwrap()),
        result => result,
    }
}

/// tower leaves the policy to the app; this is the one of its documentation, with a backoff.
#[derive(Clone)]
struct Attempts<B> {
    left: u32,
    backoff: B,
}

impl<B: Backoff> tower::retry::Policy<Request, Response, reqwest::Error> for Attempts<B> {
    type Future = B::Future;

    fn retry(
        &mut self,
        _request: &mut Request,
        result: &mut Result<Response, reqwest::Error>,
    ) -> Option<B::Future> {
        let failed = match result {
            Ok(answer) => answer.status().is_server_error() || answer.status() == 429,
            Err(_) => true,
        };
        self.left = self.left.checked_sub(1)?;
        failed.then(|| self.backoff.next_backoff())
    }

    fn clone_request(&mut self, request: &Request) -> Option<Request> {
        request.try_clone()
    }
}

async fn tower(setting: Setting, request: Request) -> Result<StatusCode, reqwest::Error> {
    let rng = HasherRng::default();
    let mut backoff = ExponentialBackoffMaker::new(setting.base, setting.cap, 1.0, rng).unwrap();
    let policy = Attempts {
        left: setting.attempts - 1,
        backoff: backoff.make_backoff(),
    };
    let mut service = ServiceBuilder::new().retry(policy).service(client());
    let answer = service.ready().await?.call(request).await?;
    Ok(answer.status())
}

async fn comeback(
    setting: Setting,
    request: Request,
    hub: &Connectivity,
) -> Result<StatusCode, comeback::HttpError> {
    let policy = RetryPolicy::builder()
        .max_attempts(setting.attempts)
        .max_elapsed(setting.elapsed)
        .base(setting.base)
        .cap(setting.cap)
        .build()
        .unwrap();
    let executor = Executor::builder()
        .policy(policy)
        .connectivity(hub.clone())
        .build()
        .unwrap();
    executor
        .execute(request)
        .await
        .map(|answer| answer.status())
}

/// The peers' client: reqwest's, with TLS that knows no authority at all.
fn client() -> Client {
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    Client::builder()
        .tls_backend_preconfigured(tls)
        .build()
        .unwrap()
}
