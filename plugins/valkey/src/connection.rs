//! A connection to the server, of which it is known that it keeps what it acknowledges.

use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisError};
use talon_sink::connection::{ConnectError, Stream, connect};
use talon_sink::peer_text::one_line;
use talon_sink::trust::{TlsError, Trust};
use tokio::net::UnixStream;
use tokio_util::task::AbortOnDropHandle;

use crate::durability::{self, DurabilityError};
use crate::loading::{Loading, is_loading};
use crate::settings::{Durability, Server, ServerAddress};

/// How long the server's settings are believed: somebody may change them while it runs.
const BELIEVED_FOR: Duration = Duration::from_secs(30);

/// Why there is no connection. The texts are one bounded line each.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("{0}")]
    Connect(#[from] ConnectError),
    #[error(
        "cannot connect to the socket: {0}; see whether `sandbox.fs.write` grants it, or the directory that it lies in"
    )]
    Socket(#[from] std::io::Error),
    #[error("{0}")]
    Tls(#[from] TlsError),
    #[error("{0}")]
    Loading(#[from] Loading),
    #[error("the server refuses the connection: {}", one_line(&.0.to_string()))]
    Login(RedisError),
    #[error("{0}")]
    Durability(#[from] DurabilityError),
}

/// One connection. It serves one operation at a time, since a transaction watches on its connection.
pub(crate) struct Connection {
    pub(crate) redis: MultiplexedConnection,
    checked: Instant,
    _driver: AbortOnDropHandle<()>,
}

impl Connection {
    /// Connects, logs in, and asks what the server promises.
    pub(crate) async fn open(
        server: &Server,
        password: Option<&str>,
        trust: Option<&Trust>,
    ) -> Result<Self, OpenError> {
        let stream: Box<dyn Stream> = match &server.address {
            ServerAddress::Socket(path) => Box::new(UnixStream::connect(path).await?),
            ServerAddress::Host(endpoint) => {
                let stream = connect(endpoint).await?;
                if server.tls {
                    trust.ok_or(TlsError::NoRoots)?.connect(&endpoint.host, stream).await?
                } else {
                    stream
                }
            }
        };
        let mut info = RedisConnectionInfo::default().set_db(server.database);
        if let Some(password) = password {
            info = info.set_password(password);
        }
        if let Some(username) = &server.username {
            info = info.set_username(username);
        }
        // One operation has one timeout, around everything.
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        // The driver has to run while the login waits for answers: `new` drives both.
        let opened = MultiplexedConnection::new_with_config(&info, stream, config).await;
        let (redis, driver) = opened.map_err(|error| match is_loading(&error) {
            true => OpenError::Loading(Loading),
            false => OpenError::Login(error),
        })?;
        let driver = AbortOnDropHandle::new(tokio::spawn(driver));
        let mut connection = Self { redis, checked: Instant::now(), _driver: driver };
        connection.check(server).await?;
        Ok(connection)
    }

    /// Asks again what the server promises, if that was long ago.
    pub(crate) async fn check_again(&mut self, server: &Server) -> Result<(), OpenError> {
        if self.checked.elapsed() < BELIEVED_FOR { Ok(()) } else { self.check(server).await }
    }

    async fn check(&mut self, server: &Server) -> Result<(), OpenError> {
        if server.durability == Durability::Strict {
            match durability::check(&mut self.redis).await {
                Err(DurabilityError::Unknown(error)) if is_loading(&error) => return Err(Loading.into()),
                checked => checked?,
            }
        }
        self.checked = Instant::now();
        Ok(())
    }
}
