//! TLS to PostgreSQL: a server that is who it says it is, and others.

use std::fs;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use talon_store::{Engine, OpenError, StoreOptions};

use crate::support::{Server, key, namespace, runtime};

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn refused(url: &str) -> String {
    let refused = runtime().block_on(StoreOptions::new(Engine::Postgres { url: url.to_owned() }).open());
    let error: OpenError = refused.expect_err(url);
    error.to_string()
}

fn works(url: &str) {
    runtime().block_on(async {
        let store = StoreOptions::new(Engine::Postgres { url: url.to_owned() }).open().await.unwrap();
        store.key_values().set(&namespace("hello"), &key("a"), vec![1]).await.unwrap();
        assert!(
            store.location().starts_with("localhost:") && !store.location().contains("ssl"),
            "{}",
            store.location()
        );
        store.close().await;
    });
}

// Promises: STATE-18
#[test]
fn postgres_is_reached_over_tls_if_it_is_the_right_one() {
    let Some(mut server) = Server::start("postgres_is_reached_over_tls_if_it_is_the_right_one") else {
        return;
    };
    server.database();
    let (ours, theirs) = (authority("ours"), authority("theirs"));
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| -> PathBuf {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let (right, wrong) = (write("right it's.pem", ours.pem()), write("wrong.pem", theirs.pem()));
    let server_key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&server_key, &ours).unwrap();
    let port = server.listen(Some((&certificate.pem(), &server_key.serialize_pem())));
    let url = |host: &str, more: &str| format!("postgresql://talon@{host}:{port}/test_0?{more}");
    let trusting = |mode: &str, file: &PathBuf| format!("sslmode={mode}&sslrootcert={}", file.display());
    works(&url("localhost", &trusting("verify-full", &right)));
    works(&url("localhost", &trusting("require", &right)));
    works(&url("localhost", ""));
    let words = right.display().to_string().replace('\'', "\\'");
    works(&format!(
        "host=localhost port={port} user=talon dbname=test_0 sslmode=verify-full sslrootcert='{words}'"
    ));
    for (url, word) in [
        (url("localhost", &trusting("verify-full", &wrong)), "UnknownIssuer"),
        (url("localhost", &trusting("require", &wrong)), "UnknownIssuer"),
        (url("localhost", "sslmode=verify-full"), "UnknownIssuer"),
        (url("127.0.0.1", &trusting("verify-full", &right)), "certificate not valid for name"),
        (url("localhost", &trusting("verify-full", &directory.path().join("none"))), "none"),
        (url("localhost", &trusting("verify-full", &write("empty", String::new()))), "no certificate"),
        (url("localhost", "sslmode=verify-ca"), "verify-full"),
        (url("localhost", &format!("sslrootcert={}", right.display())), "sslmode=verify-full"),
        ("host=/tmp sslmode=require user=talon".to_owned(), "unix socket"),
    ] {
        let refused = refused(&url);
        assert!(refused.contains(word), "{url}: {refused}");
    }
    // Without TLS a server is not used.
    let port = server.listen(None);
    let url = |more: &str| format!("postgresql://talon@localhost:{port}/test_0?{more}");
    for mode in ["require", "verify-full"] {
        let refused = refused(&url(&trusting(mode, &right)));
        assert!(refused.contains("does not support TLS"), "{refused}");
    }
    works(&url("sslmode=disable"));
}
