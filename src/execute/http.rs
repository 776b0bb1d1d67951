//! HTTP over reqwest: attempts, their limits, what they came to. Retrying is `drive`'s and the core's.

// A module knows those above it, not those below.
mod observer;

mod kind;

mod client;

mod body;

mod answer;

mod error;

mod failure;

mod hook;

mod span;

mod spec;

mod shared;

mod attempt;

mod verdict;

mod call;

mod request;

mod executor;

#[cfg(feature = "reqwest-middleware")]
mod middleware;

pub use error::{HttpError, Reported};
pub use executor::{Executor, ExecutorBuilder, ExecutorError};
pub use hook::AttemptHead;
#[cfg(feature = "reqwest-middleware")]
pub use middleware::RetryMiddleware;
pub use request::HttpRequest;
