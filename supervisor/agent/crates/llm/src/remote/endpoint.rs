//! The address of a provider, and how to connect.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName};
use reqwest::{Certificate, Client, Url, redirect};

use super::Failure;
use super::failure::redact;
use crate::config::{Environment, FileLookupError, Protocol, ProviderEntry, ProxyError, Timeouts, proxy};
use crate::key::{AsHeader as _, KeyError, Keys, Secret, find_keys};
use crate::model::ProviderError;

/// How long an idle connection is kept. Providers close theirs after one to five minutes, and a request on
/// one that is being closed looks like a network error.
const IDLE_TIMEOUT: Duration = Duration::from_secs(50);
/// The shortest header value that is redacted in messages: shorter ones occur in ordinary words.
const MIN_SECRET_BYTES: usize = 6;
const USER_AGENT: &str = concat!("talon/", env!("CARGO_PKG_VERSION"));

/// What is wrong with an entry; contains no key and no password.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndpointError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("base_url has to start with http:// or https:// and name a host")]
    NoBaseUrl,
    #[error("base_url holds a user or a password, which would be shown: put what it needs into headers")]
    BaseUrlWithPassword,
    #[error("base_url ends before '?' and '#': paths are added to it")]
    BaseUrlWithQuery,
    #[error("headers: {name:?} is no header's name")]
    HeaderName { name: String },
    #[error("headers: the value of {name} has characters that none has")]
    HeaderValue { name: HeaderName },
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error("ca_file: {0}")]
    CaFile(#[from] FileLookupError),
    #[error("ca_file {path} holds no certificates in PEM", path = .0.display())]
    NoCertificates(PathBuf),
    #[error("HTTP cannot be set up ({})", super::failure::causes(.0))]
    Client(#[source] reqwest::Error),
}

/// One provider's address, keys and limits.
pub(crate) struct Endpoint {
    name: String,
    base: Url,
    client: Client,
    headers: HeaderMap,
    keys: Keys,
    timeouts: Timeouts,
    secrets: Vec<Secret>,
}

impl Endpoint {
    /// # Errors
    /// All that is wrong with the entry.
    pub(crate) fn build(
        name: &str,
        entry: &ProviderEntry,
        environment: &dyn Environment,
    ) -> Result<Self, Vec<EndpointError>> {
        let mut wrong = Vec::new();
        let mut found = Vec::new();
        for source in entry.sources() {
            match find_keys(&source, environment) {
                Ok(keys) => found.extend(keys),
                Err(error) => wrong.push(error.into()),
            }
        }
        let headers = headers(entry).unwrap_or_else(|error| {
            wrong.push(error);
            HeaderMap::new()
        });
        let client = base(entry).and_then(|base| Ok((client(entry, &base, environment)?, base)));
        let (client, base) = match client {
            Ok(made) if wrong.is_empty() => made,
            Ok(_) => return Err(wrong),
            Err(error) => {
                wrong.push(error);
                return Err(wrong);
            }
        };
        let keys = Keys::new(found);
        let mut secrets = keys.secrets();
        secrets
            .extend(entry.headers.values().filter(|value| value.reveal().len() >= MIN_SECRET_BYTES).cloned());
        Ok(Self { name: name.to_owned(), base, client, headers, keys, timeouts: entry.timeouts, secrets })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    pub(crate) fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn headers(&self) -> HeaderMap {
        self.headers.clone()
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base.as_str().trim_end_matches('/'))
    }

    /// Redacts the secrets of this endpoint, for messages and logs.
    pub(crate) fn redact(&self, text: &str) -> String {
        redact(text, &self.secrets)
    }

    /// Makes the error of a failure here, without secrets.
    pub(crate) fn error(&self, failure: Failure) -> ProviderError {
        failure.into_error(&self.name, &self.secrets)
    }
}

fn base(entry: &ProviderEntry) -> Result<Url, EndpointError> {
    let text = entry.base_url.as_deref().unwrap_or(entry.kind.base_url());
    let mut url = Url::parse(text).map_err(|_| EndpointError::NoBaseUrl)?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(EndpointError::NoBaseUrl);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(EndpointError::BaseUrlWithPassword);
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(EndpointError::BaseUrlWithQuery);
    }
    // The paths of these contain the version already, and many write it.
    let versioned = match entry.kind.protocol() {
        Protocol::Messages => "/v1",
        Protocol::Gemini => "/v1beta",
        Protocol::Ollama => "/api",
        Protocol::Chat | Protocol::Responses | Protocol::Scripted => return Ok(url),
    };
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix(versioned).unwrap_or(path).to_owned();
    url.set_path(&path);
    Ok(url)
}

fn headers(entry: &ProviderEntry) -> Result<HeaderMap, EndpointError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &entry.headers {
        let name = HeaderName::try_from(name.as_str())
            .map_err(|_| EndpointError::HeaderName { name: name.clone() })?;
        let Some(value) = value.header("") else { return Err(EndpointError::HeaderValue { name }) };
        headers.insert(name, value);
    }
    Ok(headers)
}

fn client(entry: &ProviderEntry, base: &Url, environment: &dyn Environment) -> Result<Client, EndpointError> {
    let mut builder = Client::builder()
        .user_agent(USER_AGENT)
        // A redirect would send the transcript, and a key in a custom header, to any other host.
        .redirect(redirect::Policy::none())
        .referer(false)
        .connect_timeout(entry.timeouts.connect.get())
        .pool_idle_timeout(IDLE_TIMEOUT)
        // The library's proxy detection is replaced by ours, which knows the entry.
        .no_proxy();
    if let Some(proxy) = proxy(entry.proxy.as_ref(), base, environment)? {
        builder = builder.proxy(proxy);
    }
    if let Some(path) = &entry.ca_file {
        let certificates = Certificate::from_pem_bundle(environment.file(path)?).unwrap_or_default();
        if certificates.is_empty() {
            return Err(EndpointError::NoCertificates(path.clone()));
        }
        builder = builder.tls_certs_merge(certificates);
    }
    builder.build().map_err(EndpointError::Client)
}
