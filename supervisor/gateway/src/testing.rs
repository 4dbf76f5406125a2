//! The router over given connections, without a supervisor that hands them over: for tests of the API against a real `agent.sock` and
//! `host.sock`. Nothing of the program uses it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::app::App;
use crate::backends::{Backends, ConnectBackend};
use crate::identity::{Authenticate, AuthenticateError, Caller, Credential, Role};
use crate::listener::{Certificates, Server, serve};
use crate::router::router;
use crate::settings::{Limits, Settings};

/// Limits that no test meets by accident.
pub const TEST_LIMITS: Limits = Limits {
    connections: 4096,
    connections_per_address: 4096,
    header_timeout: Duration::from_secs(30),
    body_timeout: Duration::from_secs(30),
    unread_timeout: Duration::from_secs(30),
    body_bytes: 16 << 20,
    requests_per_minute: 1_000_000,
    requests_per_minute_per_address: 1_000_000,
    websockets: 4096,
    websockets_per_caller: 4096,
    messages_per_websocket: 4096,
    background_turns: 4096,
};

/// Callers by their secret: what the supervisor knows otherwise.
#[derive(Debug, Default)]
pub struct FixedCallers(BTreeMap<String, ([u8; 32], Caller)>);

impl FixedCallers {
    /// This secret (`talon_ID_SECRET`) stands for this caller.
    ///
    /// # Panics
    /// If the secret is none.
    #[must_use]
    pub fn with(mut self, secret: &str, caller: Caller) -> Self {
        let credential = Credential::parse(secret).expect("the secret is talon_ID_SECRET");
        self.0.insert(credential.id().to_owned(), (*credential.digest(), caller));
        self
    }
}

#[async_trait]
impl Authenticate for FixedCallers {
    async fn caller(&self, credential: &Credential) -> Result<Caller, AuthenticateError> {
        match self.0.get(credential.id()) {
            Some((digest, caller)) if digest == credential.digest() => Ok(caller.clone()),
            _ => Err(AuthenticateError::Invalid),
        }
    }
}

/// Settings for this address.
#[must_use]
pub fn test_settings(address: SocketAddr) -> Settings {
    Settings {
        address,
        tls: false,
        hears_all: false,
        names: Vec::new(),
        routes: Default::default(),
        auth: Default::default(),
        hosts: Vec::new(),
        origins: Vec::new(),
        proxies: Vec::new(),
        max_role: Role::Admin,
        tokens: true,
        limits: TEST_LIMITS,
    }
}

/// A gateway on a port of its own; it ends when it is dropped.
#[derive(Debug)]
pub struct TestGateway {
    /// Where it serves.
    pub address: SocketAddr,
    _ending: DropGuard,
}

impl TestGateway {
    /// Serves the router over these connections. `change` may set other settings.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start(
        connector: Arc<dyn ConnectBackend>,
        callers: FixedCallers,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let mut settings = test_settings(address);
        change(&mut settings);
        let ending = CancellationToken::new();
        let app = App::new(settings, Backends::new(&connector), Arc::new(callers), ending.clone());
        let server = Server::new(router(app.clone()), app, Arc::<Certificates>::default());
        tokio::spawn(serve(listener, server));
        Self { address, _ending: ending.drop_guard() }
    }
}

/// The router alone, for requests without a connection: insert a [`ConnectedFrom`](crate::identity::ConnectedFrom) into each.
pub fn test_router(app: &App) -> Router {
    router(app.clone())
}
