//! Makes the TCP sockets of a program whose network is limited to ports.
//!
//! Landlock limits `bind` and `connect` of TCP to ports. In the host's network a program could also take
//! abstract socket names, and listen at a port that the kernel picks. So the program is in a network
//! namespace of its own, which is empty, and gets TCP sockets of the host's network from its monitor:
//!
//! 1. The child leaves the host's network ([`leave_host_network`]), before it loses the right to.
//! 2. It loads a filter that reports `socket` for IPv4 and IPv6 to a listener, which it sends to the monitor
//!    ([`hand_over`]). Raw sockets and datagrams are refused by the profile, which wins over a report.
//! 3. The monitor stays in the host's network. It makes the reported socket and puts it into the program
//!    ([`SocketBroker::answer`]). All arguments of the call are numbers, which nobody can change meanwhile.
//!
//! A socket drops attempts to connect to it, except at the listed ports, where the kernel lets a process
//! without capabilities attach such a filter. The program cannot remove it: `listen` without `bind` succeeds,
//! and no client gets through. Some kernels keep filters of TCP sockets to CAP_NET_ADMIN (6.18 does), which a
//! monitor does not have; the report says so there.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use nix::sched::{CloneFlags, unshare};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};

use super::request::Plan;
use super::step_error::StepError;
use crate::network::Network;
use crate::profile::report_internet_sockets;
use crate::report::Status;
use crate::spec::Isolation;
use crate::sys::seccomp::{self, Notification};
use crate::sys::{self, network::ListenPorts};
use crate::wire::{self, ReceiveOutcome, StageNote};

/// The most ports that a program may listen at: the filter of a socket has two instructions for each, of
/// which the kernel takes 4,096. A longer list is refused.
const LISTEN_PORTS_MAX: usize = 1000;

/// Whether the program gets its TCP sockets from the monitor. Not while it learns, since the kernel has one
/// listener for all filters of a process.
pub(super) fn is_used(plan: &Plan) -> bool {
    let fits = |isolation: &Isolation| isolation.network.lists_ports() && !isolation.profile.learn;
    plan.namespaces.get().is_some() && plan.isolation().is_some_and(fits)
}

/// The pair of sockets by which the child hands over the listener: the child's and the monitor's.
pub(super) fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    wire::socket_pair()
}

/// Enters an empty network namespace. Runs in the child, before it loses its capabilities.
pub(super) fn leave_host_network(plan: &Plan) -> Result<Option<Status>, StepError> {
    if !is_used(plan) {
        return Ok(None);
    }
    let listed = listen_ports(plan).map_or(0, |ports| ports.len());
    if listed > LISTEN_PORTS_MAX {
        return Err(StepError::new(format!(
            "it may listen at {listed} ports, the most is {LISTEN_PORTS_MAX} (list fewer, or allow every port)"
        )));
    }
    unshare(CloneFlags::CLONE_NEWNET)
        .map_err(|errno| StepError::errno("cannot leave the host's network", errno as i32, ""))?;
    plan.left_host_network.set(true);
    Ok(None)
}

/// Reports what the sockets of the monitor cover. Runs in the child without capabilities, as the monitor has
/// none.
pub(super) fn report(plan: &Plan) -> Result<Option<Status>, StepError> {
    if !plan.left_host_network.get() {
        return Ok(None);
    }
    let trial = RequestedSocket { is_v6: false, nonblocking: false, close_on_exec: true };
    let covered = match trial.open() {
        Ok(socket) => sys::network::refuse_clients(&socket, &listed(plan)),
        // A kernel without IPv4; what is asked for IPv6 then is not known.
        Err(error) => Err(error),
    };
    Ok(Some(match covered {
        Ok(()) => Status::Enforced,
        Err(_) => Status::StandIn(LISTENING_GAP.into()),
    }))
}

