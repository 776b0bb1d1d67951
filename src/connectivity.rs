//! What is known of the network: platform callbacks in, one snapshot out.
//!
//! The hub is a pure state machine. Its owner hands it one event at a time, and each new snapshot to those who wait. A waiter compares epochs
//! instead of counting notifications, so no edge is lost.
//!
//! ```
//! use comeback::{Hub, Instant, Network, NetworkState};
//!
//! let mut hub = Hub::new();
//! hub.available(Instant::from_nanos(1), Network::usable(7));
//! hub.lost(Instant::from_nanos(2), 7);
//! let before = hub.snapshot();
//! assert_eq!(before.state, NetworkState::Offline);
//! let after = hub.available(Instant::from_nanos(3), Network::usable(8));
//! assert_eq!(after.epoch, before.epoch + 1); // the edge that ends waits
//! ```

use serde::{Deserialize, Serialize};

use crate::instant::Instant;

/// Whether there is a network to send on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "uniffi", derive(uniffi::Enum))]
#[serde(rename_all = "snake_case")]
pub enum NetworkState {
    /// Nothing is known. This counts as online.
    #[default]
    Unknown,
    /// There is no network.
    Offline,
    /// There is a network, but it is blocked for this app, or suspended, as in a tunnel.
    Blocked,
    /// There is a usable network.
    Online,
}

/// What is known of the network at one moment; an immutable value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Snapshot {
    /// The state.
    pub state: NetworkState,
    /// Since when the state holds. A change between offline and blocked leaves it as it is: both are one loss.
    pub since: Instant,
    /// Counts the edges.
    pub epoch: u64,
    /// Counts the edges after which old connections are of no use.
    pub path: u64,
}

impl Snapshot {
    /// Before anything is known.
    pub const UNKNOWN: Snapshot = Snapshot {
        state: NetworkState::Unknown,
        since: Instant::LONG_AGO,
        epoch: 0,
        path: 0,
    };

    /// Whether the network is known to be away: offline or blocked.
    #[inline]
    pub fn is_absent(&self) -> bool {
        matches!(self.state, NetworkState::Offline | NetworkState::Blocked)
    }
}

impl Default for Snapshot {
    fn default() -> Snapshot {
        Snapshot::UNKNOWN
    }
}

/// A network as the platform describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    /// The platform's number for this network. It only tells networks apart.
    pub handle: i64,
    /// Blocked for this app.
    pub blocked: bool,
    /// Suspended: there, but nothing gets through.
    pub suspended: bool,
    /// The platform has seen it reach the internet. That ends waits, but nothing waits for it.
    pub validated: bool,
}

impl Network {
    /// A network that works and is not validated yet.
    pub const fn usable(handle: i64) -> Network {
        Network {
            handle,
            blocked: false,
            suspended: false,
            validated: false,
        }
    }

    fn is_usable(&self) -> bool {
        !(self.blocked || self.suspended)
    }
}

/// Turns the platform's callbacks for its default network into [`Snapshot`]s. Every event returns the snapshot after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hub {
    snapshot: Snapshot,
    default: Option<Network>,
    /// The user switched the network off.
    is_deliberate: bool,
}

/// Whether an event is an edge, and of which kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    None,
    Restored,
    /// Another network took the place of a known one.
    Replaced,
}

impl Hub {
    /// A hub that knows nothing.
    pub fn new() -> Hub {
        Hub::default()
    }

