//! Tells addresses of the public internet from those of this machine and the network around it.
//!
//! The owner of a name controls its DNS, and may point it at the loopback, at the cloud's metadata service or
//! at a printer. So a program that connects for others lets a resolved name lead to public addresses only
//! ([`is_public`]). This machine may itself have a public address, where local services listen; that is known
//! once there is a connection ([`is_same_machine`]).
//!
//! The egress proxy of the supervisor and the example plugin `web-fetch` share this rule.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is on the public internet. The ranges are from the IANA special-purpose registries
/// (2026); the standard library's `is_global` is not stable. An address that is not known to be public counts
/// as not public.
///
/// ```
/// # use talon_public_address::is_public;
/// assert!(is_public("1.1.1.1".parse().unwrap()));
/// assert!(!is_public("::ffff:169.254.169.254".parse().unwrap()));
/// ```
#[must_use]
pub fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

/// Whether a connection between these two addresses never left this machine: the kernel chooses the peer's
/// address as ours if that is one of this machine's.
///
/// ```
/// # use talon_public_address::is_same_machine;
/// let address = |text: &str| text.parse().unwrap();
/// assert!(is_same_machine(address("198.51.100.7"), address("198.51.100.7")));
/// assert!(!is_same_machine(address("198.51.100.7"), address("198.51.100.8")));
/// ```
#[must_use]
pub fn is_same_machine(peer: IpAddr, own: IpAddr) -> bool {
    peer.to_canonical() == own.to_canonical()
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let reserved = match ip.octets() {
        // "This network"; Linux treats 0.0.0.0 as the loopback.
        [0, ..] => true,
        // Carrier-grade NAT: the provider's own network, and some clouds' services.
        [100, b, ..] => b & 0b1100_0000 == 64,
        // IETF protocol assignments.
        [192, 0, 0, _] => true,
        // The former relay addresses of 6to4.
        [192, 88, 99, _] => true,
        // Network benchmarks.
        [198, 18 | 19, ..] => true,
        // Multicast, reserved, broadcast.
        [224..=255, ..] => true,
        _ => false,
    };
    // Link-local addresses include the clouds' metadata services.
    !(reserved || ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_documentation())
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    match ip.segments() {
        // NAT64 and 6to4 embed an IPv4 address, to which the packets are sent in the end.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(joined(high, low)),
        [0x2002, high, low, ..] => is_public_v4(joined(high, low)),
        // IETF protocol assignments, Teredo among them; documentation.
        [0x2001, second, ..] => second >= 0x200 && second != 0xdb8,
        [0x3fff, second, ..] => second >= 0x1000,
        // So far only 2000::/3 is allocated: not ::1, fc00::/7, fe80::/10, fec0::/10, ff00::/8.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

fn joined(high: u16, low: u16) -> Ipv4Addr {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: EX-5, JAIL-39
    #[test]
    fn what_is_this_machine_or_around_it_is_not_public() {
        for inside in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:0:127.0.0.1",
            "5f00::1",
            "2001:0:1::1",
            "fd12::1",
            "64:ff9b::7f00:1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(inside.parse().unwrap()), "{inside}");
        }
    }

    #[test]
    fn the_internet_is_public() {
        for outside in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.1.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "2001:4860:4860::8888",
            "2002:101:101::1",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "93.184.216.34",
            "2001:4860::8888",
            "64:ff9b::101:101",
        ] {
            assert!(is_public(outside.parse().unwrap()), "{outside}");
        }
    }
}
