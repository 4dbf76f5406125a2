//! Makes a connection pool from an address.

use std::str::FromStr as _;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::Address;
use super::timeouts::{MAX_CONNECT, MAX_LOCK, MAX_STATEMENT, MAX_WAIT};
use super::tls;
use crate::open_error::OpenError;

pub(super) fn pool(url: &str, connections: usize) -> Result<(Pool, String), OpenError> {
    let address = Address::parse(url);
    // The error does not repeat the address, which may contain a password.
    let mut config = Config::from_str(&address.rest)
        .map_err(|error| OpenError::Server(talon_error_chain::error_chain(&error)))?;
    let tls = tls_config(&mut config, &address)?;
    let place = location(&config);
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
    // A closed connection is detected without asking, which would cost a round trip each time.
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = match tls {
        Some(tls) => Manager::from_config(config, tls, recycling),
        None => Manager::from_config(config, NoTls, recycling),
    };
    Pool::builder(manager)
        .max_size(connections)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(MAX_WAIT))
        .create_timeout(Some(MAX_CONNECT))
        .recycle_timeout(Some(MAX_CONNECT))
        .build()
        .map(|pool| (pool, place))
        .map_err(|error| OpenError::Server(talon_error_chain::error_chain(&error)))
}

/// The TLS settings: none, or with verification of the server's certificate.
fn tls_config(config: &mut Config, address: &Address) -> Result<Option<MakeRustlsConnect>, OpenError> {
    let refused = |why: String| Err(OpenError::Server(why));
    match address.ssl_mode.as_deref() {
        Some("require" | "verify-full") => {
            // A certificate is for a host name.
            let hosts = config.get_hosts();
            if hosts.is_empty() || hosts.iter().any(|host| !matches!(host, Host::Tcp(_))) {
                return refused(
                    "TLS needs the name of a host: a unix socket has none, so leave `sslmode` away there"
                        .to_owned(),
                );
            }
            config.ssl_mode(SslMode::Require);
            return tls::connector(address.root_cert.as_deref()).map(Some);
        }
        None | Some("prefer" | "disable") => {}
        Some(other) => {
            return refused(format!(
                "`sslmode={other}` is not known here: `verify-full` has TLS to a server that is verified, `disable` has none"
            ));
        }
    }
    if address.root_cert.is_some() {
        return refused("`sslrootcert` says nothing without `sslmode=verify-full`".to_owned());
    }
    config.ssl_mode(SslMode::Disable);
    let remote = config.get_hosts().iter().find_map(|host| match host {
        Host::Tcp(name) if !is_local(name) => Some(name),
        _ => None,
    });
    match remote {
        // Data never goes over a network unencrypted unless this was configured explicitly.
        Some(name) if address.ssl_mode.as_deref() != Some("disable") => refused(format!(
            "{name} is another machine: say `sslmode=verify-full` (and `sslrootcert=FILE` for an authority of your own), or `sslmode=disable` if that network is yours alone"
        )),
        _ => Ok(None),
    }
}

fn is_local(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The location of the database, for status: without the user, the password and other options of the address.
fn location(config: &Config) -> String {
    let port = |at: usize| config.get_ports().get(at).or(config.get_ports().last()).copied().unwrap_or(5432);
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(at, host)| match host {
            Host::Tcp(name) => format!("{name}:{}", port(at)),
            Host::Unix(directory) => directory.display().to_string(),
        })
        .collect();
    // The default name of a database is the user's name, which is no secret either.
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("{}/{database}", hosts.join(","))
}