    /// The network now.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot
    }

    /// The monitor asked once after it had registered, and there is no default network: offline since long ago.
    /// Ignored once the state is known.
    pub fn none_at_start(&mut self, _now: Instant) -> Snapshot {
        if self.default.is_none() && self.snapshot.state == NetworkState::Unknown {
            self.snapshot.state = NetworkState::Offline;
            self.snapshot.since = Instant::LONG_AGO;
        }
        self.snapshot
    }

    /// A network became the default network, or the default network has new properties.
    pub fn available(&mut self, now: Instant, network: Network) -> Snapshot {
        match self.default {
            Some(known) if known.handle == network.handle => self.change(now, known, network),
            known => {
                self.default = Some(network);
                let edge = match (network.is_usable(), known) {
                    (false, _) => Edge::None,
                    (true, None) => Edge::Restored,
                    (true, Some(_)) => Edge::Replaced,
                };
                self.settle(now, state_on(&network), edge)
            }
        }
    }

    /// The default network's capabilities changed. Ignored for any other network.
    pub fn capabilities(
        &mut self,
        now: Instant,
        handle: i64,
        suspended: bool,
        validated: bool,
    ) -> Snapshot {
        self.change_default(now, handle, |network| {
            network.suspended = suspended;
            network.validated = validated;
        })
    }

    /// The default network was blocked or unblocked for this app. Ignored for any other network.
    pub fn blocked(&mut self, now: Instant, handle: i64, blocked: bool) -> Snapshot {
        self.change_default(now, handle, |network| network.blocked = blocked)
    }

    /// The default network was lost. A late loss of another network changes nothing.
    pub fn lost(&mut self, now: Instant, handle: i64) -> Snapshot {
        if self.default.is_some_and(|network| network.handle == handle) {
            self.default = None;
            self.settle(now, NetworkState::Offline, Edge::None);
        }
        self.snapshot
    }

    /// The monitor failed or went away: from now on nothing is known. It is an edge if the state was offline or blocked.
    pub fn failed(&mut self, now: Instant) -> Snapshot {
        self.default = None;
        let edge = if self.snapshot.is_absent() {
            Edge::Restored
        } else {
            Edge::None
        };
        self.settle(now, NetworkState::Unknown, edge)
    }

    /// The user switched the network off (airplane mode), or on again. No edge. While `on`, an offline state counts as long ago, whenever it
    /// began. When it ends while still offline, the loss begins now. Telling it twice changes nothing.
    pub fn deliberate(&mut self, now: Instant, on: bool) -> Snapshot {
        if on != self.is_deliberate {
            self.is_deliberate = on;
            if self.snapshot.state == NetworkState::Offline {
                self.snapshot.since = if on { Instant::LONG_AGO } else { now };
            }
        }
        self.snapshot
    }

    /// The caller knows that the network works again. Always an edge. Offline and blocked become online; unknown stays unknown.
    pub fn restored(&mut self, now: Instant) -> Snapshot {
        let state = match self.snapshot.state {
            NetworkState::Offline | NetworkState::Blocked => NetworkState::Online,
            other => other,
        };
        self.settle(now, state, Edge::Restored)
    }

    /// Takes over a snapshot of the process's hub, if that is in another library. An older snapshot is ignored: epoch and path only grow.
    pub fn follow(&mut self, snapshot: Snapshot) -> Snapshot {
        if snapshot.epoch >= self.snapshot.epoch && snapshot.path >= self.snapshot.path {
            self.snapshot = snapshot;
        }
        self.snapshot
    }

    fn change_default(
        &mut self,
        now: Instant,
        handle: i64,
        change: impl FnOnce(&mut Network),
    ) -> Snapshot {
        match self.default {
            Some(known) if known.handle == handle => {
                let mut network = known;
                change(&mut network);
                self.change(now, known, network)
            }
            _ => self.snapshot,
        }
    }

    fn change(&mut self, now: Instant, known: Network, network: Network) -> Snapshot {
        self.default = Some(network);
        let edge_if = |edge: bool| if edge { Edge::Restored } else { Edge::None };
        if network.is_usable() != known.is_usable() {
            self.settle(now, state_on(&network), edge_if(network.is_usable()))
        } else {
            let validated = network.is_usable() && network.validated && !known.validated;
            self.settle(now, self.snapshot.state, edge_if(validated))
        }
    }

    fn settle(&mut self, now: Instant, state: NetworkState, edge: Edge) -> Snapshot {
        let before = self.snapshot;
        let after = &mut self.snapshot;
        after.state = state;
        if state != before.state && !(before.is_absent() && after.is_absent()) {
            after.since = now;
        }
        if state == NetworkState::Offline && self.is_deliberate {
            after.since = Instant::LONG_AGO;
        }
        if edge != Edge::None {
            after.epoch += 1;
            let replaced = edge == Edge::Replaced || before.is_absent();
            if state != NetworkState::Unknown && replaced {
                after.path += 1;
            }
        }
        *after
    }
}

fn state_on(network: &Network) -> NetworkState {
    if network.is_usable() {
        NetworkState::Online
    } else {
        NetworkState::Blocked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_that_follows_another_never_goes_back() {
        let snapshot = |epoch, path| Snapshot {
            state: NetworkState::Online,
            since: Instant::LONG_AGO,
            epoch,
            path,
        };
        let mut hub = Hub::new();
        assert_eq!(hub.follow(snapshot(3, 1)), snapshot(3, 1));
        assert_eq!(hub.follow(snapshot(2, 1)), snapshot(3, 1));
        assert_eq!(hub.follow(snapshot(3, 0)), snapshot(3, 1));
        assert_eq!(hub.follow(snapshot(3, 2)).path, 2);
    }
}
