//! Tells public addresses from those of this machine and the network around it.
//!
//! The owner of a name on the allow-list controls its DNS, and may point it at the loopback, at the cloud's metadata
//! service or at a printer. So a resolved name may only lead to public addresses. The ranges are from the IANA
//! special-purpose registries. An address that is not known to be public counts as not public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a resolved name may have this address.
pub(super) fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
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
        ] {
            assert!(is_public(outside.parse().unwrap()), "{outside}");
        }
    }
}
