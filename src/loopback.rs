//! Hosts that are this machine. What is known of the phone's network does not apply to them.

use std::net::{IpAddr, Ipv6Addr};

/// Whether a request to this host stays on this machine: `localhost` and the names below it (RFC 6761), 127.0.0.0/8 and `::1`, with or
/// without the brackets of a URL. By the name alone: nothing is looked up.
///
/// The network has no part in such a request, so its driver hands over [`Snapshot::UNKNOWN`](crate::Snapshot::UNKNOWN), as if the policy said
/// `offline = ignore`.
///
/// ```
/// assert!(comeback::is_loopback("localhost") && comeback::is_loopback("[::1]"));
/// assert!(!comeback::is_loopback("localhost.example.org"));
/// ```
pub fn is_loopback(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    match bare.unwrap_or(host).parse() {
        Ok(IpAddr::V4(address)) => address.is_loopback(),
        Ok(IpAddr::V6(address)) => is_loopback_v6(&address),
        Err(_) => {
            let last = host.rsplit('.').next().unwrap_or(host);
            last.eq_ignore_ascii_case("localhost")
        }
    }
}

fn is_loopback_v6(address: &Ipv6Addr) -> bool {
    address.is_loopback() || address.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback())
}
