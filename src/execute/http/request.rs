//! A request on its way to be sent: reqwest's builder, with what a retry needs to know.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{
    CACHE_CONTROL, HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE,
};
use reqwest::{Body, Request, Response};
use serde::Serialize;
use uuid::Uuid;

use super::super::drive::{CallSetting, Drive};
use super::super::layer::Attempting;
use super::super::listener::contained;
use super::body::{Factory, Template};
use super::call::{HttpCall, settle};
use super::error::{Cause, HttpError};
use super::failure::Failure;
use super::hook;
use super::observer::AttemptObserver;
use super::shared::{Shared, origin_of};
use super::spec::CallSpec;
use crate::event::{Reason, Report};
use crate::loopback::is_loopback;
use crate::policy::{KeyForm, RetryPolicy};
use crate::request::{Method, RequestFacts, makes_key};

/// A request that can be sent, and sent again. Made by [`Executor::get`](crate::Executor::get) and its siblings.
#[must_use = "nothing is sent before `send`"]
pub struct HttpRequest {
    shared: Arc<Shared>,
    request: Result<Request, reqwest::Error>,
    policy: Policy,
    make_key: bool,
    label: Option<String>,
    factory: Option<Arc<Factory>>,
    read_up_to: Option<u64>,
    seed: Option<u64>,
}

enum Policy {
    /// The executor's choice.
    Default,
    Own(Arc<RetryPolicy>),
    Off,
}

impl HttpRequest {
    pub(super) fn new(
        shared: Arc<Shared>,
        request: Result<Request, reqwest::Error>,
    ) -> HttpRequest {
        HttpRequest {
            shared,
            request,
            policy: Policy::Default,
            make_key: false,
            label: None,
            factory: None,
            read_up_to: None,
            seed: None,
        }
    }

    /// Adds a header.
    pub fn header<N, V>(self, name: N, value: V) -> Self
    where
        HeaderName: TryFrom<N>,
        <HeaderName as TryFrom<N>>::Error: Into<http::Error>,
        HeaderValue: TryFrom<V>,
        <HeaderValue as TryFrom<V>>::Error: Into<http::Error>,
    {
        self.with(|builder| builder.header(name, value))
    }

    /// Adds these headers; those of the same names are replaced.
    pub fn headers(self, headers: HeaderMap) -> Self {
        self.with(|builder| builder.headers(headers))
    }

    /// `Authorization: Bearer`.
    pub fn bearer_auth(self, token: impl fmt::Display) -> Self {
        self.with(|builder| builder.bearer_auth(token))
    }

    /// The body. Bytes and text go again as they are; a stream is sent once, unless nothing of it was asked for: see
    /// [`body_from`](Self::body_from).
    pub fn body(self, body: impl Into<Body>) -> Self {
        self.with(|builder| builder.body(body))
    }

    /// The body as JSON.
    pub fn json(self, value: &(impl Serialize + ?Sized)) -> Self {
        self.with(|builder| builder.json(value))
    }

    /// Makes the body of each attempt: for streams that can be opened again. It must yield the same bytes each time.
    pub fn body_from(mut self, make: impl Fn() -> Body + Send + Sync + 'static) -> Self {
        self.factory = Some(Arc::new(make));
        self
    }

