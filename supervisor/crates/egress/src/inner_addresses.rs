//! What a plugin finds inside its own network: where the proxy listens, and what names it.
//!
//! Programs that know nothing of Talon find the hosts of the list in two ways:
//!
//! - Each name of the list has an address of the plugin's own loopback interface, in its `/etc/hosts`, and each
//!   IPv4 address of the list is one of that interface. Whatever connects there is connected to that host, so
//!   that a program needs no notion of a proxy.
//! - The usual variables name an HTTP proxy for everything else: names below a domain, IPv6, and what is not
//!   allowed, so that the refusal has a text. Names with an address are exempt: fewer programs
//!   get that wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};

use talon_plugin_config::allow_list::AllowList;
use talon_plugin_config::host_port::{Host, HostPort};

use crate::listener::ListenerPurpose;

/// Where the proxy takes requests, on the plugin's loopback interface. 3128 is the usual port of HTTP proxies,
/// and the same for every plugin, so that it can be written into a program's own settings.
pub const PROXY_ADDRESS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 3128);

/// The most entries that get an address. 32: each is a socket of the supervisor's, and most plugins
/// have one or two hosts. Entries beyond it are reached through the proxy's variables, which the plugin's log says.
pub const MAX_TUNNEL_ADDRESSES: usize = 32;

/// The addresses that stand for names: `127.83.0.1` and the following. Any in `127.0.0.0/8` would do; these are
/// not in use by distributions (`127.0.0.53`, `127.0.1.1`).
const FIRST_NAME_ADDRESS: [u8; 3] = [127, 83, 0];

/// Where the proxy listens inside one plugin's network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnerAddresses {
    /// The listening sockets, in this order.
    pub listeners: Vec<(SocketAddrV4, ListenerPurpose)>,
    /// Lines for its `/etc/hosts`.
    pub hosts: String,
    /// Variables for its environment, by their names.
    pub variables: Vec<(&'static str, String)>,
    /// How many entries of the list have no address, because there are too many.
    pub left_out: usize,
}

impl InnerAddresses {
    /// For one plugin.
    #[must_use]
    pub fn for_list(allowed: &AllowList) -> Self {
        let mut listeners = vec![(PROXY_ADDRESS, ListenerPurpose::Requests)];
        let mut addresses = BTreeMap::new();
        let mut names = Vec::new();
        let mut left_out = 0;
        for place in allowed.exact_hosts() {
            if is_host_loopback(place) || !can_stand_for_itself(&place.host) {
                continue;
            }
            if listeners.len() > MAX_TUNNEL_ADDRESSES {
                left_out += 1;
                continue;
            }
            let ip = match &place.host {
                Host::Ip(IpAddr::V4(ip)) => *ip,
                Host::Ip(IpAddr::V6(_)) => continue,
                Host::Name(name) => {
                    let next = u8::try_from(addresses.len() + 1).expect("there are at most 32");
                    let [a, b, c] = FIRST_NAME_ADDRESS;
                    *addresses.entry(name.as_str()).or_insert_with(|| {
                        names.push(name.as_str());
                        Ipv4Addr::new(a, b, c, next)
                    })
                }
            };
            let listener = (SocketAddrV4::new(ip, place.port), ListenerPurpose::Tunnel(place.clone()));
            // An entry may stand in the list twice.
            if !listeners.contains(&listener) {
                listeners.push(listener);
            }
        }
        let mut hosts = String::new();
        for name in &names {
            let _ = writeln!(hosts, "{} {name}", addresses[name]);
        }
        Self { listeners, hosts, variables: variables(allowed, &names), left_out }
    }
}

/// What common programs read. Some know upper case only and some lower case, so both are set.
fn variables(allowed: &AllowList, names: &[&str]) -> Vec<(&'static str, String)> {
    let proxy = format!("http://{PROXY_ADDRESS}");
    // Its own loopback interface is the plugin's, unless the list names the host's.
    let own: &[&str] =
        if allowed.exact_hosts().any(is_host_loopback) { &[] } else { &["localhost", "127.0.0.1", "::1"] };
    let direct = own.iter().chain(names).copied().collect::<Vec<_>>().join(",");
    let both = |upper, lower, value: &String| [(upper, value.clone()), (lower, value.clone())];
    let mut variables = Vec::new();
    variables.extend(both("HTTP_PROXY", "http_proxy", &proxy));
    variables.extend(both("HTTPS_PROXY", "https_proxy", &proxy));
    variables.extend(both("ALL_PROXY", "all_proxy", &proxy));
    variables.extend(both("NO_PROXY", "no_proxy", &direct));
    // Node (22.21, 24) reads the others only with it.
    variables.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
    variables
}

