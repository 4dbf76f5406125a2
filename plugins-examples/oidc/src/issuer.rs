//! The issuer's documents: what it says of itself, and its keys.

use std::time::Duration;

use jsonwebtoken::jwk::Jwk;
use reqwest::header::ACCEPT;
use reqwest::{Client, Url, redirect};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use talon_error_chain::error_chain;

use crate::settings::{Settings, is_loopback};

/// The largest document. 256 KiB: large providers publish some ten keys of a few KiB.
const MAX_DOCUMENT_BYTES: usize = 256 << 10;
/// The most keys that are kept of one document.
pub(crate) const MAX_KEYS: usize = 64;
/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long one document may take; the entry's own deadline is 5 s by default.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a document could not be had.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum IssuerError {
    #[error("there is no HTTP client: {0}")]
    Client(String),
    #[error("{url} cannot be fetched: {why}")]
    Fetch { url: String, why: String },
    #[error("{0} answered {1}")]
    Status(String, u16),
    #[error("{0} is larger than {MAX_DOCUMENT_BYTES} bytes")]
    TooLarge(String),
    #[error("{0} is not the document that it has to be: {1}")]
    Shape(String, String),
    #[error("it calls itself {0}: write exactly that as `issuer`, if it is the one that is meant")]
    OtherIssuer(String),
    #[error("it names {0} for its keys, which is neither https nor a loopback address of the issuer's")]
    KeysUrl(String),
}

/// The issuer, over HTTPS.
#[derive(Debug)]
pub(crate) struct Issuer {
    client: Client,
    name: String,
    discovery: Url,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<serde_json::Value>,
}

impl Issuer {
    /// The issuer of the settings. It is asked when the first token comes, not before.
    pub(crate) fn new(settings: &Settings) -> Result<Self, IssuerError> {
        let mut client = Client::builder()
            .user_agent(concat!("talon-oidc/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(DOCUMENT_TIMEOUT)
            // Another place than the configured one has no say in who is let in.
            .redirect(redirect::Policy::none());
        if let Some(authorities) = &settings.authorities {
            client = client.tls_certs_only(authorities.iter().cloned());
        }
        let client = client.build().map_err(|error| IssuerError::Client(error_chain(&error)))?;
        let mut discovery = settings.issuer_url.clone();
        let path = format!("{}/.well-known/openid-configuration", discovery.path().trim_end_matches('/'));
        discovery.set_path(&path);
        Ok(Self { client, name: settings.issuer.clone(), discovery })
    }

    /// Its keys, as far as they are understood. Discovery comes first, so that a moved list of keys is found.
    pub(crate) async fn keys(&self) -> Result<Vec<Jwk>, IssuerError> {
        let discovery: Discovery = self.document(&self.discovery).await?;
        if discovery.issuer != self.name {
            return Err(IssuerError::OtherIssuer(cut(&discovery.issuer)));
        }
        let url: Url =
            discovery.jwks_uri.parse().map_err(|_| IssuerError::KeysUrl(cut(&discovery.jwks_uri)))?;
        let own_loopback = is_loopback(&self.discovery) && is_loopback(&url) && url.scheme() == "http";
        if url.scheme() != "https" && !own_loopback {
            return Err(IssuerError::KeysUrl(cut(url.as_str())));
        }
        let set: KeySet = self.document(&url).await?;
        // A key of a kind that is not known here is none of ours; the others stay.
        let known = set.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok());
        Ok(known.take(MAX_KEYS).collect())
    }

    async fn document<T: DeserializeOwned>(&self, url: &Url) -> Result<T, IssuerError> {
        let fetch = |error: reqwest::Error| IssuerError::Fetch {
            url: cut(url.as_str()),
            why: cut(&error_chain(&error.without_url())),
        };
        let request = self.client.get(url.clone()).header(ACCEPT, "application/json");
        let mut response = request.send().await.map_err(fetch)?;
        if !response.status().is_success() {
            return Err(IssuerError::Status(cut(url.as_str()), response.status().as_u16()));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(fetch)? {
            if bytes.len() + chunk.len() > MAX_DOCUMENT_BYTES {
                return Err(IssuerError::TooLarge(cut(url.as_str())));
            }
            bytes.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&bytes)
            .map_err(|error| IssuerError::Shape(cut(url.as_str()), cut(&error.to_string())))
    }
}

/// A text of somebody else's, bounded.
fn cut(text: &str) -> String {
    const MOST: usize = 200;
    text.chars().take(MOST).collect()
}
