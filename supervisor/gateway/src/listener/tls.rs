//! The certificate. The supervisor reads it and hands it over, again at each reload; connections to come get the new one.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use tokio_rustls::TlsAcceptor;

/// The protocol that is spoken within TLS.
const ALPN: &[u8] = b"http/1.1";

/// Why a certificate is not used. The text ends with what to do next.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is no PEM of that kind.
    #[error("{what} is not PEM of its kind ({source}): see gateway.tls")]
    Pem {
        /// Which of both.
        what: &'static str,
        /// Why.
        source: pem::Error,
    },
    /// The file has no certificate.
    #[error("gateway.tls.certificate has no certificate: put the server's first, then those that signed it")]
    NoCertificate,
    /// They do not fit together.
    #[error(
        "the certificate and its key are not usable ({0}): see whether gateway.tls.key belongs to gateway.tls.certificate"
    )]
    Unusable(#[from] rustls::Error),
}

/// The certificate of connections to come; none: plain HTTP.
#[derive(Debug, Default)]
pub struct Certificates(ArcSwapOption<ServerConfig>);

impl Certificates {
    /// Replaces it, by a chain and its private key as PEM.
    ///
    /// # Errors
    /// [`TlsError`]; the one before stays.
    pub fn set(&self, chain: &[u8], key: &[u8]) -> Result<(), TlsError> {
        let pem = |what| move |source| TlsError::Pem { what, source };
        let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(pem("gateway.tls.certificate"))?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate);
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(pem("gateway.tls.key"))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        self.0.store(Some(Arc::new(config)));
        Ok(())
    }

    /// Removes it: connections to come are plain HTTP.
    pub fn clear(&self) {
        self.0.store(None);
    }

    /// What accepts a TLS connection; `None`: plain HTTP.
    pub(super) fn acceptor(&self) -> Option<TlsAcceptor> {
        self.0.load_full().map(TlsAcceptor::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_is_none_changes_nothing() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let certificates = Certificates::default();
        assert!(certificates.acceptor().is_none());
        assert!(matches!(certificates.set(b"", key.as_bytes()), Err(TlsError::NoCertificate)));
        assert!(matches!(certificates.set(chain.as_bytes(), b""), Err(TlsError::Pem { .. })));
        let mismatch = certificates.set(chain.as_bytes(), other.signing_key.serialize_pem().as_bytes());
        assert!(matches!(mismatch, Err(TlsError::Unusable(_))), "{mismatch:?}");
        assert!(certificates.acceptor().is_none());
        certificates.set(chain.as_bytes(), key.as_bytes()).unwrap();
        assert!(certificates.acceptor().is_some());
        certificates.clear();
        assert!(certificates.acceptor().is_none());
    }
}