    /// The longest the call may take, waits included, until its body was read: the call ends then, `cancelled` by the client's own
    /// call timeout. reqwest's `timeout`, for the call instead of the attempt.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|builder| builder.timeout(timeout))
    }

    /// Anything else reqwest's builder can do.
    pub fn with(
        mut self,
        change: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
    ) -> Self {
        self.request = self.request.and_then(|request| {
            let client = self.shared.clients.any();
            change(reqwest::RequestBuilder::from_parts(client, request)).build()
        });
        self
    }

    /// This request's policy, instead of the executor's: by value, or in an `Arc` that many requests share.
    pub fn policy(mut self, policy: impl Into<Arc<RetryPolicy>>) -> Self {
        self.policy = Policy::Own(policy.into());
        self
    }

    /// No policy: the request goes once, as without Comeback.
    pub fn without_retries(mut self) -> Self {
        self.policy = Policy::Off;
        self
    }

    /// Makes an idempotency key if the request has none: the same on every attempt and redirect. The server must support it.
    pub fn idempotency_key(mut self) -> Self {
        self.make_key = true;
        self
    }

    /// The app's name for the call, in its events.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Counts reading the body as part of the attempt, up to this many bytes: the attempt's limits and a change of the network cover it, and a response
    /// that breaks off before is tried again, if the request may be repeated. What is longer is handed on, its rest still to be read. Event streams and
    /// bodies of answers that are tried again anyway are not read. It goes before the policy's `read_body`, which is the same for all its requests.
    pub fn read_up_to(mut self, bytes: u64) -> Self {
        self.read_up_to = Some(bytes);
        self
    }

    /// The seed of the call's draws, for replays; else it comes from the operating system.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sends it, and repeats it as the policy allows.
    ///
    /// The answer is the last attempt's response, whatever its status, with the [report](super::Reported::retry_report) attached if it was
    /// not the first. Dropping the future ends the call.
    ///
    /// # Errors
    /// If the last attempt had no response, or its response was closed before a wait in which the call then ended.
    pub async fn send(self) -> Result<Response, HttpError> {
        let shared = self.shared;
        let mut request = self.request.map_err(invalid)?;
        let policy = match self.policy {
            Policy::Own(policy) => policy,
            Policy::Default => {
                let chosen = shared.policy_for.as_ref().and_then(|choose| {
                    // A hook that panics counts as `None`.
                    contained(|| choose(&request)).ok().flatten()
                });
                chosen.map_or_else(|| shared.policy.clone(), Arc::new)
            }
            Policy::Off => {
                let template = Template::new(request, self.factory);
                return once(&shared, &template).await;
            }
        };
        let method = Method::parse(request.method().as_str());
        let makes_key = self.make_key || makes_key(&policy, method);
        let has_made_key = makes_key && give_key(&mut request, &policy);
        let timeout = request.timeout().copied();
        let is_loopback = request.url().host_str().is_some_and(is_loopback);
        let template = Template::new(request, self.factory);
        let facts = facts(&template, &policy, method);
        let began = shared.connectivity.now();
        let spec = Arc::new(CallSpec {
            template,
            facts,
            has_made_key,
            policy: policy.clone(),
            label: self.label,
            read_up_to: self.read_up_to.or(policy.read_body().map(u64::from)),
            client_end: timeout.map(|timeout| began.saturating_add(timeout)),
        });
        let setting = CallSetting {
            facts,
            connectivity: shared.connectivity.clone(),
            client_end: spec.client_end,
            is_loopback,
            seed: self.seed,
            restarts: true,
            stake: { &shared.aggregates }
                .as_ref()
                .map(|aggregates| aggregates.stake(origin_of(spec.template.request().url()))),
        };
        let call = HttpCall::new(shared, spec);
        settle(Drive::new(call, policy, setting).await)
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("HttpRequest")
            .field("method", &self.request.as_ref().ok().map(Request::method))
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

/// As without us; but the client is one for the network there is, and an attempt around it is told of the request.
async fn once(shared: &Shared, template: &Template) -> Result<Response, HttpError> {
    let entry = Attempting::begin().above().map(|above| {
        let policy = RetryPolicy::default(); // the rules without one
        let method = Method::parse(template.request().method().as_str());
        above.note(&policy, &facts(template, &policy, method))
    });
    let url = template.request().url();
    let lease = shared
        .clients
        .lease(shared.connectivity.snapshot().path, url);
    let observer = Arc::new(AttemptObserver::new(template.at_once(), None));
    let result = match template.attempt(&observer) {
        None => Err(Failure::without_body()),
        Some(mut request) => {
            let prepared = match &shared.before_attempt {
                Some(hook) => {
                    let key = &shared.policy.key().header;
                    hook::prepare(&**hook, &mut request, key, 1, None).await
                }
                None => Ok(()),
            };
            match prepared {
                Err(failure) => Err(failure),
                Ok(()) => {
                    let head = observer.clone().watch(lease.client.execute(request)).await;
                    head.map_err(|error| Failure::without_head(Some(error), &lease, &observer))
                }
            }
        }
    };
    if let Some(entry) = entry {
        entry.ended(
            result.as_ref().is_err_and(|failure| failure.sent_nothing),
            None,
        );
    }
    result.map_err(|failure| {
        if failure.ended_by_time() {
            shared.clients.suspect(&lease, url, observer.has_answered());
        }
        let sent_nothing = failure.sent_nothing;
        HttpError::new(failure.into(), None, Report::default(), !sent_nothing)
    })
}

fn invalid(error: reqwest::Error) -> HttpError {
    HttpError::new(
        Cause::Invalid(error),
        Some(Reason::Permanent),
        Report::default(),
        false,
    )
}

fn facts(template: &Template, policy: &RetryPolicy, method: Method) -> RequestFacts {
    let headers = template.request().headers();
    // A value that is not text stands as "?": it is not blank, so it counts as a key.
    let lines = |name: &str| -> Vec<&str> {
        let all = headers.get_all(name).iter();
        all.map(|line| line.to_str().unwrap_or("?")).collect()
    };
    let conditions = [IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE];
    RequestFacts {
        has_body: template.has_body(),
        body_replayable: template.is_replayable(),
        ..RequestFacts::read(
            method.name(),
            lines(&policy.key().header),
            conditions.iter().flat_map(|name| lines(name.as_str())),
            lines(CACHE_CONTROL.as_str()),
        )
    }
}

/// A blank key does not count: the server could not recognise the repeat by it, and would act twice.
fn has_key(headers: &HeaderMap, name: &str) -> bool {
    let is_blank = |value: &HeaderValue| value.as_bytes().trim_ascii().is_empty();
    headers.get_all(name).iter().any(|value| !is_blank(value))
}

/// Never overwrites one. Whether it made one.
fn give_key(request: &mut Request, policy: &RetryPolicy) -> bool {
    if has_key(request.headers(), &policy.key().header) {
        return false;
    }
    let Ok(name) = HeaderName::try_from(policy.key().header.as_str()) else {
        return false; // a policy's header name is a valid token
    };
    let key = Uuid::new_v4();
    let value = match policy.key().form {
        KeyForm::Bare => key.to_string(),
        KeyForm::Quoted => format!("\"{key}\""),
    };
    let Ok(value) = HeaderValue::try_from(value) else {
        return false;
    };
    request.headers_mut().insert(name, value);
    true
}
