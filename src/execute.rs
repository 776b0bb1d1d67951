//! The executor: what attempts, waits and obeys, on tokio.
//!
//! No rule about retrying is here. One loop makes an attempt, says what came of it, asks [`decide`](crate::decide), waits for a timer or
//! an edge, asks [`resume`](crate::resume), and begins again; every front end hands it a way to make attempts:
//!
//! - [`Retryable`]: any future, `operation.retry(&policy).await`;
//! - [`batch`](fn@batch): many records, of which only those go again that are worth it;
//! - [`Backoff`]: the same waits for a loop that never ends; [`Scatter`]: a jitter for what has not failed.
//!
//! A [`Connectivity`] is the process's one view of the network; its edges end waits. It has the [`Clock`] that its calls go by:
//! `CLOCK_BOOTTIME` by default, in tests [`TokioClock`]. Dropping a call ends it and what it has in flight; nothing runs
//! in the background. With the feature `tracing` every attempt is a span and every event an event, target `comeback`.
//!
//! One layer acts, the outermost: a call awaited within another call's attempt (an `Executor`'s inside `.retry(..)` or a batch's round) makes
//! one attempt, tells what it sends, stops with [`Attempts`](crate::Reason::Attempts) if it fails, and the outer call decides. A task spawned in an attempt
//! is on its own; see [`Retryable`].
//!
//! Waits need a tokio runtime with time enabled; a call that never waits, and has no limit on an attempt, needs none. The first wait outside one
//! panics, with tokio's own message.
//!
//! In tests under `tokio::time::pause` waits and limits end at once, whatever clock the hub has: a timer that fired is believed. What else takes
//! paused time there, an attempt that sleeps for instance, only a hub that goes by tokio's time counts too, against `max_elapsed` and in reports:
//!
//! ```
//! # use std::time::Duration;
//! use comeback::{Connectivity, Reason, RetryPolicy, Retryable, TokioClock};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
//! let hub = Connectivity::with_clock(TokioClock::new());
//! let fails = async || {
//!     tokio::time::sleep(Duration::from_secs(30)).await;
//!     Err::<(), _>("no answer")
//! };
//! let error = fails.retry(&RetryPolicy::default()).connectivity(&hub).await.unwrap_err(); // at once
//! assert_eq!(error.reason(), Reason::Elapsed); // with the system's clock `Attempts`, after four of them
//! # }
//! ```

// A module knows those above it, not those below.
mod clock;

/// The lock and the counter, named once: the model checker's tests compile `waiters.rs` over theirs.
mod sync {
    pub(super) use std::sync::Mutex;
    pub(super) use std::sync::atomic::{AtomicU32, Ordering};
}
mod waiters;

/// The pure states of the aggregates, named once for the same tests.
mod pure {
    pub(super) use crate::breaker::{Admission, Breaker, Spoken, Ticket, Transition};
    pub(super) use crate::budget::TokenBucket;
    pub(super) use crate::call::Allowed;
    pub(super) use crate::instant::Instant;
    pub(super) use crate::policy::{CircuitBreaker, RetryBudget};
}
use crate::origins;
mod ledger;

mod connectivity;

mod listener;

mod layer;

mod verdict;

mod telemetry;

mod seed;

mod aggregates;

mod session;

mod timer;

mod wait;

mod drive;

mod attempt;

mod operation;

mod hooks;

mod retry_error;

mod future;

mod batch;

mod blocking;

mod backoff;

mod scatter;

#[cfg(feature = "netwatch")]
mod netwatch;

#[cfg(feature = "tower")]
mod tower;

#[cfg(feature = "reqwest")]
mod http;

#[cfg(test)]
mod replay;

pub use aggregates::{Aggregates, AggregatesBuilder, BreakerEvent};
pub use attempt::Attempt;
pub use backoff::Backoff;
pub use batch::{
    Batch, Batched, Batching, Record, RecordError, RecordFailure, Round, RoundOperation, batch,
};
pub use blocking::{RetryBlocking, RetryableBlocking};
pub use clock::{Clock, SystemClock, TokioClock};
pub use connectivity::Connectivity;
pub use future::{Retry, Retryable, Retrying};
pub use hooks::{By, Classify, EveryError, Nobody, Notify, To, When};
#[cfg(feature = "reqwest-middleware")]
pub use http::RetryMiddleware;
#[cfg(feature = "reqwest")]
pub use http::{
    AttemptHead, Executor, ExecutorBuilder, ExecutorError, HttpError, HttpRequest, Reported,
};
pub use listener::{RetryEvent, RetryListener};
#[cfg(feature = "netwatch")]
pub use netwatch::NetworkMonitor;
pub use operation::{ByAttempt, ByItself, Operation};
pub use retry_error::{AnyError, AttemptTimedOut, RetryError};
pub use scatter::Scatter;
#[cfg(feature = "tower")]
pub use tower::{RetryLayer, RetryService};
pub use verdict::Verdict;
