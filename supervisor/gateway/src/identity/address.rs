//! The address of a client.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

/// Where a request's connection comes from: an extension of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectedFrom(pub SocketAddr);

/// The address by which a client is counted. Of IPv6 it is the network, since a client has 2^64 addresses of its own there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientAddress(IpAddr);

/// Whom a proxy forwards for: one header, the nearest proxy's entry last.
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// How many proxies in a row are looked through: more is a header that a client made up.
const MAX_PROXIES: usize = 8;

impl ClientAddress {
    /// The address of a connection.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let mut segments = address.segments();
                segments[4..].fill(0);
                Self(Ipv6Addr::from(segments).into())
            }
            address => Self(address),
        }
    }

    /// The address that a request is counted by.
    #[must_use]
    pub fn of_request(connected: ConnectedFrom, headers: &HeaderMap, proxies: &[IpNet]) -> Self {
        Self::of(sender(connected, headers, proxies))
    }
}

/// The address that a request comes from. `X-Forwarded-For` is read from its end, for as long as the entry before was a proxy that
/// the operator names: what a client writes into it itself stands further in front.
#[must_use]
pub fn sender(connected: ConnectedFrom, headers: &HeaderMap, proxies: &[IpNet]) -> IpAddr {
    let is_proxy = |address: IpAddr| proxies.iter().any(|network| network.contains(&address));
    let mut address = connected.0.ip().to_canonical();
    let texts: Vec<&str> = headers
        .get_all(FORWARDED_FOR)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .collect();
    for text in texts.iter().rev().take(MAX_PROXIES) {
        if !is_proxy(address) {
            break;
        }
        match text.trim().parse::<IpAddr>() {
            Ok(before) => address = before.to_canonical(),
            Err(_) => break,
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn seen(connected: &str, forwarded: &str) -> ClientAddress {
        let mut headers = HeaderMap::new();
        headers.insert(FORWARDED_FOR, HeaderValue::from_str(forwarded).unwrap());
        let proxies = ["10.0.0.0/8".parse().unwrap()];
        ClientAddress::of_request(ConnectedFrom(connected.parse().unwrap()), &headers, &proxies)
    }

    #[test]
    fn only_a_known_proxy_says_whom_it_forwards_for() {
        let client = |text: &str| ClientAddress::of(text.parse().unwrap());
        assert_eq!(seen("10.1.1.1:80", "203.0.113.9"), client("203.0.113.9"));
        assert_eq!(seen("10.1.1.1:80", "6.6.6.6, 203.0.113.9, 10.2.2.2"), client("203.0.113.9"));
        assert_eq!(seen("203.0.113.9:80", "6.6.6.6"), client("203.0.113.9"));
        assert_eq!(seen("10.1.1.1:80", "nonsense"), client("10.1.1.1"));
    }

    #[test]
    fn one_network_of_ipv6_is_one_client() {
        let of = |text: &str| ClientAddress::of(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
