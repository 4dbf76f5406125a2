//! go-plugin's AutoMTLS: both sides create a certificate for one process and send it to the other, the
//! supervisor's in `PLUGIN_CLIENT_CERT`, the plugin's in the sixth field of the handshake line. Each accepts
//! only the other's.
//!
//! The certificates are self-signed, and go-plugin's are CA and server certificates at once, which any
//! standard verification refuses. The check here is stricter: the server's certificate equals the one in the
//! line byte for byte, and the server proves that it has the key. Dates and names in it are therefore
//! irrelevant.

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

use super::error::TlsError;
use super::identity_record::IdentityRecord;
use super::stream::PlainStream;

/// The name in go-plugin's certificates; its programs expect it as the server name.
const SERVER_NAME: &str = "localhost";

/// The protocol on the encrypted connection: HTTP/2.
const ALPN: &[u8] = b"h2";

/// The encoding of go-plugin's certificates. Padding is tolerated, because some implementations cannot omit
/// it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// An encrypted connection. Boxed: its state is large, and most connections are not encrypted.
pub(crate) type EncryptedStream = Box<TlsStream<PlainStream>>;

/// The client certificate for one process and its key; created for that process and dropped with it.
pub struct ClientIdentity {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

/// TLS with one process.
#[derive(Clone)]
pub struct Tls(TlsConnector);

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
    /// Creates a certificate, and its PEM text for `PLUGIN_CLIENT_CERT`. A 256-bit curve: a hundredth of the
    /// work of go-plugin's own 521-bit curve, and its programs accept it.
    pub fn make() -> Result<(Self, String), TlsError> {
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

    /// The certificate and its key, for the next supervisor.
    pub fn hand_over(&self) -> IdentityRecord {
        IdentityRecord {
            certificate: hex::encode(&self.certificate),
            key: hex::encode(self.key.secret_pkcs8_der()),
        }
    }

    /// The certificate of the previous supervisor. An invalid certificate or key is noticed when it is used.
    pub fn take_over(handed: &IdentityRecord) -> Result<Self, TlsError> {
        let unread = |_| TlsError::Make("what was handed over of it cannot be read".into());
        Ok(Self {
            certificate: hex::decode(&handed.certificate).map_err(unread)?.into(),
            key: hex::decode(&handed.key).map_err(unread)?.into(),
        })
    }

    /// TLS with the server whose certificate is `field`, the sixth of the handshake, whose length is bounded.
    pub fn with_server(&self, field: &str) -> Result<Tls, TlsError> {
        let wrong = |problem| TlsError::Certificate { problem };
        let der = BASE64.decode(field).map_err(|_| wrong("is not base64"))?;
        let pinned = CertificateDer::from(der);
        ParsedCertificate::try_from(&pinned).map_err(|_| wrong("is no X.509 certificate"))?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = PinnedVerifier { pinned, provider: provider.clone() };
        let failed = |error: rustls::Error| TlsError::Make(Raw::of(&error).line());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_auth_cert(vec![self.certificate.clone()], PrivateKeyDer::Pkcs8(self.key.clone_key()))
            .map_err(failed)?;
        config.alpn_protocols = vec![ALPN.to_owned()];
        // Every connection presents the certificates again; a process has only one or a few connections in
        // its life.
        config.resumption = Resumption::disabled();
        Ok(Tls(TlsConnector::from(Arc::new(config))))
    }
}

impl Tls {
    /// Performs the TLS handshake on a new connection.
    pub async fn secure(&self, io: PlainStream) -> Result<EncryptedStream, TlsError> {
        let name =
            ServerName::try_from(SERVER_NAME).map_err(|error| TlsError::Failed(Raw::of(&error).line()))?;
        // Boxed from the start: otherwise every future that connects would include it.
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

/// Accepts exactly one certificate.
#[derive(Debug)]
struct PinnedVerifier {
    pinned: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedVerifier {
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
