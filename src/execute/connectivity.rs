//! One hub for many calls: the pure state machine with a lock, a clock and waiters.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, LazyLock, OnceLock};
use std::task::{Poll, Waker};

use crossbeam_utils::atomic::AtomicCell;

use super::clock::{Clock, SystemClock};
use super::waiters::{Waiters, WakerSlot};
use crate::connectivity::{Hub, Network, Snapshot};
use crate::instant::Instant;
use crate::policy::{Offline, RetryPolicy};

/// What is known of the network, shared by all calls. Tell it what the platform says, and the calls that wait on it wake at once. Cheap to clone; all
/// clones share one state.
///
/// Make one per process. Without a monitor tell it nothing, or [`restored`](Connectivity::restored) when you know that the network is back; otherwise
/// only timers end waits.
///
/// ```
/// use comeback::{Connectivity, Network, NetworkState};
///
/// let hub = Connectivity::new();
/// hub.available(Network::usable(7));
/// hub.lost(7);
/// assert_eq!(hub.snapshot().state, NetworkState::Offline);
/// hub.restored(); // ends pending waits
/// ```
#[derive(Clone)]
pub struct Connectivity(Arc<Shared>);

struct Shared {
    hub: Waiters<Hub>,
    /// The hub's newest snapshot, to be read without its lock: all woken calls read it at once.
    latest: AtomicCell<Snapshot>,
    clock: Arc<dyn Clock>,
    with_loopback: bool,
    /// The same clock, and nothing is ever told. Made at the first need.
    unknown: OnceLock<Connectivity>,
}

impl Connectivity {
    /// Nothing is known yet; the clock is the system's, which `tokio::time::pause` does not stop.
    pub fn new() -> Connectivity {
        Connectivity::with_clock(SystemClock::new())
    }

    /// The same with another clock, which all calls on this hub use. In tests that pause time use [`TokioClock`](crate::TokioClock), so that everything that
    /// takes paused time counts.
    pub fn with_clock(clock: impl Clock) -> Connectivity {
        Connectivity::of(Arc::new(clock), false)
    }

    fn of(clock: Arc<dyn Clock>, with_loopback: bool) -> Connectivity {
        Connectivity(Arc::new(Shared {
            hub: Waiters::new(Hub::new()),
            latest: AtomicCell::new(Snapshot::UNKNOWN),
            clock,
            with_loopback,
            unknown: OnceLock::new(),
        }))
    }

    /// The same with the same clock, and it applies to loopback hosts too; nothing is known yet. For a test whose server is on this machine: the test says
    /// what the network between the two does.
    ///
    /// Otherwise a call to a loopback host knows nothing of the network, as if its policy said [`Offline::Ignore`].
    pub fn with_loopback(self) -> Connectivity {
        Connectivity::of(self.0.clock.clone(), true)
    }

    /// What a call with this policy knows of the network: nothing if the policy says `ignore`, or if the call goes to a loopback host.
    pub(crate) fn known_to(&self, policy: &RetryPolicy, is_loopback: bool) -> Connectivity {
        let concerns = !is_loopback || self.0.with_loopback;
        if concerns && policy.offline != Offline::Ignore {
            return self.clone();
        }
        let unknown = &self.0.unknown;
        unknown
            .get_or_init(|| Connectivity::of(self.0.clock.clone(), false))
            .clone()
    }

    /// For calls without a hub: nothing is ever known.
    pub(crate) fn unknown() -> Connectivity {
        static UNKNOWN: LazyLock<Connectivity> = LazyLock::new(Connectivity::new);
        UNKNOWN.clone()
    }

    /// The network now.
    pub fn snapshot(&self) -> Snapshot {
        self.0.latest.load()
    }

    /// Now, on this hub's clock.
    pub fn now(&self) -> Instant {
        self.0.clock.now()
    }

    /// The wall clock, for HTTP dates only.
    pub fn wall_ms(&self) -> Option<i64> {
        self.0.clock.wall_ms()
    }

    /// See [`Hub::none_at_start`].
    pub fn none_at_start(&self) -> Snapshot {
        self.tell(Hub::none_at_start)
    }

    /// See [`Hub::available`].
    pub fn available(&self, network: Network) -> Snapshot {
        self.tell(|hub, now| hub.available(now, network))
    }

    /// See [`Hub::capabilities`].
    pub fn capabilities(&self, handle: i64, suspended: bool, validated: bool) -> Snapshot {
        self.tell(|hub, now| hub.capabilities(now, handle, suspended, validated))
    }

