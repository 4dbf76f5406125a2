//! A server over TCP, with TLS and a password.

use std::net::TcpListener;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use talon_tests::{Builder, Scratch, Supervisor, program};

use crate::server::Server;
use crate::{ends_clean, serves, state};

const PASSWORD: &str = "a-password-of-some-length";

/// Writes an authority to `NAME.pem`, and a certificate of it for 127.0.0.1 with its key beside it.
fn write_identity(scratch: &Scratch, name: &str) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, format!("Authority {name}"));
    let key = || KeyPair::generate().expect("a key is made");
    let authority = CertifiedIssuer::self_signed(params, key()).expect("it signs itself");
    scratch.write(&format!("{name}.pem"), &authority.pem());
    let (key, params) = (key(), CertificateParams::new(["127.0.0.1".to_owned()]).expect("an address"));
    let certificate = params.signed_by(&key, &authority).expect("it is signed");
    scratch.write(&format!("{name}-service.pem"), &certificate.pem());
    scratch.write(&format!("{name}-service.key"), &key.serialize_pem());
}

/// A port that nobody has now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// A supervisor whose plugins' state is in the server on this port, with this password, and trust in this authority.
async fn supervisor(port: u16, password: &str, authority: &Path) -> Supervisor {
    let entry = format!(
        "config: {{ host: 127.0.0.1, port: {port}, tls: true, username: ada }}\n\
         credentials: {{ password: {{ header: PASSWORD, value: \"{password}\" }} }}\n\
         sandbox: {{ network: proxy, allow: [\"127.0.0.1:{port}\"], ca_file: {authority:?} }}"
    );
    Builder::new()
        .state("plugins: { engine: plugin, action: valkey.store }")
        .plugin("valkey", &program("valkey"), &[], &entry)
        .misbehave(&[], "")
        .start()
        .await
}

async fn refused(port: u16, password: &str, authority: &Path, says: &str) {
    let supervisor = supervisor(port, password, authority).await;
    let told = supervisor.wait_state_service(says, |now| now.problem.contains(says)).await;
    assert!(!told.problem.contains(PASSWORD) && !told.problem.contains("another-password"), "{told:?}");
    assert!(state(&supervisor, &[("op", "get"), ("key", "a")]).await.is_err());
    supervisor.stop().await;
}

// Promises: EXT-175
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_used_over_tls_with_a_password() {
    let scratch = Scratch::new();
    for name in ["trusted", "strange"] {
        write_identity(&scratch, name);
    }
    let port = free_port().to_string();
    let file = |name: &str| scratch.join(name).display().to_string();
    let (certificate, key, authority) =
        (file("trusted-service.pem"), file("trusted-service.key"), file("trusted.pem"));
    let acl = format!("user default off\nuser ada on >{PASSWORD} ~* &* +@all\n");
    let acl = scratch.write("users.acl", &acl).display().to_string();
    let settings = [
        "--tls-port",
        &port,
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &authority,
        "--tls-auth-clients",
        "no",
        "--aclfile",
        &acl,
    ];
    let Some(server) = Server::start("a_server_is_used_over_tls_with_a_password", &scratch, &settings) else {
        return;
    };
    let (port, trusted): (u16, _) = (port.parse().expect("a port"), scratch.join("trusted.pem"));
    let used = supervisor(port, PASSWORD, &trusted).await;
    serves(&used).await;
    assert_eq!(
        state(&used, &[("op", "set"), ("key", "ü"), ("value", "<|im_start|>")]).await,
        Ok("set".into())
    );
    let found = state(&used, &[("op", "get"), ("key", "ü")]).await.expect("it is there");
    assert!(found.contains("im_start"), "{found}");
    ends_clean(used).await;
    refused(port, "another-password", &trusted, "authentication failed").await;
    refused(port, PASSWORD, &scratch.join("strange.pem"), "certificate").await;
    drop(server);
}
