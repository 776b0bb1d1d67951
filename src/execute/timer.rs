//! A timer that asks its clock: tokio's timers stand still while the device sleeps, and round up to milliseconds.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::time::Sleep;

use super::connectivity::Connectivity;
use crate::instant::Instant;

/// Nobody waits for an instant that long past.
const NEVER: Instant = Instant::LONG_AGO;

pin_project! {
    /// Nothing of it is with the runtime before it has to wait.
    pub(super) struct Timer {
        #[pin]
        sleep: Option<Sleep>,
        armed_for: Instant,
    }
}

impl Timer {
    pub(super) fn new() -> Timer {
        Timer {
            sleep: None,
            armed_for: NEVER,
        }
    }

    /// Ready at `until`, at once if that is past.
    pub(super) fn poll_until(
        self: Pin<&mut Self>,
        until: Instant,
        connectivity: &Connectivity,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let mut this = self.project();
        loop {
            let left = until.saturating_since(connectivity.now());
            if left.is_zero() {
                return Poll::Ready(());
            }
            if *this.armed_for != until {
                match this.sleep.as_mut().as_pin_mut() {
                    Some(sleep) => sleep.reset(tokio::time::Instant::now() + left),
                    None => this.sleep.set(Some(tokio::time::sleep(left))),
                }
                *this.armed_for = until;
            }
            let Some(sleep) = this.sleep.as_mut().as_pin_mut() else {
                return Poll::Pending; // it was set above
            };
            ready!(sleep.poll(context));
            *this.armed_for = NEVER; // fired: is it really time?
        }
    }

    /// Takes it from the runtime.
    pub(super) fn stop(self: Pin<&mut Self>) {
        let mut this = self.project();
        this.sleep.set(None);
        *this.armed_for = NEVER;
    }
}