/// Whether an entry names the loopback interface of the host.
fn is_host_loopback(place: &HostPort) -> bool {
    match &place.host {
        Host::Name(name) => is_local(name),
        Host::Ip(ip) => ip.is_loopback(),
    }
}

/// Whether the plugin's loopback interface can have an address for it: every name, and of addresses those of
/// IPv4 that a machine can have.
fn can_stand_for_itself(host: &Host) -> bool {
    match host {
        Host::Name(_) => true,
        Host::Ip(IpAddr::V4(ip)) => (1..224).contains(&ip.octets()[0]),
        Host::Ip(IpAddr::V6(_)) => false,
    }
}

/// Whether programs take a name for their own machine, whatever a file says.
fn is_local(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(entries: &[&str]) -> InnerAddresses {
        let entries: Vec<String> = entries.iter().map(ToString::to_string).collect();
        InnerAddresses::for_list(&AllowList::parse(&entries).unwrap())
    }

    fn variable<'i>(inside: &'i InnerAddresses, name: &str) -> &'i str {
        &inside.variables.iter().find(|(key, _)| *key == name).unwrap().1
    }

    // Promises: JAIL-46
    #[test]
    fn each_name_has_an_address_and_each_entry_a_socket() {
        let inside = inside(&[
            "api.example.org:443",
            "*.example.net:443",
            "10.0.0.5:5432",
            "[2001:db8::1]:443",
            "0.0.0.0:1",
            "224.0.0.1:1",
            "255.255.255.255:1",
            "db.example.org:5432",
            "API.example.org.:8443",
            "api.example.org:443",
        ]);
        assert_eq!(inside.hosts, "127.83.0.1 api.example.org\n127.83.0.2 db.example.org\n");
        let shown = |(at, purpose): &(SocketAddrV4, ListenerPurpose)| match purpose {
            ListenerPurpose::Requests => format!("{at}"),
            ListenerPurpose::Tunnel(place) => format!("{at} {place}"),
        };
        let listeners: Vec<_> = inside.listeners.iter().map(shown).collect();
        let expected = [
            "127.0.0.1:3128",
            "127.83.0.1:443 api.example.org:443",
            "10.0.0.5:5432 10.0.0.5:5432",
            "127.83.0.2:5432 db.example.org:5432",
            "127.83.0.1:8443 api.example.org:8443",
        ];
        assert_eq!(listeners, expected);
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
            assert_eq!(variable(&inside, name), "http://127.0.0.1:3128");
        }
        let direct = "localhost,127.0.0.1,::1,api.example.org,db.example.org";
        assert_eq!([variable(&inside, "NO_PROXY"), variable(&inside, "no_proxy")], [direct; 2]);
        assert_eq!(variable(&inside, "NODE_USE_ENV_PROXY"), "1");
    }

    #[test]
    fn the_hosts_own_loopback_goes_through_the_proxy_where_it_is_listed() {
        for entries in [&["127.0.0.1:8080"][..], &["[::1]:8080"], &["localhost:8080", "x.example.org:1"]] {
            let inside = inside(entries);
            assert!(!variable(&inside, "NO_PROXY").contains("localhost"), "{entries:?}");
            assert!(!inside.hosts.contains("localhost"), "{entries:?}");
        }
        assert_eq!(variable(&inside(&["10.0.0.5:80"]), "NO_PROXY"), "localhost,127.0.0.1,::1");
    }

    #[test]
    fn more_names_than_addresses_are_counted() {
        let many: Vec<String> =
            (0..MAX_TUNNEL_ADDRESSES + 3).map(|n| format!("h{n}.example.org:443")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let inside = inside(&many);
        assert_eq!((inside.listeners.len(), inside.left_out), (MAX_TUNNEL_ADDRESSES + 1, 3));
        assert_eq!(inside.hosts.lines().count(), MAX_TUNNEL_ADDRESSES);
        assert!(!variable(&inside, "NO_PROXY").contains("h32."));
    }
}