    /// See [`Hub::blocked`].
    pub fn blocked(&self, handle: i64, blocked: bool) -> Snapshot {
        self.tell(|hub, now| hub.blocked(now, handle, blocked))
    }

    /// See [`Hub::lost`].
    pub fn lost(&self, handle: i64) -> Snapshot {
        self.tell(|hub, now| hub.lost(now, handle))
    }

    /// See [`Hub::failed`].
    pub fn failed(&self) -> Snapshot {
        self.tell(Hub::failed)
    }

    /// See [`Hub::deliberate`].
    pub fn deliberate(&self, on: bool) -> Snapshot {
        self.tell(|hub, now| hub.deliberate(now, on))
    }

    /// See [`Hub::restored`].
    pub fn restored(&self) -> Snapshot {
        self.tell(Hub::restored)
    }

    /// See [`Hub::follow`].
    pub fn follow(&self, snapshot: Snapshot) -> Snapshot {
        self.tell(|hub, _| hub.follow(snapshot))
    }

    /// Waits for the first edge after `seen`, the epoch of an earlier snapshot; ready at once if there has been one. Dropping it leaves nothing behind.
    pub async fn edge_after(&self, seen: u64) -> Snapshot {
        let mut waiter = Waiter::new(self.clone());
        poll_fn(|context| {
            let snapshot = waiter.listen(context.waker());
            if snapshot.epoch == seen {
                Poll::Pending
            } else {
                Poll::Ready(snapshot)
            }
        })
        .await
    }

    /// How many waits and attempts are listening; a measure for tests and leaks.
    pub fn waiting(&self) -> usize {
        self.0.hub.count()
    }

    /// Wakes waiters only at an edge, and when a loss becomes older than it was. They learn about other changes when they next ask.
    fn tell(&self, event: impl FnOnce(&mut Hub, Instant) -> Snapshot) -> Snapshot {
        self.0.hub.change(|hub| {
            let before = hub.snapshot();
            let after = event(hub, self.0.clock.now());
            self.0.latest.store(after);
            (
                after,
                after.epoch != before.epoch || after.since < before.since,
            )
        })
    }
}

impl Default for Connectivity {
    fn default() -> Connectivity {
        Connectivity::new()
    }
}

impl fmt::Debug for Connectivity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Connectivity")
            .field("snapshot", &self.snapshot())
            .field("waiting", &self.waiting())
            .field("clock", &self.0.clock)
            .finish()
    }
}

/// One who listens to a hub, until dropped.
pub(super) struct Waiter {
    connectivity: Connectivity,
    slot: WakerSlot,
}

impl Waiter {
    pub(super) fn new(connectivity: Connectivity) -> Waiter {
        Waiter {
            connectivity,
            slot: WakerSlot::default(),
        }
    }

    /// The snapshot; whatever edge comes after it wakes `waker`.
    pub(super) fn listen(&mut self, waker: &Waker) -> Snapshot {
        let hub = &self.connectivity.0.hub;
        hub.listen(&mut self.slot, waker, Hub::snapshot)
    }

    pub(super) fn leave(&mut self) {
        self.connectivity.0.hub.leave(&mut self.slot);
    }

    pub(super) fn connectivity(&self) -> &Connectivity {
        &self.connectivity
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::{Context, Wake};

    use super::*;

    struct Panics;

    impl Wake for Panics {
        #[allow(clippy::panic)] // that is what it is for
        fn wake(self: Arc<Self>) {
            panic!("a waker of somebody's own executor");
        }
    }

    #[derive(Default)]
    struct Counts(AtomicU32);

    impl Wake for Counts {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_waker_that_panics_takes_nobody_else_s_wake() {
        let hub = Connectivity::new();
        let (mut first, mut second) = (Box::pin(hub.edge_after(0)), Box::pin(hub.edge_after(0)));
        let panics = Waker::from(Arc::new(Panics));
        let counts = Arc::new(Counts::default());
        let counting = Waker::from(counts.clone());
        assert!(
            first
                .as_mut()
                .poll(&mut Context::from_waker(&panics))
                .is_pending()
        );
        assert!(
            second
                .as_mut()
                .poll(&mut Context::from_waker(&counting))
                .is_pending()
        );

        assert_eq!(hub.restored().epoch, 1);

        assert_eq!(counts.0.load(Ordering::Relaxed), 1);
        assert_eq!(hub.waiting(), 0);
    }
}
