//! A request as Kotlin states it.

use std::sync::Arc;
use std::time::Duration;

use comeback::{Executor, HttpRequest, RetryPolicy};
use reqwest::Method;
use reqwest::header::HeaderValue;

use crate::told::{End, EndKind};

#[derive(Clone, uniffi::Record)]
pub struct Request {
    pub method: String,
    pub url: String,
    /// Names and values by turns.
    pub headers: Vec<String>,
    pub body: Option<Vec<u8>>,
    /// As the core's library compiled it. None: the request goes once.
    pub policy: Option<Vec<u8>>,
    /// The longest the call may take.
    pub timeout: Option<i64>,
    /// Makes an idempotency key if there is none.
    pub make_key: bool,
    /// Reading this many bytes of the body is part of the attempt.
    pub read_up_to: i64,
}

impl Request {
    /// A request that can be sent. `label` finds its way into the call's events.
    pub(crate) fn prepare(
        self,
        executor: &Executor,
        policy: Option<RetryPolicy>,
        label: String,
    ) -> Result<HttpRequest, End> {
        let invalid = |problem: &str| End::of_kind(EndKind::Invalid, problem);
        let method = Method::from_bytes(self.method.as_bytes())
            .map_err(|_| invalid("the request's method is no token"))?;
        let mut request = executor.request(method, self.url.as_str()).label(label);
        if !self.headers.len().is_multiple_of(2) {
            return Err(invalid("a header has a name and a value"));
        }
        for turn in self.headers.chunks_exact(2) {
            // Text beyond ASCII goes as UTF-8.
            let value = HeaderValue::from_bytes(turn[1].as_bytes()).map_err(|_| {
                invalid("a header's value has characters that a header cannot have")
            })?;
            request = request.header(turn[0].as_str(), value);
        }
        if let Some(body) = self.body {
            request = request.body(body);
        }
        if let Some(timeout) = self.timeout {
            request = request.timeout(length(timeout));
        }
        if self.make_key {
            request = request.idempotency_key();
        }
        request = request.read_up_to(u64::try_from(self.read_up_to).unwrap_or(0));
        Ok(match policy {
            Some(policy) => request.policy(Arc::new(policy)),
            None => request.without_retries(),
        })
    }
}

pub(crate) fn length(nanos: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}
