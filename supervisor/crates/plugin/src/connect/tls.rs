//! go-plugin's AutoMTLS: both sides make a certificate for one process and send it to the other, ours in
//! `PLUGIN_CLIENT_CERT`, theirs in the sixth field of the handshake line. Each takes the other's and no other.
//!
//! No authority has signed them, and go-plugin's own are an authority and a server's at once, which every usual
//! verification refuses. What is verified here is more: the server's certificate is the very one of the line, byte for byte,
//! and whoever shows it has its key. Dates and names in it then mean nothing.

use std::fmt;
use std::io;
use std::sync::Arc;

use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, PKCS_ECDSA_P256_SHA256,
};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, SignatureScheme};
use talon_sanitize::Raw;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Plain, TlsError};
use crate::handover::HandedIdentity;

/// The name that go-plugin's certificates are for, and that its programs expect to be asked for.
const SERVER_NAME: &str = "localhost";

/// What is spoken on the encrypted connection: HTTP/2.
const ALPN: &[u8] = b"h2";

/// How go-plugin writes a certificate; it tolerates padding, as some who write it do not know how to leave it out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A connection that was encrypted. Its state is large, and most connections have none.
pub(crate) type Secured = Box<TlsStream<Plain>>;

/// Who we are to one process: a certificate and its key, made for that process and forgotten with it.
pub(crate) struct ClientIdentity {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

/// TLS with one process.
#[derive(Clone)]
pub(crate) struct Tls(TlsConnector);

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientIdentity")
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl ClientIdentity {
    /// A new one, and its certificate as programs of go-plugin read it in `PLUGIN_CLIENT_CERT`. A curve of 256 bits: a hundredth of the work of go-plugin's own 521, and its programs take it.
    pub(crate) fn make() -> Result<(Self, String), TlsError> {
        let failed = |error: rcgen::Error| TlsError::Make(Raw::of(&error).line());
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let mut params = CertificateParams::new([SERVER_NAME.to_owned()]).map_err(failed)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, SERVER_NAME);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.self_signed(&key).map_err(failed)?;
        let pem = certificate.pem();
        Ok((Self { certificate: certificate.into(), key: key.serialize_der().into() }, pem))
    }

    /// The certificate and its key, for another supervisor to be the same.
    pub(crate) fn hand_over(&self) -> HandedIdentity {
        HandedIdentity {
            certificate: hex::encode(&self.certificate),
            key: hex::encode(self.key.secret_pkcs8_der()),
        }
    }

    /// The one that another supervisor was. What is no certificate or no key shows when it is used.
    pub(crate) fn take_over(handed: &HandedIdentity) -> Result<Self, TlsError> {
        let unread = |_| TlsError::Make("what was handed over of it cannot be read".into());
        Ok(Self {
            certificate: hex::decode(&handed.certificate).map_err(unread)?.into(),
            key: hex::decode(&handed.key).map_err(unread)?.into(),
        })
    }

    /// TLS with the server whose certificate is `field`, the sixth of a handshake. The line bounds its length.
    pub(crate) fn with_server(&self, field: &str) -> Result<Tls, TlsError> {
        let wrong = |problem| TlsError::Certificate { problem };
        let der = BASE64.decode(field).map_err(|_| wrong("is not base64"))?;
        let pinned = CertificateDer::from(der);
        ParsedCertificate::try_from(&pinned).map_err(|_| wrong("is no X.509 certificate"))?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = Pinned { pinned, provider: provider.clone() };
        let failed = |error: rustls::Error| TlsError::Make(Raw::of(&error).line());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_auth_cert(vec![self.certificate.clone()], PrivateKeyDer::Pkcs8(self.key.clone_key()))
            .map_err(failed)?;
        config.alpn_protocols = vec![ALPN.to_owned()];
        // Every connection shows the certificates anew; there is one, or a handful, in a process's life.
        config.resumption = Resumption::disabled();
        Ok(Tls(TlsConnector::from(Arc::new(config))))
    }
}

impl Tls {
    /// Shakes hands on a new connection.
    pub(crate) async fn secure(&self, io: Plain) -> Result<Secured, TlsError> {
        let name =
            ServerName::try_from(SERVER_NAME).map_err(|error| TlsError::Failed(Raw::of(&error).line()))?;
        // On the heap from the start: it would be a part of every future that connects.
        Box::pin(self.0.connect(name, io)).await.map(Box::new).map_err(|error| failure(&error))
    }
}

fn failure(error: &io::Error) -> TlsError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)) => {
            TlsError::OtherCertificate
        }
        _ => TlsError::Failed(Raw::of(error).line()),
    }
}

/// Takes one certificate and no other.
#[derive(Debug)]
struct Pinned {
    pinned: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if shown.as_ref() == self.pinned.as_ref() {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