/// What is not covered where no filter can be attached to a socket.
const LISTENING_GAP: &str = "TCP to and from the listed ports, and no UDP; but it can listen at a port that the kernel \
                             picks, as this kernel keeps filters of TCP sockets to CAP_NET_ADMIN (network: proxy has no such gap)";

/// Loads the filter that reports sockets, and sends its listener to the monitor.
pub(super) fn hand_over(plan: &Plan) -> io::Result<()> {
    let (true, Some(channel)) = (plan.left_host_network.get(), &plan.broker_channel) else { return Ok(()) };
    let listener = seccomp::load_with_listener(&report_internet_sockets())?;
    wire::send(channel.as_fd(), &StageNote::Listening, &[listener.as_fd()])
}

/// The ports that it may listen at; `None` for any.
fn listen_ports(plan: &Plan) -> Option<&[u16]> {
    match &plan.isolation()?.network {
        Network::Host { bind, .. } => bind.as_deref(),
        _ => None,
    }
}

fn listed(plan: &Plan) -> ListenPorts {
    match listen_ports(plan) {
        // 0 is the port that the kernel picks, which may be any.
        Some(ports) if !ports.contains(&0) => ListenPorts::Listed(ports.to_vec()),
        _ => ListenPorts::Any,
    }
}

/// The monitor's side.
#[derive(Debug)]
pub(super) struct SocketBroker {
    state: BrokerState,
    listen_ports: ListenPorts,
}

#[derive(Debug)]
enum BrokerState {
    /// The child has not sent the listener yet.
    Waiting(OwnedFd),
    Serving(OwnedFd),
    /// No process of the program is left.
    Ended,
}

impl SocketBroker {
    /// For the monitor's end of the channel.
    pub(super) fn new(channel: OwnedFd, plan: &Plan) -> Self {
        Self { state: BrokerState::Waiting(channel), listen_ports: listed(plan) }
    }

