use std::sync::Arc;

use rcgen::{BasicConstraints, IsCa, KeyUsagePurpose, PKCS_ECDSA_P521_SHA512, SignatureAlgorithm};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{DistinguishedName as Name, ServerConfig};
use talon_wire::LazyWritable;
use tokio::net::UnixStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::either::Either;

use super::*;

/// Takes one client's certificate and no other, as a go-plugin program does.
#[derive(Debug)]
struct OnlyOurs(CertificateDer<'static>, Arc<CryptoProvider>);

impl ClientCertVerifier for OnlyOurs {
    fn root_hint_subjects(&self) -> &[Name] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        assert_eq!(shown.as_ref(), self.0.as_ref(), "the certificate of PLUGIN_CLIENT_CERT");
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.1.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.1.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.1.signature_verification_algorithms.supported_schemes()
    }
}

/// A certificate as go-plugin makes them, an authority and a server's at once, and its key.
struct Own {
    der: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

fn own(algorithm: &'static SignatureAlgorithm) -> Own {
    let key = KeyPair::generate_for(algorithm).unwrap();
    let mut params = CertificateParams::new([SERVER_NAME.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    let der = params.self_signed(&key).unwrap().der().clone();
    Own { der, key: PrivatePkcs8KeyDer::from(key.serialize_der()).into() }
}

impl Own {
    /// The sixth field of its handshake.
    fn field(&self) -> String {
        base64::engine::general_purpose::STANDARD_NO_PAD.encode(&self.der)
    }
}

fn made() -> ClientIdentity {
    ClientIdentity::make().unwrap().0
}

/// A server that shows a certificate, with any key.
fn server(shown: &Own, key: &Own, client: &ClientIdentity) -> TlsAcceptor {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let key = provider.key_provider.load_private_key(key.key.clone_key()).unwrap();
    let shown = Arc::new(CertifiedKey::new(vec![shown.der.clone()], key));
    let verifier = Arc::new(OnlyOurs(client.certificate.clone(), provider.clone()));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(shown)));
    config.alpn_protocols = vec![ALPN.to_owned()];
    TlsAcceptor::from(Arc::new(config))
}

/// Shakes hands with it.
async fn shake(tls: &Tls, server: &TlsAcceptor) -> Result<EncryptedStream, TlsError> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let serving = tokio::spawn(server.accept(theirs));
    let secured = tls.secure(Either::Left(LazyWritable::new(ours).unwrap())).await;
    if secured.is_ok() {
        serving.await.unwrap().unwrap();
    }
    secured
}

#[tokio::test]
async fn a_certificate_of_p_521_that_is_an_authority_and_a_servers_at_once_is_taken() {
    let (client, theirs) = (made(), own(&PKCS_ECDSA_P521_SHA512));
    let (tls, server) = (client.with_server(&theirs.field()).unwrap(), server(&theirs, &theirs, &client));
    // Each connection shakes hands for itself: nothing of an earlier one is taken up.
    for _ in 0..3 {
        let secured = shake(&tls, &server).await.unwrap();
        let (_, session) = secured.get_ref();
        assert_eq!(session.alpn_protocol(), Some(ALPN));
        assert_eq!(session.handshake_kind(), Some(rustls::HandshakeKind::Full));
    }
}

// Promises: HANDOVER-8
#[tokio::test]
async fn who_we_are_can_be_handed_over() {
    let (first, theirs) = (made(), own(&PKCS_ECDSA_P521_SHA512));
    let next = ClientIdentity::take_over(&first.hand_over()).unwrap();
    let server = server(&theirs, &theirs, &first);
    shake(&next.with_server(&theirs.field()).unwrap(), &server).await.unwrap();
    let garbage = IdentityRecord { key: "a key".to_owned(), ..first.hand_over() };
    assert!(ClientIdentity::take_over(&garbage).is_err());
    let other = IdentityRecord { key: made().hand_over().key, ..first.hand_over() };
    assert!(ClientIdentity::take_over(&other).unwrap().with_server(&theirs.field()).is_err());
    assert_eq!(format!("{other:?}"), "IdentityRecord");
}

