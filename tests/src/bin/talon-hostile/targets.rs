//! What the attacks aim at, and where it is: paths, ports and names that outer and drive agree on.

/// All that is ours, in the outer namespace's own `/tmp`.
pub(crate) const WORLD: &str = "/tmp/world";
/// Programs, also the one with the set-uid bit.
pub(crate) const BIN: &str = "/tmp/world/bin";
/// A program that nobody granted.
pub(crate) const FOREIGN: &str = "/tmp/world/foreign/attack";
/// Another plugin's state, readable for everybody.
pub(crate) const PEER_STATE: &str = "/tmp/world/state/peer/notes.db";
/// Talon's configuration, readable for everybody.
pub(crate) const TALON_CONFIG: &str = "/tmp/world/etc/talon.yaml";
/// Another plugin's runtime directory, writable for everybody.
pub(crate) const PEER_RUNTIME: &str = "/run/talon/plugins/peer";
/// Where an attack without a jail may write.
pub(crate) const OWN: &str = "/tmp/world/own";
/// Where a jailed program has its private place.
pub(crate) const PRIVATE: &str = "/run/talon/plugins/attack";
/// The neighbour's.
pub(crate) const NEIGHBOUR: &str = "/run/talon/plugins/neighbour";

/// Stream sockets that listen, open to everybody. Two of them have names in the attacks' environment.
pub(crate) const SOCKETS: &[&str] = &[
    "/run/talon/plugins/peer/plugin.sock",
    "/run/talon/host.sock",
    "/run/talon/admin.sock",
    "/run/dbus/system_bus_socket",
    "/run/user/1000/bus",
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
];
/// Datagram sockets.
pub(crate) const DATAGRAM_SOCKETS: &[&str] = &["/run/systemd/journal/socket", "/run/systemd/notify"];
/// Hands a descriptor of a secret to everybody.
pub(crate) const PASSING: &str = "/run/talon/passing.sock";
/// The same by name.
pub(crate) const PASSING_ABSTRACT: &str = "talon-hostile-passing";
/// Listens by name.
pub(crate) const ABSTRACT: &str = "talon-hostile-abstract";

/// A name that an attack takes.
pub(crate) const LISTEN_ABSTRACT: &str = "talon-hostile-taken";

/// What no attack may read.
pub(crate) const SECRET: &str = "TALON-HOSTILE-SECRET";

/// A second address of the outer namespace, as that of a real card would be.
pub(crate) const ADDRESS: &str = "10.213.0.1";
/// Listened on at every address, as are the next three.
pub(crate) const TCP_PORT: u16 = 4101;
pub(crate) const TCP6_PORT: u16 = 4102;
pub(crate) const UDP_PORT: u16 = 4103;
/// The port that the network `ports` may connect to.
pub(crate) const GRANTED_PORT: u16 = 4104;
/// Where attacks listen.
pub(crate) const LISTEN_PORT: u16 = 4105;

/// Nobody's uid, for everything without rights. Above all ranges that Debian gives out, below those of containers.
pub(crate) const USER: u32 = 69_100;
/// The attack's own uid, where our side is root.
pub(crate) const ATTACKER: u32 = 69_101;
/// The neighbour's.
pub(crate) const NEIGHBOUR_UID: u32 = 69_102;

/// The environment that every attack has, whatever holds it.
pub(crate) fn environment() -> Vec<(String, String)> {
    let named: &[(&str, &str)] = &[
        ("PATH", "/usr/bin:/bin"),
        ("PEER_STATE", PEER_STATE),
        ("TALON_CONFIG", TALON_CONFIG),
        ("PEER_RUNTIME", PEER_RUNTIME),
        ("FOREIGN_PROGRAM", FOREIGN),
        ("SETUID_PROGRAM", "/tmp/world/bin/attack-setuid"),
        ("PROGRAM_DIR", BIN),
        ("PEER_SOCKET", SOCKETS[0]),
        ("HOST_SOCKET", SOCKETS[1]),
        ("ADMIN_SOCKET", SOCKETS[2]),
        ("PASSING_SOCKET", PASSING),
        ("HOST_ADDRESS", ADDRESS),
    ];
    let ports = [
        ("TCP_PORT", TCP_PORT),
        ("TCP6_PORT", TCP6_PORT),
        ("UDP_PORT", UDP_PORT),
        ("GRANTED_PORT", GRANTED_PORT),
        ("LISTEN_PORT", LISTEN_PORT),
    ];
    let mut all: Vec<(String, String)> =
        named.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    all.extend(ports.iter().map(|(name, port)| ((*name).to_owned(), port.to_string())));
    all.push(("ABSTRACT_SOCKET".into(), format!("@{ABSTRACT}")));
    all.push(("LISTEN_ABSTRACT".into(), format!("@{LISTEN_ABSTRACT}")));
    all.push(("PASSING_ABSTRACT".into(), format!("@{PASSING_ABSTRACT}")));
    all
}