    /// What to wait for, if there is anything.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            BrokerState::Waiting(descriptor) | BrokerState::Serving(descriptor) => Some(descriptor.as_fd()),
            BrokerState::Ended => None,
        }
    }

    /// Answers what has come. `is_readable` is false if the other side has only closed.
    pub(super) fn answer(&mut self, is_readable: bool) {
        let next = match &self.state {
            _ if !is_readable => BrokerState::Ended,
            BrokerState::Waiting(channel) => match wire::receive::<StageNote>(channel) {
                Ok(ReceiveOutcome::Packet(StageNote::Listening, mut descriptors)) => {
                    descriptors.pop().map_or(BrokerState::Ended, BrokerState::Serving)
                }
                Ok(ReceiveOutcome::Empty) => return,
                Ok(ReceiveOutcome::Packet(..) | ReceiveOutcome::Closed) | Err(_) => BrokerState::Ended,
            },
            BrokerState::Serving(listener) => {
                // An error means that the process that made the call was killed or interrupted in between; or
                // that the kernel is short of memory, and the call waits for the next round.
                if let Ok(notification) = seccomp::next_notification(listener.as_fd()) {
                    self.give_socket(listener.as_fd(), &notification);
                }
                return;
            }
            BrokerState::Ended => return,
        };
        self.state = next;
    }

    /// An error means that the calling process has gone.
    fn give_socket(&self, listener: BorrowedFd<'_>, call: &Notification) {
        let made =
            RequestedSocket::of(call).and_then(|wanted| Ok((wanted.make(&self.listen_ports)?, wanted)));
        let error = match made {
            Ok((socket, wanted)) => {
                match seccomp::answer_with_descriptor(listener, call.id, socket.as_fd(), wanted.close_on_exec)
                {
                    Ok(()) => return,
                    // It has too many open files, or is gone.
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        let _ = seccomp::refuse(listener, call.id, error.raw_os_error().unwrap_or(libc::EACCES));
    }
}

/// The socket that a call asks for.
#[derive(Debug, PartialEq, Eq)]
struct RequestedSocket {
    is_v6: bool,
    nonblocking: bool,
    close_on_exec: bool,
}

impl RequestedSocket {
    /// Only TCP: the filter reports nothing else, and this does not rely on it.
    fn of(call: &Notification) -> io::Result<Self> {
        let word = |place: usize| (call.arguments[place] & u64::from(u32::MAX)) as i32;
        let (domain, kind, protocol) = (word(0), word(1), word(2));
        let is_tcp = matches!(domain, libc::AF_INET | libc::AF_INET6)
            && kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) == libc::SOCK_STREAM
            && matches!(protocol, 0 | libc::IPPROTO_TCP);
        if !is_tcp {
            return Err(io::Error::from_raw_os_error(libc::EACCES));
        }
        Ok(Self {
            is_v6: domain == libc::AF_INET6,
            nonblocking: kind & libc::SOCK_NONBLOCK != 0,
            close_on_exec: kind & libc::SOCK_CLOEXEC != 0,
        })
    }

    fn make(&self, listen_ports: &ListenPorts) -> io::Result<OwnedFd> {
        let socket = self.open()?;
        match sys::network::refuse_clients(&socket, listen_ports) {
            // Reported at the start.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(socket),
            result => result.map(|()| socket),
        }
    }

    fn open(&self) -> io::Result<OwnedFd> {
        let family = if self.is_v6 { AddressFamily::INET6 } else { AddressFamily::INET };
        let mut flags = SocketFlags::CLOEXEC;
        flags.set(SocketFlags::NONBLOCK, self.nonblocking);
        Ok(socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tcp_is_made() {
        let asked = |domain: i32, kind: i32, protocol: i32| {
            let arguments = [domain as u64, kind as u64, protocol as u64, 0, 0, 0];
            RequestedSocket::of(&Notification { id: 1, number: 41, arguments })
        };
        let stream = libc::SOCK_STREAM;
        let plain = RequestedSocket { is_v6: false, nonblocking: false, close_on_exec: false };
        assert_eq!(asked(libc::AF_INET, stream, 0).unwrap(), plain);
        let flags = stream | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let six = RequestedSocket { is_v6: true, nonblocking: true, close_on_exec: true };
        assert_eq!(asked(libc::AF_INET6, flags, libc::IPPROTO_TCP).unwrap(), six);
        for (domain, kind, protocol) in [
            (libc::AF_INET, libc::SOCK_DGRAM, 0),
            (libc::AF_INET, libc::SOCK_RAW, 6),
            (libc::AF_INET, stream, 262),
            (libc::AF_UNIX, stream, 0),
            (libc::AF_INET, stream | 0x100, 0),
        ] {
            let refused = asked(domain, kind, protocol).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EACCES), "{domain} {kind} {protocol}");
        }
    }

    #[test]
    fn a_client_gets_through_at_listed_ports_only() {
        let wanted = RequestedSocket { is_v6: false, nonblocking: false, close_on_exec: true };
        if sys::network::refuse_clients(&wanted.open().unwrap(), &ListenPorts::Listed(Vec::new())).is_err() {
            eprintln!(
                "skipped a_client_gets_through_at_listed_ports_only: filters of TCP sockets need CAP_NET_ADMIN here"
            );
            return;
        }
        let port = {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap().port()
        };
        for (ports, reached) in [
            (ListenPorts::Listed(vec![1, port]), true),
            (ListenPorts::Listed(vec![port ^ 1]), false),
            (ListenPorts::Listed(Vec::new()), false),
            (ListenPorts::Any, true),
        ] {
            let socket = wanted.make(&ports).unwrap();
            rustix::net::sockopt::set_socket_reuseaddr(&socket, true).unwrap();
            let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
            rustix::net::bind(&socket, &address).unwrap();
            rustix::net::listen(&socket, 8).unwrap();
            let limit = std::time::Duration::from_millis(300);
            let client = std::net::TcpStream::connect_timeout(&address, limit);
            assert_eq!(client.is_ok(), reached, "{ports:?}");
        }
    }
}
