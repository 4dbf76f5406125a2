//! The targets of the attacks: paths, ports and names that outer and drive share.

/// Everything of the suite, in the outer namespace's own `/tmp`.
pub(crate) const WORLD: &str = "/tmp/world";
/// Programs, also the one with the set-uid bit.
pub(crate) const BIN: &str = "/tmp/world/bin";
/// A program that no jail is granted.
pub(crate) const FOREIGN: &str = "/tmp/world/foreign/attack";
/// Another plugin's state, readable for every user.
pub(crate) const PEER_STATE: &str = "/tmp/world/state/peer/notes.db";
/// Talon's configuration, readable for every user.
pub(crate) const TALON_CONFIG: &str = "/tmp/world/etc/talon.yaml";
/// Another plugin's runtime directory, writable for every user.
pub(crate) const PEER_RUNTIME: &str = "/run/talon/plugins/peer";
/// Where an attack without a jail may write.
pub(crate) const OWN: &str = "/tmp/world/own";
/// A jailed program's private directory.
pub(crate) const PRIVATE: &str = "/run/talon/plugins/attack";
/// The neighbour's private directory.
pub(crate) const NEIGHBOUR: &str = "/run/talon/plugins/neighbour";

/// Listening stream sockets, open to every user. Two of them are named in the attacks' environment.
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
/// Passes a descriptor of a secret to every client.
pub(crate) const PASSING: &str = "/run/talon/passing.sock";
/// The same on an abstract socket.
pub(crate) const PASSING_ABSTRACT: &str = "talon-hostile-passing";
/// A listening abstract socket.
pub(crate) const ABSTRACT: &str = "talon-hostile-abstract";

/// The abstract name that an attack listens on.
pub(crate) const LISTEN_ABSTRACT: &str = "talon-hostile-taken";

/// What no attack may read.
pub(crate) const SECRET: &str = "TALON-HOSTILE-SECRET";

/// A second address of the outer namespace, like that of a real network card.
pub(crate) const ADDRESS: &str = "10.213.0.1";
/// Listened on at every address, as are the next three.
pub(crate) const TCP_PORT: u16 = 4101;
pub(crate) const TCP6_PORT: u16 = 4102;
pub(crate) const UDP_PORT: u16 = 4103;
/// The port that the network `ports` may connect to.
pub(crate) const GRANTED_PORT: u16 = 4104;
/// Where attacks listen: a port that the kernel might pick, for a socket that has none.
pub(crate) const LISTEN_PORT: u16 = 45_105;

/// An unused uid, for everything without rights. Above all ranges that Debian assigns, below those of
/// containers.
pub(crate) const USER: u32 = 69_100;
/// The attack's own uid, if our side is root.
pub(crate) const ATTACKER: u32 = 69_101;
/// The neighbour's uid.
pub(crate) const NEIGHBOUR_UID: u32 = 69_102;

/// The environment of every attack.
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
