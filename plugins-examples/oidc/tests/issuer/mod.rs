//! An OpenID Connect issuer on this machine: HTTPS, discovery, keys that rotate.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A key for ES256, and its id.
pub(crate) struct SigningKey {
    pub(crate) id: String,
    key: EncodingKey,
}

impl SigningKey {
    pub(crate) fn new(id: &str) -> Self {
        let pair = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key");
        Self { id: id.to_owned(), key: EncodingKey::from_ec_der(&pair.serialize_der()) }
    }

    /// What the issuer publishes of it.
    fn public(&self) -> Value {
        let mut jwk = Jwk::from_encoding_key(&self.key, Algorithm::ES256).expect("a public key");
        jwk.common.key_id = Some(self.id.clone());
        serde_json::to_value(jwk).expect("JSON")
    }

    /// A token with these claims.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.sign_with(&Header { kid: Some(self.id.clone()), ..Header::new(Algorithm::ES256) }, claims)
    }

    pub(crate) fn sign_with(&self, header: &Header, claims: &Value) -> String {
        encode(header, claims, &self.key).expect("signed")
    }
}

struct Shared {
    /// What it calls itself; its own address unless set.
    name: Mutex<String>,
    keys: Mutex<Vec<Value>>,
    /// How often its keys were fetched.
    fetched: AtomicUsize,
    is_down: Mutex<bool>,
}

pub(crate) struct Issuer {
    pub(crate) url: String,
    pub(crate) ca_pem: String,
    shared: Arc<Shared>,
}

impl Issuer {
    pub(crate) async fn start() -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("a configuration");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("https://localhost:{}/realms/staff", listener.local_addr().expect("bound").port());
        let shared = Arc::new(Shared {
            name: Mutex::new(url.clone()),
            keys: Mutex::default(),
            fetched: AtomicUsize::new(0),
            is_down: Mutex::new(false),
        });
        let served = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, served) = (acceptor.clone(), Arc::clone(&served));
                tokio::spawn(async move {
                    // A client that does not believe the certificate goes away.
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let answer = service_fn(move |request| {
                        let answer = served.answer(&request);
                        async move { Ok::<_, Infallible>(answer) }
                    });
                    let served = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), answer);
                    let _ = served.await;
                });
            }
        });
        Self { url, ca_pem: cert.pem(), shared }
    }

    /// Publishes these keys instead of those before.
    pub(crate) fn publish(&self, keys: &[&SigningKey]) {
        *self.shared.keys.lock().expect("not poisoned") = keys.iter().map(|key| key.public()).collect();
    }

    pub(crate) fn publish_raw(&self, keys: Vec<Value>) {
        *self.shared.keys.lock().expect("not poisoned") = keys;
    }

    pub(crate) fn call_itself(&self, name: &str) {
        *self.shared.name.lock().expect("not poisoned") = name.to_owned();
    }

    pub(crate) fn set_down(&self, is_down: bool) {
        *self.shared.is_down.lock().expect("not poisoned") = is_down;
    }

    pub(crate) fn fetched(&self) -> usize {
        self.shared.fetched.load(Ordering::SeqCst)
    }

    /// Claims that are right.
    pub(crate) fn claims(&self) -> Value {
        json!({
            "iss": self.url, "sub": "248289761001", "aud": ["talon", "mail"], "exp": now() + 600, "iat": now(),
            "scope": "openid talon:chat", "name": "Ada Lovelace",
        })
    }
}

impl Shared {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let name = self.name.lock().expect("not poisoned").clone();
        let (status, body) = match request.uri().path() {
            _ if *self.is_down.lock().expect("not poisoned") => (503, json!({"error": "down"})),
            "/realms/staff/.well-known/openid-configuration" => {
                let host =
                    request.headers().get("host").and_then(|host| host.to_str().ok()).unwrap_or_default();
                (200, json!({"issuer": name, "jwks_uri": format!("https://{host}/keys"), "more": [1, 2]}))
            }
            "/keys" => {
                self.fetched.fetch_add(1, Ordering::SeqCst);
                (200, json!({"keys": *self.keys.lock().expect("not poisoned")}))
            }
            _ => (404, Value::Null),
        };
        let mut response = Response::new(Full::from(body.to_string()));
        *response.status_mut() = status.try_into().expect("a status");
        response
    }
}

/// Seconds since the beginning of 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}
