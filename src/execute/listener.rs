//! Who hears the events of calls.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::event::Event;

/// An event with the call it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryEvent<'a> {
    /// The call's number in this process, from 1.
    pub call_id: u64,
    /// The app's own name for the call.
    pub label: Option<&'a str>,
    /// What happened.
    pub event: Event,
}

/// Hears every event of every call, in order per call, on the task that drives it. It must not block. If it panics, the panic goes no
/// further.
///
/// Any `Fn(&RetryEvent<'_>)` is one.
pub trait RetryListener: Send + Sync {
    /// One event.
    fn on_event(&self, event: &RetryEvent<'_>);
}

impl<F: Fn(&RetryEvent<'_>) + Send + Sync> RetryListener for F {
    fn on_event(&self, event: &RetryEvent<'_>) {
        self(event);
    }
}

/// Runs the app's code. Its panic becomes an `Err`; only the panic hook's own message is seen.
pub(super) fn contained<T>(hook: impl FnOnce() -> T) -> Result<T, ()> {
    catch_unwind(AssertUnwindSafe(hook)).map_err(drop)
}
