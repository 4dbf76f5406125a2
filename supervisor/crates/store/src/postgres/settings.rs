//! From an address to a pool of connections.

use std::str::FromStr as _;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Config, NoTls};

use crate::open::OpenError;

/// How long a connection may take. A server that is there answers in milliseconds; every call waits at most this once
/// before the others fail at once.
const MAX_CONNECT: Duration = Duration::from_secs(3);
/// How long a call waits for a free connection.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(10);
/// How long a call waits for another that holds the same row. Transactions here take milliseconds.
pub(super) const MAX_LOCK: Duration = Duration::from_secs(5);
/// How long one statement may take. None needs seconds; one that does is ended by the server.
const MAX_STATEMENT: Duration = Duration::from_secs(30);

pub(super) fn pool(url: &str, connections: usize) -> Result<Pool, OpenError> {
    // The error does not repeat the address, in which there may be a password.
    let mut config = Config::from_str(url).map_err(|error| OpenError::Server(super::error::chain(&error)))?;
    check(&config)?;
    let promised = format!(
        "-c synchronous_commit=on -c lock_timeout={} -c statement_timeout={} -c client_encoding=UTF8",
        MAX_LOCK.as_millis(),
        MAX_STATEMENT.as_millis()
    );
    let options = config.get_options().map_or_else(|| promised.clone(), |own| format!("{own} {promised}"));
    config.options(options);
    if config.get_application_name().is_none() {
        config.application_name("talon");
    }
    config.connect_timeout(MAX_CONNECT);
    // A connection that is closed is known to be; asking each time would cost a round trip.
    let manager =
        Manager::from_config(config, NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
    Pool::builder(manager)
        .max_size(connections)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(MAX_WAIT))
        .create_timeout(Some(MAX_CONNECT))
        .recycle_timeout(Some(MAX_CONNECT))
        .build()
        .map_err(|error| OpenError::Server(super::error::chain(&error)))
}

/// There is no TLS in this program. Whoever wants it is told so, and nobody's state goes over a network in the clear
/// unless it was said in so many words.
fn check(config: &Config) -> Result<(), OpenError> {
    let fix = "connect through a unix socket or a local tunnel";
    if config.get_ssl_mode() == SslMode::Require {
        return Err(OpenError::Server(format!(
            "`sslmode=require` needs TLS, which Talon does not have: {fix}"
        )));
    }
    let remote = config.get_hosts().iter().find_map(|host| match host {
        Host::Tcp(name) if !is_local(name) => Some(name),
        _ => None,
    });
    match remote {
        Some(name) if config.get_ssl_mode() != SslMode::Disable => Err(OpenError::Server(format!(
            "{name} is another machine, and Talon has no TLS: {fix}, or say `sslmode=disable` if that network is yours alone"
        ))),
        _ => Ok(()),
    }
}

fn is_local(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
