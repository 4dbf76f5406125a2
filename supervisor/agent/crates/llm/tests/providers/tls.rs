//! TLS: the machine's authorities, and private ones from `ca_file`.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use talon_llm::config::{ProviderEntry, ProviderKind};
use talon_llm::model::ErrorClass;
use tokio::net::TcpListener;
use tokio::sync::mpsc::unbounded_channel;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::server::{Reply, serve};
use crate::{ask, build, entry, fixture};

/// A server with a self-signed certificate, and the certificate.
async fn server() -> (String, String) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("a configuration");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let replies = Arc::new(vec![Reply::events(fixture("openai/text.sse"))]);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let (asked, _) = unbounded_channel();
            let (gone, _) = unbounded_channel();
            tokio::spawn(serve(stream, Arc::clone(&replies), Arc::new(AtomicUsize::new(0)), asked, gone));
        }
    });
    (format!("https://localhost:{port}"), cert.pem())
}

#[tokio::test]
async fn an_unknown_certificate_is_refused() {
    let (url, _) = server().await;
    let error = ask(&build(entry(ProviderKind::Openai, &url))).await.0.expect_err("nobody knows it");
    assert_eq!(error.class, ErrorClass::Network);
    assert!(error.message.contains("ca_file"), "{error}");
}

#[tokio::test]
async fn an_authority_of_ones_own_is_believed() {
    let (url, pem) = server().await;
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ca.pem");
    std::fs::write(&path, pem).expect("written");
    let answer =
        ask(&build(ProviderEntry { ca_file: Some(path), ..entry(ProviderKind::Openai, &url) })).await.0;
    assert_eq!(answer.expect("an answer").text, "Grüße aus Zürich 😀.");
}
