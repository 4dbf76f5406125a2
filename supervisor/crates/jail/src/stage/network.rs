//! The network namespace's loopback interface, and the supervisor's sockets in it.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};

use super::namespaces;
use super::request::{Plan, environment};
use super::socket_broker;
use super::step_error::StepError;
use crate::network::Network;
use crate::report::Status;
use crate::spec::Isolation;
use crate::sys;
use crate::wire::{self, StageNote};

/// The advice where bringing it up is refused.
const LOOPBACK_ADVICE: &str =
    "add CAP_NET_ADMIN to the service's capabilities; docs/packages.md has the drop-in";

/// The same where the supervisor's sockets are to listen on it, some of them at ports below 1024.
const LISTENERS_ADVICE: &str = "add CAP_NET_ADMIN and CAP_NET_BIND_SERVICE to the service's \
                                capabilities; docs/packages.md has the drop-in";

/// How many connections may wait to be accepted by the supervisor, which accepts them at once while it has
/// room for them.
const BACKLOG: i32 = 128;

/// What a list of ports does not cover in the host's network, where a program that learns is. Landlock's
/// rules are about `bind` and `connect` of TCP, and about connecting to abstract names.
const PORTS_GAPS: &str = "TCP to and from the listed ports, and no UDP; but it can take abstract socket names, and listen \
                          at a port that the kernel picks (network: proxy has neither)";

/// Sets up the network that the program was granted. Runs in the new namespaces.
pub(super) fn set_up(plan: &Plan) -> Result<Option<Status>, StepError> {
    let (Some(isolation), Some(_)) = (plan.isolation(), plan.namespaces.get()) else {
        return Ok(Some(namespaces::missing(plan)));
    };
    let addresses = &isolation.listeners.addresses;
    if isolation.network == Network::Loopback {
        let up = sys::network::bring_loopback_up();
        if !addresses.is_empty() {
            let made = up.and_then(|()| listen_at_all(addresses));
            return Ok(Some(match made {
                Ok(listeners) => {
                    plan.listeners.set(listeners).expect("this step is taken once");
                    Status::Enforced
                }
                Err(error) => Status::StandIn(without_listeners(&error)),
            }));
        }
        up.map_err(|error| StepError::io("cannot bring up its loopback interface", &error, LOOPBACK_ADVICE))?;
    }
    if socket_broker::is_used(plan) {
        // The child reports it.
        return Ok(None);
    }
    Ok(Some(if isolation.network.lists_ports() {
        Status::StandIn(PORTS_GAPS.into())
    } else {
        Status::Enforced
    }))
}

/// Nothing is left open where the sockets cannot be made: the program only has less.
fn without_listeners(error: &io::Error) -> String {
    format!(
        "it has no network, and only programs that know TALON_PROXY_SOCKET reach the proxy: cannot listen on its \
         loopback interface: {error} ({LISTENERS_ADVICE})"
    )
}

/// Addresses that are not local already become so first.
fn listen_at_all(addresses: &[SocketAddrV4]) -> io::Result<Vec<OwnedFd>> {
    let mut added = BTreeSet::new();
    for address in addresses.iter().map(SocketAddrV4::ip).filter(|address| !address.is_loopback()) {
        if added.insert(*address) {
            sys::network::add_loopback_address(added.len(), *address)?;
        }
    }
    addresses.iter().map(listen_at).collect()
}

fn listen_at(address: &SocketAddrV4) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    bind(&socket, address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Passes the supervisor its sockets, and names them in the program's environment. Runs before the fork, so
/// that neither the monitor nor the program has them.
pub(super) fn hand_over_listeners(plan: &mut Plan, control: &OwnedFd) -> Result<(), StepError> {
    let Some(listeners) = plan.listeners.take() else { return Ok(()) };
    for listener in &listeners {
        wire::send(control.as_fd(), &StageNote::LoopbackListener, &[listener.as_fd()])
            .map_err(|error| StepError::io("cannot pass on a listening socket", &error, ""))?;
    }
    let added = plan.isolation().map_or(Ok(Vec::new()), |isolation| environment(&isolation.listeners.env))?;
    plan.env.extend(added);
    Ok(())
}

/// The network that holds without namespaces, in `best-effort`: a program whose only way out are sockets that
/// do not exist there gets none of the host's network instead.
pub(super) fn effective<'i>(plan: &Plan, isolation: &'i Isolation) -> &'i Network {
    if loses_loopback(plan, isolation) { &Network::None } else { &isolation.network }
}

/// Whether its network was to be its own loopback interface with the supervisor's sockets, and is the host's.
pub(super) fn loses_loopback(plan: &Plan, isolation: &Isolation) -> bool {
    plan.namespaces.get().is_none() && !isolation.listeners.addresses.is_empty()
}
