//! What an app does before each attempt: sign it, give it a fresh token, stamp its number.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
use reqwest::{Method, Request, Url};

use super::super::retry_error::RetryError;
use super::error::HttpError;
use super::failure::Failure;
use super::kind::kind_of_foreign;
use crate::outcome::FailureKind;

pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// Makes the headers of an attempt.
pub(super) type BeforeAttempt = dyn Fn(AttemptHead) -> Pin<Box<dyn Future<Output = Result<HeaderMap, BoxError>> + Send>>
    + Send
    + Sync;

/// An attempt that is about to be made: see [`ExecutorBuilder::before_attempt`](super::ExecutorBuilder::before_attempt).
pub struct AttemptHead {
    request: Request,
    number: u32,
}

impl AttemptHead {
    /// The attempt's number, from 1. Attempts that were begun anew are numbered too.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The method.
    pub fn method(&self) -> &Method {
        self.request.method()
    }

    /// The address.
    pub fn url(&self) -> &Url {
        self.request.url()
    }

    /// The headers so far, an idempotency key that was made included.
    pub fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    /// The body's bytes; `None` without a body, and of a stream.
    pub fn body(&self) -> Option<&[u8]> {
        self.request.body()?.as_bytes()
    }
}

impl fmt::Debug for AttemptHead {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AttemptHead")
            .field("number", &self.number)
            .field("method", self.method())
            .finish_non_exhaustive()
    }
}

/// Asks the hook and sets its headers in `request`. No part of the request is out yet, so a hook that fails is an attempt that sent nothing of it.
///
/// What decides whether the request may go again is not the hook's: a key that it makes would differ from attempt to attempt, and the call's facts know
/// nothing of a condition that it adds. Such headers are left out.
pub(super) async fn prepare(
    hook: &BeforeAttempt,
    request: &mut Request,
    key_header: &str,
    number: u32,
    limit: Option<Duration>,
) -> Result<(), Failure> {
    let mut head = Request::new(request.method().clone(), request.url().clone());
    head.headers_mut().clone_from(request.headers());
    if let Some(bytes) = request.body().and_then(|body| body.as_bytes()) {
        *head.body_mut() = Some(bytes.to_vec().into());
    }
    let asked = hook(AttemptHead {
        request: head,
        number,
    });
    let made = match limit {
        None => asked.await,
        Some(limit) => match tokio::time::timeout(limit, asked).await {
            Ok(made) => made,
            Err(_) => return Err(Failure::unsent(FailureKind::AttemptTimeout, None)),
        },
    };
    let mut made = made.map_err(|error| Failure::unsent(kind_of(&*error), Some(error)))?;
    for name in [IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE] {
        made.remove(name);
    }
    made.remove(key_header);
    for name in made.keys() {
        request.headers_mut().remove(name);
    }
    for (name, value) in &made {
        let name: HeaderName = name.clone();
        request.headers_mut().append(name, value.clone());
    }
    Ok(())
}

/// The kind of a hook's error: that of a request of the hook's own, or of an I/O error. Only the app knows what other types mean.
pub(super) fn kind_of(error: &(dyn Error + 'static)) -> FailureKind {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let stopped = error.downcast_ref::<RetryError<HttpError>>();
        let http = error.downcast_ref().or(stopped.and_then(RetryError::last));
        if let Some(http) = http {
            return HttpError::kind(http).unwrap_or(FailureKind::OtherIo);
        }
        if let Some(kind) = kind_of_foreign(error) {
            return kind;
        }
        cause = error.source();
    }
    FailureKind::Unlisted
}
