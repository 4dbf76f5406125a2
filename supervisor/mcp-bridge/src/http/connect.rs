//! Connections to one server: through the supervisor's proxy if there is one, with TLS if the URL is https.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use talon_bridge::text::cut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use super::address::Address;

/// Where the supervisor's proxy listens (docs/egress.md).
const PROXY_VARIABLE: &str = "TALON_PROXY_SOCKET";
/// How long a connection may take, TLS included. The proxy needs up to 20 s for a slow name and a slow host
/// together, and its answer then says which of them it was.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(25);
/// The largest head of the proxy's response, and how much of its text is shown.
const MAX_HEAD_BYTES: usize = 8 << 10;
const MAX_REFUSAL_BYTES: u64 = 1000;

/// Any connection.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection for hyper.
pub(crate) struct Conn(TokioIo<Box<dyn Stream>>);

/// Connects to one address, whatever URI is requested.
#[derive(Clone)]
pub(crate) struct Connector {
    place: Arc<str>,
    proxy: Option<Arc<PathBuf>>,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("its host is no name that a certificate could have")]
    Name,
    #[error("this machine trusts no certificates, so https cannot be used: install ca-certificates")]
    NoRoots,
    #[error("TLS cannot be set up: {0}")]
    Provider(#[from] rustls::Error),
}

impl Connector {
    pub(crate) fn new(address: &Address) -> Result<Self, TlsError> {
        let tls = if address.tls() { Some(tls(address)?) } else { None };
        let proxy = std::env::var_os(PROXY_VARIABLE).filter(|path| !path.is_empty());
        Ok(Self { place: address.authority().into(), proxy: proxy.map(|path| Arc::new(path.into())), tls })
    }

    async fn connect(self) -> io::Result<Conn> {
        let connecting = async {
            let stream: Box<dyn Stream> = match &self.proxy {
                Some(proxy) => Box::new(tunnel(proxy, &self.place).await?),
                None => {
                    let stream = TcpStream::connect(&*self.place).await?;
                    stream.set_nodelay(true)?;
                    Box::new(stream)
                }
            };
            match self.tls {
                Some((tls, name)) => {
                    let stream: Box<dyn Stream> =
                        Box::new(tls.connect(name, stream).await.map_err(with_advice)?);
                    Ok::<_, io::Error>(stream)
                }
                None => Ok(stream),
            }
        };
        let place = &self.place;
        match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(Ok(stream)) => Ok(Conn(TokioIo::new(stream))),
            Ok(Err(error)) => {
                Err(io::Error::new(error.kind(), format!("cannot connect to {place}: {error}")))
            }
            Err(_) => {
                Err(io::Error::new(io::ErrorKind::TimedOut, format!("cannot connect to {place} within 25 s")))
            }
        }
    }
}

fn tls(address: &Address) -> Result<(TlsConnector, ServerName<'static>), TlsError> {
    let name = ServerName::try_from(address.host().to_owned()).map_err(|_| TlsError::Name)?;
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (trusted, _unreadable) = roots.add_parsable_certificates(found.certs);
    if trusted == 0 {
        return Err(TlsError::NoRoots);
    }
    // Named here rather than taken from the process: there is only one provider, and no other code installs
    // one.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok((TlsConnector::from(Arc::new(config)), name))
}

/// Adds what to do about a certificate of an authority that is not trusted.
fn with_advice(error: io::Error) -> io::Error {
    use rustls::{CertificateError, Error};

    let refused = error.get_ref().and_then(|source| source.downcast_ref::<Error>());
    match refused {
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            let text = format!(
                "{error} (if its authority is a private one, name the certificates in sandbox.ca_file)"
            );
            io::Error::new(error.kind(), text)
        }
        _ => error,
    }
}

/// Asks the proxy for a tunnel to `host:port`.
async fn tunnel(proxy: &PathBuf, place: &str) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(proxy).await?;
    stream.write_all(format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n").as_bytes()).await?;
    let mut head = Vec::new();
    // Byte by byte: what comes after the head belongs to the stream.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == MAX_HEAD_BYTES {
            return Err(io::Error::other("the proxy's answer has no end"));
        }
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head);
    let status = head.lines().next().unwrap_or_default();
    if status.split_whitespace().nth(1) == Some("200") {
        return Ok(stream);
    }
    let mut text = Vec::new();
    stream.take(MAX_REFUSAL_BYTES).read_to_end(&mut text).await?;
    let text = String::from_utf8_lossy(&text);
    let said = if text.trim().is_empty() { status } else { text.trim() };
    // 403 is the list of allowed hosts; else the host does not resolve, or does not answer.
    let forbidden = status.split_whitespace().nth(1) == Some("403");
    let kind = if forbidden { io::ErrorKind::PermissionDenied } else { io::ErrorKind::HostUnreachable };
    Err(io::Error::new(kind, cut(said, 1000)))
}

impl tower_service::Service<Uri> for Connector {
    type Response = Conn;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Conn>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().connect())
    }
}

impl Connection for Conn {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl hyper::rt::Read for Conn {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl hyper::rt::Write for Conn {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
