//! Refuses connections to this machine by a public address of its own.
//!
//! Such an address passes the check of addresses, and the services that listen there may be meant for this
//! machine alone. Which addresses are this machine's is known once there is a connection: both ends have the
//! same one then. So the check is a layer around the HTTP client's connector, before a request is sent.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connection, HttpInfo};
use talon_public_address::is_same_machine;
use tower_layer::Layer;
use tower_service::Service;

/// A host that is this machine.
#[derive(Debug, thiserror::Error)]
#[error("{0} is an address of this machine; this plugin fetches from other machines only")]
pub(crate) struct SameMachineError(IpAddr);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The layer around a connector.
#[derive(Debug, Clone)]
pub(crate) struct RefuseSameMachine {
    /// Whether to refuse nothing.
    pub(crate) allow: bool,
}

impl<S> Layer<S> for RefuseSameMachine {
    type Service = CheckedConnector<S>;

    fn layer(&self, connector: S) -> CheckedConnector<S> {
        CheckedConnector { connector, allow: self.allow }
    }
}

/// A connector whose connections are checked.
#[derive(Debug, Clone)]
pub(crate) struct CheckedConnector<S> {
    connector: S,
    allow: bool,
}

impl<S, Target> Service<Target> for CheckedConnector<S>
where
    S: Service<Target, Error = BoxError>,
    S::Response: Connection,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(cx)
    }

    fn call(&mut self, target: Target) -> Self::Future {
        let connecting = self.connector.call(target);
        let allow = self.allow;
        Box::pin(async move {
            let connection = connecting.await?;
            if !allow && let Some(address) = own_address(&connection)? {
                return Err(SameMachineError(address).into());
            }
            Ok(connection)
        })
    }
}

/// The address of the other end, if it is this machine's.
///
/// # Errors
/// When the connector does not say where it is connected to.
fn own_address(connection: &impl Connection) -> Result<Option<IpAddr>, BoxError> {
    let mut facts = http::Extensions::new();
    connection.connected().get_extras(&mut facts);
    let ends = facts.get::<HttpInfo>().ok_or("the connection does not say where it leads")?;
    let (peer, own) = (ends.remote_addr().ip(), ends.local_addr().ip());
    Ok(is_same_machine(peer, own).then_some(peer))
}
