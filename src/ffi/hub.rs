//! The connectivity hub across the boundary: the core's state machine behind a mutex. Its return value is the news.

use std::sync::{Mutex, PoisonError};

use crate::connectivity::{Hub, Network, NetworkState, Snapshot};
use crate::instant::Instant;

/// The core's snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Record)]
pub struct NetworkSnapshot {
    pub state: NetworkState,
    pub since: i64,
    pub epoch: i64,
    pub path: i64,
}

impl From<Snapshot> for NetworkSnapshot {
    fn from(snapshot: Snapshot) -> NetworkSnapshot {
        NetworkSnapshot {
            state: snapshot.state,
            since: snapshot.since.as_nanos(),
            epoch: snapshot.epoch as i64,
            path: snapshot.path as i64,
        }
    }
}

impl From<NetworkSnapshot> for Snapshot {
    fn from(snapshot: NetworkSnapshot) -> Snapshot {
        Snapshot {
            state: snapshot.state,
            since: Instant::from_nanos(snapshot.since),
            epoch: snapshot.epoch as u64,
            path: snapshot.path as u64,
        }
    }
}

/// The one hub of a process. `now` is nanoseconds on the calls' clock.
#[derive(Debug, Default, uniffi::Object)]
pub struct ConnectivityHub {
    hub: Mutex<Hub>,
}

#[uniffi::export]
impl ConnectivityHub {
    #[uniffi::constructor]
    pub fn new() -> ConnectivityHub {
        ConnectivityHub::default()
    }

    pub fn none_at_start(&self, now: i64) -> NetworkSnapshot {
        self.tell(|hub| hub.none_at_start(Instant::from_nanos(now)))
    }

    pub fn available(
        &self,
        now: i64,
        handle: i64,
        blocked: bool,
        suspended: bool,
        validated: bool,
    ) -> NetworkSnapshot {
        let network = Network {
            handle,
            blocked,
            suspended,
            validated,
        };
        self.tell(|hub| hub.available(Instant::from_nanos(now), network))
    }

    pub fn capabilities(
        &self,
        now: i64,
        handle: i64,
        suspended: bool,
        validated: bool,
    ) -> NetworkSnapshot {
        self.tell(|hub| hub.capabilities(Instant::from_nanos(now), handle, suspended, validated))
    }

    pub fn blocked(&self, now: i64, handle: i64, blocked: bool) -> NetworkSnapshot {
        self.tell(|hub| hub.blocked(Instant::from_nanos(now), handle, blocked))
    }

    pub fn lost(&self, now: i64, handle: i64) -> NetworkSnapshot {
        self.tell(|hub| hub.lost(Instant::from_nanos(now), handle))
    }

    pub fn failed(&self, now: i64) -> NetworkSnapshot {
        self.tell(|hub| hub.failed(Instant::from_nanos(now)))
    }

    pub fn deliberate(&self, now: i64, on: bool) -> NetworkSnapshot {
        self.tell(|hub| hub.deliberate(Instant::from_nanos(now), on))
    }

    pub fn restored(&self, now: i64) -> NetworkSnapshot {
        self.tell(|hub| hub.restored(Instant::from_nanos(now)))
    }
}

impl ConnectivityHub {
    /// A hub is valid after every step, so a hub whose lock was poisoned by a panic can still be used.
    fn tell(&self, event: impl FnOnce(&mut Hub) -> Snapshot) -> NetworkSnapshot {
        event(&mut self.hub.lock().unwrap_or_else(PoisonError::into_inner)).into()
    }
}
