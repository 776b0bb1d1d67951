//! How many rounds may be under way: a sleeping batch stands outside.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The way to a permit, and the permit.
pub(super) struct Gate {
    limit: Arc<Semaphore>,
    state: GateState,
}

enum GateState {
    Outside,
    Queued(Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>),
    /// Without a permit if the semaphore was closed: then there is no limit.
    Inside(#[allow(dead_code)] Option<OwnedSemaphorePermit>), // held, not read
}

impl Gate {
    pub(super) fn new(limit: Arc<Semaphore>) -> Gate {
        Gate {
            limit,
            state: GateState::Outside,
        }
    }

    pub(super) fn poll_enter(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.state {
                GateState::Outside => {
                    let limit = self.limit.clone();
                    let permit = async move { limit.acquire_owned().await.ok() };
                    self.state = GateState::Queued(Box::pin(permit));
                }
                GateState::Queued(permit) => {
                    self.state = GateState::Inside(ready!(permit.as_mut().poll(context)));
                }
                GateState::Inside(_) => return Poll::Ready(()),
            }
        }
    }

    pub(super) fn leave(&mut self) {
        self.state = GateState::Outside;
    }
}