#[tokio::test]
async fn every_connection_of_a_process_is_encrypted() {
    use talon_wire::BusyFlag;

    use crate::connect::{ConnectError, Target};
    use crate::handshake::Address;
    use crate::socket_dir::testing::scratch;

    let dir = tempfile::Builder::new().prefix("t").tempdir_in("/tmp").unwrap();
    let private = scratch(dir.path());
    let socket = private.path().join("s/plugin1");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let (client, theirs) = (made(), own(&PKCS_ECDSA_P521_SHA512));
    let tls = client.with_server(&theirs.field()).unwrap();
    let acceptor = server(&theirs, &theirs, &client);
    tokio::spawn(async move {
        let mut kept = Vec::new();
        for _ in 0..3 {
            let (stream, _) = listener.accept().await.unwrap();
            kept.push(acceptor.accept(stream).await.unwrap());
        }
        // The last one is taken and never answered.
        let _unanswered = listener.accept().await.unwrap();
        std::future::pending::<()>().await;
    });
    let uid = rustix::process::geteuid().as_raw();
    let target = Target::new(&Address::Unix(socket), &private, uid, std::process::id(), false).unwrap();
    let target = target.with_tls(Some(tls));
    let mut connections = Vec::new();
    for _ in 0..3 {
        let connection = target.connect(&BusyFlag::default()).await.unwrap();
        assert!(matches!(connection, Either::Right(_)));
        connections.push(connection);
    }
    tokio::time::pause();
    let refused = target.connect(&BusyFlag::default()).await.unwrap_err();
    assert!(matches!(refused, ConnectError::Tls(TlsError::TimedOut)), "{refused}");
}

#[tokio::test]
async fn a_certificate_other_than_that_of_the_line_is_refused() {
    let client = made();
    let (printed, shown) = (own(&PKCS_ECDSA_P521_SHA512), own(&PKCS_ECDSA_P521_SHA512));
    let tls = client.with_server(&printed.field()).unwrap();
    let refused = shake(&tls, &server(&shown, &shown, &client)).await.unwrap_err();
    assert!(matches!(refused, TlsError::OtherCertificate), "{refused}");
}

#[tokio::test]
async fn whoever_shows_the_right_certificate_without_its_key_is_refused() {
    let client = made();
    for algorithm in [&PKCS_ECDSA_P521_SHA512, &PKCS_ECDSA_P256_SHA256] {
        let (printed, other) = (own(algorithm), own(algorithm));
        let tls = client.with_server(&printed.field()).unwrap();
        let refused = shake(&tls, &server(&printed, &other, &client)).await.unwrap_err();
        let TlsError::Failed(cause) = &refused else { panic!("{refused}") };
        assert!(cause.contains("BadSignature"), "{cause}");
    }
}

#[tokio::test]
async fn who_speaks_no_tls_is_told_from_who_shows_another_certificate() {
    use tokio::io::AsyncWriteExt;

    let tls = made().with_server(&own(&PKCS_ECDSA_P256_SHA256).field()).unwrap();
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let refused = tls.secure(Either::Left(LazyWritable::new(ours).unwrap())).await.unwrap_err();
    assert!(matches!(refused, TlsError::Failed(_)), "{refused}");
    assert!(refused.to_string().contains("tls to off"), "{refused}");
}

#[test]
fn what_is_no_certificate_is_refused_before_anything_is_connected_to() {
    let client = made();
    let theirs = own(&PKCS_ECDSA_P521_SHA512);
    let der = BASE64.encode(&theirs.der[..theirs.der.len() - 1]);
    let behind = BASE64.encode([&theirs.der[..], b"x"].concat());
    for (field, word) in
        [("!".repeat(60), "base64"), ("A".repeat(800), "X.509"), (der, "X.509"), (behind, "X.509")]
    {
        let refused = client.with_server(&field).unwrap_err().to_string();
        assert!(refused.contains(word) && refused.len() < 400, "{refused}");
    }
    // go-plugin omits padding, but accepting it is harmless.
    client.with_server(&base64::engine::general_purpose::STANDARD.encode(&theirs.der)).unwrap();
}

#[test]
fn every_process_gets_a_certificate_of_its_own() {
    let ((identity, one), (_, other)) = (ClientIdentity::make().unwrap(), ClientIdentity::make().unwrap());
    assert_ne!(one, other);
    assert!(one.starts_with("-----BEGIN CERTIFICATE-----\n"));
    assert_eq!(format!("{identity:?}"), "ClientIdentity");
}
