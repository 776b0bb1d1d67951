//! A wait: until the core says go or stop. Asked again by a timer, at an edge, and whenever anything else wakes the task.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::connectivity::Waiter;
use super::session::{CallSession, NextStep};
use super::timer::Timer;
use crate::event::Events;
use crate::policy::RetryPolicy;

/// Ready with `Go` or `Stop`. `is_ready` is asked before a `Go`; events go to `tell` as they come.
pub(super) fn poll_wait(
    session: &mut CallSession,
    policy: &RetryPolicy,
    waiter: &mut Waiter,
    mut timer: Pin<&mut Timer>,
    context: &mut Context<'_>,
    is_ready: &mut dyn FnMut(&mut Context<'_>) -> bool,
    tell: &mut dyn FnMut(&mut CallSession, Events),
) -> Poll<NextStep> {
    loop {
        // Before the clock is asked: by the clock it may be a little before `ask_at`, and the timer would be set again.
        session.reached(timer.as_mut().fired());
        let network = waiter.connectivity().snapshot();
        let (next, events) = session.woken(policy, network, waiter.connectivity(), &mut || {
            is_ready(context)
        });
        tell(session, events);
        let NextStep::Sleep { ask_at } = next else {
            timer.stop();
            return Poll::Ready(next);
        };
        if waiter.listen(context.waker()).epoch == network.epoch {
            // Else an edge came in between.
            let now = session.now(waiter.connectivity());
            ready!(timer.as_mut().poll_until(ask_at, now, context));
        }
    }
}
