//! Which certificates this machine trusts; TLS to a host.

use std::io;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::connection::Stream;
use crate::peer_text::one_line;

/// Why there is no TLS. The texts are one bounded line each, and may be shown.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// There is nothing to check a certificate against.
    #[error(
        "this machine trusts no certificates, so TLS cannot be used: install ca-certificates, or name a file in sandbox.ca_file"
    )]
    NoRoots,
    /// No certificate has such a name.
    #[error("{0:?} is no name that a certificate could have")]
    Name(String),
    /// The handshake failed.
    #[error("TLS with {host} failed: {}", handshake_text(source))]
    Handshake {
        /// With whom.
        host: String,
        /// Why.
        source: io::Error,
    },
}

/// What a plugin trusts: `SSL_CERT_FILE`, which a supervisor sets for `sandbox.ca_file`, or the system's certificates.
#[derive(Clone)]
pub struct Trust {
    certificates: Vec<CertificateDer<'static>>,
    connector: TlsConnector,
}

impl Trust {
    /// Reads the certificates.
    ///
    /// # Errors
    /// [`TlsError::NoRoots`].
    pub fn load() -> Result<Self, TlsError> {
        let found = rustls_native_certs::load_native_certs().certs;
        let mut roots = RootCertStore::empty();
        let certificates: Vec<_> =
            found.into_iter().filter(|certificate| roots.add(certificate.clone()).is_ok()).collect();
        if certificates.is_empty() {
            return Err(TlsError::NoRoots);
        }
        // Named here rather than taken from the process: there is one provider, and nothing installs another.
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { certificates, connector: TlsConnector::from(Arc::new(config)) })
    }

    /// The certificates that can be used, for a library with a TLS configuration of its own.
    #[must_use]
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    /// TLS on a connection, with the certificate of this host.
    ///
    /// # Errors
    /// [`TlsError`].
    pub async fn connect(&self, host: &str, stream: Box<dyn Stream>) -> Result<Box<dyn Stream>, TlsError> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Name(one_line(host)))?;
        let connected = self.connector.connect(name, stream).await;
        Ok(Box::new(connected.map_err(|source| TlsError::Handshake { host: one_line(host), source })?))
    }
}

/// Why a handshake failed, in the words of TLS if the error has any, with what to do about an authority that is not trusted.
#[must_use]
pub fn handshake_text(error: &(dyn std::error::Error + 'static)) -> String {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    let Some(refused) = causes.find_map(tls_error) else { return one_line(&error.to_string()) };
    let mut text = one_line(&refused.to_string());
    if matches!(refused, rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) {
        text.push_str(" (if its authority is a private one, name its certificates in sandbox.ca_file)");
    }
    text
}

/// The error of TLS that an error is, or that an `io::Error` was made of.
fn tls_error<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    match inner {
        Some(inner) => inner.downcast_ref(),
        None => error.downcast_ref(),
    }
}
