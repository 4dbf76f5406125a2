//! One connection to one host: through the supervisor's proxy if there is one.

use std::fmt;
use std::path::PathBuf;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

pub use crate::endpoint::{ConnectError, Endpoint};
use crate::proxy;

/// The variable with the path of the supervisor's proxy (docs/egress.md).
const PROXY_VARIABLE: &str = "TALON_PROXY_SOCKET";

/// Any connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin + fmt::Debug {}
impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin + fmt::Debug> Stream for S {}

/// Connects to an endpoint. It has no time limit of its own: a sink has one for the whole delivery.
///
/// # Errors
/// [`ConnectError`].
pub async fn connect(endpoint: &Endpoint) -> Result<Box<dyn Stream>, ConnectError> {
    let unreachable = |source| ConnectError::Unreachable { endpoint: endpoint.clone(), source };
    let socket = std::env::var_os(PROXY_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    if let Some(socket) = socket {
        return Ok(Box::new(proxy::tunnel(&socket, endpoint).await?));
    }
    let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await.map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    Ok(Box::new(stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_shown_as_the_proxy_reads_it() {
        let endpoint = |host: &str| Endpoint { host: host.to_owned(), port: 443 }.to_string();
        assert_eq!(endpoint("example.org"), "example.org:443");
        assert_eq!(endpoint("2001:db8::1"), "[2001:db8::1]:443");
    }

    #[tokio::test]
    async fn nobody_at_home_is_said_with_the_place() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("bound").local_addr().expect("one");
        let endpoint = Endpoint { host: "127.0.0.1".to_owned(), port: free.port() };
        let error = connect(&endpoint).await.expect_err("nobody listens").to_string();
        assert!(error.starts_with(&format!("cannot connect to {free}: ")), "{error}");
    }
}
