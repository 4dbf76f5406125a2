//! Which IP addresses belong to the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is on the public internet: not this machine, not its networks, not reserved. Follows
/// IANA's special-purpose registries; the `is_global` of the standard library is not stable.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = matches!(
        (a, b, c),
        (0, ..)                  // this network
            | (10, ..)           // private
            | (100, 64..=127, _) // carriers' shared
            | (127, ..)          // loopback
            | (169, 254, _)      // link-local, where clouds keep their metadata
            | (172, 16..=31, _)  // private
            | (192, 0, 0)        // protocol assignments
            | (192, 0, 2)        // documentation
            | (192, 88, 99)      // 6to4 relays
            | (192, 168, _)      // private
            | (198, 18..=19, _)  // benchmarks
            | (198, 51, 100)     // documentation
            | (203, 0, 113)      // documentation
            | (224.., ..) // multicast, reserved, broadcast
    );
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = embedded(address) {
        return is_public_v4(inner);
    }
    let [first, second, ..] = address.segments();
    // Only 2000::/3 is assigned to the internet; within it some blocks are special.
    let unicast = first & 0xe000 == 0x2000;
    let special = matches!(
        (first, second),
        (0x2001, 0..=0x01ff)       // protocol assignments, among them Teredo
            | (0x2001, 0x0db8)     // documentation
            | (0x3fff, 0..=0x0fff) // documentation
    );
    unicast && !special
}

/// The IPv4 address that a gateway would extract from an IPv6 address.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let from = |high: u16, low: u16| {
        let [w, x] = high.to_be_bytes();
        let [y, z] = low.to_be_bytes();
        Some(Ipv4Addr::new(w, x, y, z))
    };
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0xffff | 0] => from(g, h),  // mapped, compatible
        [0, 0, 0, 0, 0xffff, 0] => from(g, h),      // translated
        [0x0064, 0xff9b, 0, 0, 0, 0] => from(g, h), // NAT64
        [0x2002, high, low, ..] => from(high, low), // 6to4
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_are_public() {
        for text in [
            "1.1.1.1",
            "93.184.216.34",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "2001:4860::8888",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
        ] {
            assert!(is_public(text.parse().expect("an address")), "{text}");
        }
    }

    // Promises: EX-5
    #[test]
    fn everything_near_home_is_not() {
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.168.1.1",
            "198.18.0.1",
            "203.0.113.5",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "fec0::1",
            "2001:db8::1",
            "2001:0:1::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "::ffff:0:127.0.0.1",
            "100::1",
            "5f00::1",
        ] {
            assert!(!is_public(text.parse().expect("an address")), "{text}");
        }
    }
}
