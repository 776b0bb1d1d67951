//! Comeback decides whether, when and why a failed request goes again.
//!
//! This crate is the core: pure functions of a policy, a call's state, an attempt's outcome and the signals at that moment. It reads no
//! clock, does no I/O, takes no lock and shares no randomness; a driver attempts, classifies, waits and obeys.
//!
//! ```text
//! app request ─▶ driver ─▶ network
//!                  │ outcome of a failed attempt, signals
//!                  ▼
//!               decide(call, …)     ─▶ Deliver | Sleep(waiting) | Stop(why)
//!               resume(waiting, …)  ─▶ Go(by timer | edge | probe) | Sleep | Stop
//!               interrupt(call, …)  ─▶ Keep | Restart
//! ```
//!
//! Where to begin:
//!
//! - [`RetryPolicy`] is what an app decides; it stands alone too: [`schedule`](RetryPolicy::schedule) prints it,
//!   [`waits`](RetryPolicy::waits) yields what one call would wait.
//! - [`Call`] is the state of one request, a plain value; [`decide`], [`resume`] and [`interrupt`] are the three questions about it.
//! - [`Outcome`] is what an attempt came back with.
//! - [`Hub`] turns the platform's network callbacks into the [`Snapshot`] that comes with every question.
//! - [`Event`]s say what happened; a [`Report`] is a call's events in one value.
//!
//! What those rest on ([`classify`], [`may_repeat`], [`retry_after`], the module [`draw`]) is public, because
//! the stored form of a call depends on it and other languages test against it.
//!
//! There are no default features. `tokio` adds the executor: any future (`operation.retry(&policy).await`), batches, endless loops; see the module
//! `execute`. `reqwest` adds HTTP, `tower` and `reqwest-middleware` adapters, `netwatch` a monitor of a desktop's network, `tracing` spans and
//! events. `uniffi` adds the boundary to Kotlin, which is no API for Rust. Rust 1.85 is enough for all but `uniffi` and
//! `stored`, which need 1.88, and `netwatch`, which needs 1.91.
//!
//! A driver in one page; `attempt` stands for sending the request, the clock for yours:
//!
//! ```
//! use comeback::*;
//!
//! fn run(
//!     policy: &RetryPolicy,
//!     mut hub: impl FnMut() -> Snapshot,
//!     mut clock: impl FnMut() -> Instant,
//!     mut sleep_until: impl FnMut(Instant),
//!     mut attempt: impl FnMut() -> Outcome<'static>,
//! ) -> Option<Reason> {
//!     let seed = 42; // from the operating system
//!     let mut call = Call::begin(RequestFacts::new(Method::Get), seed, clock(), None);
//!     loop {
//!         let noted = hub();
//!         let outcome = attempt();
//!         let signals = Signals { now: clock(), network: hub(), wall_ms: None, allowed: Allowed::ALL };
//!         let mut sleep = match decide(policy, call, &noted, &outcome, &signals).decision {
//!             Decision::Deliver => return None,
//!             Decision::Stop(reason) => return Some(reason),
//!             Decision::Sleep(sleep) => sleep,
//!         };
//!         call = loop {
//!             sleep_until(sleep.ask_at); // or an edge, if earlier
//!             let signals = Signals { now: clock(), network: hub(), wall_ms: None, allowed: Allowed::ALL };
//!             match resume(policy, sleep.waiting, &signals).decision {
//!                 Resumed::Go(go) => break go.call,
//!                 Resumed::Sleep(on) => sleep = on,
//!                 Resumed::Stop(reason) => return Some(reason),
//!             }
//!         };
//!     }
//! }
//!
//! let now = std::cell::Cell::new(Instant::from_nanos(0));
//! let mut outcomes = [Outcome::failure(FailureKind::Reset), Outcome::response(200)].into_iter();
//! let stopped = run(
//!     &RetryPolicy::read(),
//!     || Snapshot::UNKNOWN,
//!     || now.get(),
//!     |until| now.set(until),
//!     || outcomes.next().unwrap(),
//! );
//! assert_eq!(stopped, None);
//! ```
//!
#![doc = include_str!("../docs/glossary.md")]
#![cfg_attr(not(feature = "uniffi"), forbid(unsafe_code))]

#[cfg(test)]
extern crate self as comeback; // the vectors' reader, which `tests/` shares, names the crate so

// A module knows those above it, not those below.
mod instant;

mod policy;

pub mod draw;

mod backoff;
mod loopback;
mod request;
mod retry_after;

mod outcome;

mod connectivity;

mod event;

mod breaker;
mod budget;
#[cfg(any(test, feature = "tokio"))]
mod origins;

mod call;

mod decide;

mod resume;

mod interrupt;

#[cfg(feature = "tokio")]
pub mod execute;

#[cfg(feature = "stored")]
#[doc(hidden)]
pub mod stored;

#[cfg(feature = "uniffi")]
#[doc(hidden)]
pub mod ffi;

pub use backoff::{Schedule, Waits};
pub use breaker::{Admission, Breaker, Spoken, Ticket, Transition};
pub use budget::{TokenBucket, costs_a_token};
pub use call::{Allowed, Call, Limit, Signals, Sleep, Step, Waiting, first_limit};
pub use connectivity::{Hub, Network, NetworkState, Snapshot};
pub use decide::{Decision, decide};
pub use event::{
    CancelKind, End, Event, Events, FailedAttempt, IntoEvents, PlannedWait, Reason, Report,
    ResumedWait, WaitReason, WokenBy,
};
#[cfg(feature = "netwatch")]
pub use execute::NetworkMonitor;
#[cfg(feature = "reqwest-middleware")]
pub use execute::RetryMiddleware;
#[cfg(feature = "tokio")]
pub use execute::{
    Aggregates, AggregatesBuilder, AnyError, Attempt, AttemptTimedOut, Backoff, Batch, Batched,
    BreakerEvent, Clock, Connectivity, Record, RecordError, RecordFailure, Retry, RetryBlocking,
    RetryError, RetryEvent, RetryListener, Retryable, RetryableBlocking, Round, Scatter,
    SystemClock, TokioClock, Verdict, batch,
};
#[cfg(feature = "reqwest")]
pub use execute::{
    AttemptHead, Executor, ExecutorBuilder, ExecutorError, HttpError, HttpRequest, Reported,
};
#[cfg(feature = "tower")]
pub use execute::{RetryLayer, RetryService};
pub use instant::Instant;
pub use interrupt::{Interruption, interrupt};
pub use loopback::is_loopback;
pub use outcome::{Evidence, FailureKind, InnerRequest, Outcome, OutcomeClass, What, classify};
#[cfg(feature = "uniffi")]
pub use policy::ClientResends;
pub use policy::{
    CircuitBreaker, CircuitBreakerBuilder, Forgiven, Forgiving, Jitter, KeyForm, KeyRule, Offline,
    PolicyBuilder, PolicyError, Repeat, RetryBudget, RetryPolicy, Wake, Window,
};
pub use request::{DriverFacts, Method, RequestFacts, may_repeat};
pub use resume::{Go, Resumed, resume};
pub use retry_after::retry_after;

#[cfg(feature = "uniffi")]
uniffi::setup_scaffolding!();

/// The Rust blocks of README and docs, compiled and run as examples: `cargo test --doc --all-features`.
#[cfg(all(doctest, feature = "reqwest-middleware", feature = "netwatch"))]
mod pages {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../docs/rust.md")]
    mod rust {}
    #[doc = include_str!("../docs/policies.md")]
    mod policies {}
    #[doc = include_str!("../docs/testing.md")]
    mod testing {}
}
