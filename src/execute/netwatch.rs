//! The default route of a desktop or server, told to the hub (feature `netwatch`).

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use n0_watcher::Watcher;
use netwatch::interfaces::{IpNet, State};
use netwatch::netmon::Monitor;
use tokio::task::JoinHandle;

use super::connectivity::Connectivity;
use crate::connectivity::Network;

/// Tells a hub of this machine's default network, until it is dropped: on Linux, macOS and Windows, by the crate `netwatch`.
///
/// ```no_run
/// use comeback::{Connectivity, NetworkMonitor};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// let hub = Connectivity::new();
/// let monitor = NetworkMonitor::start(&hub).await?; // keep it as long as the hub
/// # drop(monitor);
/// # Ok(())
/// # }
/// ```
///
/// - The machine is online while an interface that is up has the default route and an address beyond its own link. Another interface, or the same one
///   with none of its networks left, is another network: waits end and attempts that may begin anew do.
/// - Changes are told a quarter of a second after the last of them. Nothing is known of a network that is there and leads nowhere.
/// - A machine without a default route counts as offline. Calls within its own network then want a policy with `offline = ignore`.
/// - A static configuration on Linux keeps its route when the cable is pulled; that is not seen.
///
/// Dropped, or if the platform tells nothing more, the network is unknown again: only timers end waits, and nothing is parked.
#[derive(Debug)]
pub struct NetworkMonitor {
    hub: Connectivity,
    task: JoinHandle<()>,
}

impl NetworkMonitor {
    /// Begins, on a task of the current tokio runtime. The hub knows the network when it returns.
    ///
    /// # Errors
    /// If the platform refuses to tell of its network's changes. The hub is left as it is.
    pub async fn start(hub: &Connectivity) -> io::Result<NetworkMonitor> {
        let monitor = Monitor::new().await;
        let monitor = monitor.map_err(|error| io::Error::other(error.to_string()))?;
        let mut states = monitor.interface_state();
        let mut seen = Seen::default();
        seen.see(Route::of(&states.get()), hub);
        let told = hub.clone();
        let task = tokio::spawn(async move {
            while let Ok(state) = states.updated().await {
                seen.see(Route::of(&state), &told);
            }
            drop(monitor); // it tells for as long as it lives
            told.failed();
        });
        Ok(NetworkMonitor {
            hub: hub.clone(),
            task,
        })
    }
}

impl Drop for NetworkMonitor {
    fn drop(&mut self) {
        self.task.abort();
        self.hub.failed();
    }
}

/// What the default route leads over.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Route {
    interface: String,
    /// The networks of its addresses, with the lengths of their prefixes.
    networks: BTreeSet<(IpAddr, u8)>,
}

impl Route {
    /// `None`: there is no usable one.
    fn of(state: &State) -> Option<Route> {
        let interface = state.default_route_interface.clone()?;
        let found = state.interfaces.get(&interface)?;
        let networks: BTreeSet<_> = found.addrs().filter_map(network_of).collect();
        (found.is_up() && !networks.is_empty()).then_some(Route {
            interface,
            networks,
        })
    }

    /// An address more, or one less, does not make it another network.
    fn is_same_as(&self, other: &Route) -> bool {
        self.interface == other.interface && !self.networks.is_disjoint(&other.networks)
    }
}

/// The network of an address that leads beyond its link.
fn network_of(address: IpNet) -> Option<(IpAddr, u8)> {
    match address {
        IpNet::V4(net) => {
            let is_local = net.addr().is_loopback() || net.addr().is_link_local();
            (!is_local).then(|| (net.network().into(), net.prefix_len()))
        }
        IpNet::V6 { net, .. } => {
            let is_local = net.addr().is_loopback() || net.addr().is_unicast_link_local();
            (!is_local).then(|| (net.network().into(), net.prefix_len()))
        }
    }
}

/// What the hub was told.
#[derive(Debug, Default)]
struct Seen {
    is_told: bool,
    route: Option<Route>,
    /// Of the latest network: every one has a number of its own.
    handle: i64,
}

impl Seen {
    fn see(&mut self, now: Option<Route>, hub: &Connectivity) {
        let is_first = !std::mem::replace(&mut self.is_told, true);
        match (&self.route, &now) {
            (None, None) if is_first => {
                hub.none_at_start();
            }
            (None, None) => {}
            (Some(_), None) => {
                hub.lost(self.handle);
            }
            (Some(before), Some(after)) if before.is_same_as(after) => {}
            (_, Some(_)) => {
                self.handle += 1;
                hub.available(Network::usable(self.handle));
            }
        }
        self.route = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectivity::NetworkState;

    fn route(interface: &str, networks: &[&str]) -> Option<Route> {
        let networks = networks
            .iter()
            .map(|network| (network.parse().unwrap(), 24));
        Some(Route {
            interface: interface.to_owned(),
            networks: networks.collect(),
        })
    }

    #[test]
    fn a_route_that_goes_and_comes_is_a_loss_and_an_edge() {
        let (hub, mut seen) = (Connectivity::new(), Seen::default());
        seen.see(route("en0", &["192.0.2.0"]), &hub);
        let online = hub.snapshot();
        assert_eq!(online.state, NetworkState::Online);
        seen.see(None, &hub);
        assert_eq!(hub.snapshot().state, NetworkState::Offline);
        seen.see(route("en0", &["192.0.2.0"]), &hub);
        let back = hub.snapshot();
        assert_eq!(back.state, NetworkState::Online);
        assert!(back.epoch > online.epoch);
    }

    #[test]
    fn another_interface_and_another_network_are_another_path() {
        let (hub, mut seen) = (Connectivity::new(), Seen::default());
        seen.see(route("en0", &["192.0.2.0"]), &hub);
        let first = hub.snapshot();
        seen.see(route("wlan0", &["192.0.2.0"]), &hub);
        let second = hub.snapshot();
        seen.see(route("wlan0", &["198.51.100.0"]), &hub);
        assert!(first.path < second.path && second.path < hub.snapshot().path);
    }

    #[test]
    fn an_address_more_or_less_changes_nothing() {
        let (hub, mut seen) = (Connectivity::new(), Seen::default());
        seen.see(route("en0", &["192.0.2.0"]), &hub);
        let before = hub.snapshot();
        seen.see(route("en0", &["192.0.2.0", "2001:db8::"]), &hub);
        seen.see(route("en0", &["2001:db8::"]), &hub);
        assert_eq!(hub.snapshot(), before);
    }

    #[test]
    fn a_machine_that_starts_without_a_route_is_offline() {
        let (hub, mut seen) = (Connectivity::new(), Seen::default());
        seen.see(None, &hub);
        assert_eq!(hub.snapshot().state, NetworkState::Offline);
    }

    #[tokio::test]
    async fn the_hub_knows_the_network_while_the_monitor_lives() {
        let hub = Connectivity::new();
        let monitor = NetworkMonitor::start(&hub).await.unwrap();
        assert_ne!(hub.snapshot().state, NetworkState::Unknown);
        drop(monitor);
        assert_eq!(hub.snapshot().state, NetworkState::Unknown);
    }
}
