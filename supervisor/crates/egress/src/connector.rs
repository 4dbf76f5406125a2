//! Resolves and connects to an allowed target.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use talon_plugin_config::allow_list::AllowList;
use talon_plugin_config::host_port::{Host, HostPort};
use talon_public_address::{is_public, is_same_machine};

/// The time limit for resolving a name. Resolvers try each server for 5 s, so a second server gets its turn.
/// After it the request is answered with 504.
pub const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit for connecting, all addresses of a name together. 10 s: room for TCP's first tries, which
/// are sent at 0, 1, 3 and 7 s. After it the request is answered with 504.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The most lookups of one plugin at once. Each of them blocks a thread until the resolver returns, and the
/// supervisor has 512 such threads. With 4, sixty plugins with a dead resolver cannot take all of them.
/// Further lookups wait, within [`LOOKUP_TIMEOUT`].
pub const MAX_LOOKUPS: usize = 4;

/// The most addresses of a name that are tried. 8: large services have four to eight. Further ones are
/// ignored.
const MAX_ADDRESSES: usize = 8;

/// Why a connection failed.
#[derive(Debug)]
pub(super) enum ConnectorError {
    /// The name only leads to these addresses, which are not public.
    NotPublic(Vec<IpAddr>),
    /// The name cannot be resolved.
    Lookup(io::Error),
    /// No address accepts the connection.
    Connect(io::Error),
    /// A time limit passed; the text names the phase.
    Timeout(&'static str),
}

/// Connects to allowed targets, for one plugin.
#[derive(Debug)]
pub(super) struct Connector {
    allowed: AllowList,
    lookups: Arc<Semaphore>,
}

impl Connector {
    pub(super) fn new(allowed: AllowList) -> Self {
        Self { allowed, lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)) }
    }

    pub(super) fn allows(&self, place: &HostPort) -> bool {
        self.allowed.allows(place)
    }

    /// Connects to an allowed target. A name is resolved once, so that the checked addresses are the ones
    /// connected to.
    pub(super) async fn connect(&self, place: &HostPort) -> Result<TcpStream, ConnectorError> {
        let addresses = match &place.host {
            // The exact address is on the list.
            Host::Ip(ip) => vec![SocketAddr::new(*ip, place.port)],
            Host::Name(name) => self.permitted_addresses(self.lookup(name, place.port).await?)?,
        };
        let stream = dial(&addresses).await?;
        let (peer, own) = (
            stream.peer_addr().map_err(ConnectorError::Connect)?,
            stream.local_addr().map_err(ConnectorError::Connect)?,
        );
        // The peer is this machine, by an address that may be public. A local service is not what the list
        // means.
        if is_same_machine(peer.ip(), own.ip()) && !self.allowed.names_address(peer.ip(), peer.port()) {
            return Err(ConnectorError::NotPublic(vec![peer.ip()]));
        }
        // The tunnel carries a foreign protocol; its small messages must not be delayed.
        stream.set_nodelay(true).map_err(ConnectorError::Connect)?;
        Ok(stream)
    }

    /// Keeps the addresses that a name may lead to.
    fn permitted_addresses(&self, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, ConnectorError> {
        let may = |a: &SocketAddr| is_public(a.ip()) || self.allowed.names_address(a.ip(), a.port());
        let (kept, others): (Vec<SocketAddr>, Vec<SocketAddr>) = found.into_iter().partition(may);
        if kept.is_empty() && !others.is_empty() {
            return Err(ConnectorError::NotPublic(distinct(&others)));
        }
        Ok(kept)
    }

    async fn lookup(&self, name: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectorError> {
        let asked = name.to_owned();
        let lookup = async {
            let permit = self.lookups.clone().acquire_owned().await.map_err(io::Error::other)?;
            tokio::task::spawn_blocking(move || {
                // A resolver call cannot be cancelled, not even by our timeout, so the permit is held until
                // it returns.
                let _permit = permit;
                let found = (asked.as_str(), port).to_socket_addrs()?;
                Ok(found.map(|a| SocketAddr::new(a.ip().to_canonical(), port)).take(MAX_ADDRESSES).collect())
            })
            .await
            .map_err(io::Error::other)?
        };
        match timeout(LOOKUP_TIMEOUT, lookup).await {
            Ok(found) => found.map_err(ConnectorError::Lookup),
            Err(_) => Err(ConnectorError::Timeout("its name takes too long to resolve")),
        }
    }
}

/// The addresses, each of them once: resolvers repeat one for each kind of socket.
fn distinct(addresses: &[SocketAddr]) -> Vec<IpAddr> {
    let mut distinct = Vec::new();
    for address in addresses.iter().map(SocketAddr::ip) {
        if !distinct.contains(&address) {
            distinct.push(address);
        }
    }
    distinct
}

/// Tries the addresses one after the other. Each gets an equal share of the remaining time.
async fn dial(addresses: &[SocketAddr]) -> Result<TcpStream, ConnectorError> {
    let end = Instant::now() + CONNECT_TIMEOUT;
    let mut last = ConnectorError::Lookup(io::Error::new(io::ErrorKind::NotFound, "it has no address"));
    for (left, address) in (1..=u32::try_from(addresses.len()).unwrap_or(u32::MAX)).rev().zip(addresses) {
        let now = Instant::now();
        let share = end.saturating_duration_since(now) / left;
        last = match timeout_at(now + share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => ConnectorError::Connect(error),
            Err(_) => ConnectorError::Timeout("there is no answer in time"),
        };
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(entries: &[&str]) -> Connector {
        Connector::new(
            AllowList::parse(&entries.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap(),
        )
    }

    fn found(addresses: &[&str]) -> Vec<SocketAddr> {
        addresses.iter().map(|a| a.parse().unwrap()).collect()
    }

    #[test]
    fn of_a_mixed_answer_only_public_and_named_addresses_are_left() {
        let reach = reach(&["a.example.org:443", "10.0.0.5:443"]);
        let answer = found(&["127.0.0.1:443", "1.1.1.1:443", "10.0.0.5:443", "10.0.0.6:443", "[::1]:443"]);
        assert_eq!(reach.permitted_addresses(answer).unwrap(), found(&["1.1.1.1:443", "10.0.0.5:443"]));
    }

    #[test]
    fn a_name_that_leads_inside_only_is_refused_with_the_address() {
        let reach = reach(&["a.example.org:443", "10.0.0.5:80"]);
        for inside in ["127.0.0.1:443", "169.254.169.254:443", "10.0.0.5:443", "[fd00:ec2::254]:443"] {
            let [address] = found(&[inside])[..] else { panic!() };
            let Err(ConnectorError::NotPublic(ip)) = reach.permitted_addresses(vec![address]) else {
                panic!("{inside}")
            };
            assert_eq!(ip, [address.ip()]);
        }
    }

    #[tokio::test]
    async fn the_next_address_is_tried_when_one_refuses() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let good = listener.local_addr().unwrap();
        // The port of a listener that is gone.
        let bad = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert_eq!(dial(&[bad, good]).await.unwrap().peer_addr().unwrap(), good);
        assert!(matches!(dial(&[bad]).await, Err(ConnectorError::Connect(_))));
        assert!(matches!(dial(&[]).await, Err(ConnectorError::Lookup(_))));
    }
}
