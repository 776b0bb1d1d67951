//! What the tests share: executors that do not dawdle, and what they hear.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use comeback::{
    Event, Executor, ExecutorBuilder, FailureKind, HttpError, Jitter, PolicyBuilder, Reason,
    Reported, RetryEvent, RetryPolicy, What,
};
use tokio::sync::watch;

pub(crate) const KEY: &str = "idempotency-key";

/// The default policy, but for waits of a millisecond: real sockets take real time.
pub(crate) fn soon() -> PolicyBuilder {
    RetryPolicy::builder()
        .base(Duration::from_millis(1))
        .cap(Duration::from_millis(1))
}

/// The same without jitter: each wait is this long.
pub(crate) fn every(wait: Duration) -> PolicyBuilder {
    RetryPolicy::builder()
        .base(wait)
        .cap(wait)
        .jitter(Jitter::None)
}

pub(crate) fn executor(policy: PolicyBuilder) -> Executor {
    with(policy, |builder| builder)
}

pub(crate) fn with(
    policy: PolicyBuilder,
    settings: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder,
) -> Executor {
    settings(Executor::builder().policy(policy.build().unwrap()))
        .build()
        .unwrap()
}

/// Plain HTTP/2, without a handshake that chooses it.
pub(crate) fn http2(builder: ExecutorBuilder) -> ExecutorBuilder {
    builder.client(|client| client.http2_prior_knowledge())
}

/// The events of all calls, in order.
#[derive(Clone)]
pub(crate) struct Log(Arc<Mutex<Vec<Event>>>, Arc<watch::Sender<usize>>);

impl Log {
    pub(crate) fn new() -> Log {
        Log(Arc::default(), Arc::new(watch::Sender::new(0)))
    }

    pub(crate) fn listener(&self) -> impl Fn(&RetryEvent<'_>) + Send + Sync + 'static {
        let log = self.clone();
        move |heard| {
            let count = {
                let mut events = log.0.lock().unwrap();
                events.push(heard.event);
                events.len()
            };
            log.1.send_replace(count);
        }
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    /// Returns once some event is like that.
    pub(crate) async fn heard(&self, wanted: impl Fn(&Event) -> bool) {
        let mut count = self.1.subscribe();
        while !self.events().iter().any(&wanted) {
            count.changed().await.unwrap();
        }
    }

    /// Returns once a wait was planned.
    pub(crate) async fn waits(&self) {
        self.heard(|event| matches!(event, Event::WaitPlanned(_)))
            .await;
    }

    /// Statuses and kinds of the failed attempts, in order.
    pub(crate) fn failures(&self) -> Vec<What> {
        self.events()
            .iter()
            .filter_map(|event| match event {
                Event::AttemptFailed { what, .. } => Some(*what),
                _ => None,
            })
            .collect()
    }
}

pub(crate) fn failed(kind: FailureKind) -> What {
    What::Failure(kind)
}

/// The status, or why there is none.
pub(crate) fn outcome(result: &Result<reqwest::Response, HttpError>) -> String {
    match result {
        Ok(response) => match response.retry_report() {
            None => response.status().as_u16().to_string(),
            Some(report) => format!("{} after {report:?}", response.status().as_u16()),
        },
        Err(error) => format!("{error}: {error:?}"),
    }
}

/// Why the call behind this result stopped; `None` if it has its answer.
pub(crate) fn reason(result: &Result<reqwest::Response, HttpError>) -> Option<Reason> {
    match result {
        Ok(response) => response.retry_report()?.end?.reason,
        Err(error) => error.reason(),
    }
}
