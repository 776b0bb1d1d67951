//! A timer on the call's clock. Tokio's timers stand still while the device sleeps, so a call that is woken for any other reason asks the clock too. When a
//! timer fires, its time has come: tokio's timers never fire early, and in paused time only they know how late it is.

use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::time::Sleep;

use crate::instant::Instant;

/// Not armed: nobody waits for an instant that long ago.
const NEVER: Instant = Instant::LONG_AGO;

pin_project! {
    /// It is not registered with the runtime before it has to wait.
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

    /// The instant it was set to, if it has fired since it was last asked. It is at least that late, whatever the clock says.
    pub(super) fn fired(self: Pin<&mut Self>) -> Option<Instant> {
        let this = self.project();
        let is_over = |sleep: Pin<&mut Sleep>| sleep.is_elapsed();
        if *this.armed_for == NEVER || !this.sleep.as_pin_mut().is_some_and(is_over) {
            return None;
        }
        Some(std::mem::replace(this.armed_for, NEVER))
    }

    /// Ready at `until`, at once if that is not after `now`.
    pub(super) fn poll_until(
        self: Pin<&mut Self>,
        until: Instant,
        now: Instant,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let mut this = self.project();
        let left = until.saturating_since(now);
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
        sleep.poll(context)
    }

    /// Removes it from the runtime.
    pub(super) fn stop(self: Pin<&mut Self>) {
        let mut this = self.project();
        this.sleep.set(None);
        *this.armed_for = NEVER;
    }
}
