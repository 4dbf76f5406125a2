//! `fetch`: one GET, bounded in time, size and redirects.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::redirect;
use reqwest::{Client, Response, Url};
use serde::Serialize;
use talon_error_chain::error_chain;
use talon_sdk::{Context, Output, ToolError, tracing};

use crate::policy::{Config, Policy, PrivateAddressesError, Resolver};
use crate::readable::{MediaKind, decode, html_to_text, kind};
use crate::same_machine::{RefuseSameMachine, SameMachineError};

/// How much of a response is read unless `max_bytes` says otherwise.
const DEFAULT_BYTES: u32 = 256 << 10;
/// The most that can be asked for. No caller reads more text.
const MAX_BYTES: u32 = 2 << 20;
/// The longest URL: what servers commonly take.
const MAX_URL_BYTES: usize = 8000;
/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;
/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server may be silent.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// How long everything may take; a caller's own deadline may be shorter.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(25);

#[talon_sdk::args]
pub(crate) struct Fetch {
    /// The page, with http:// or https://.
    url: String,
    /// How many bytes of the response to read at most: 262144 unless given, up to 2097152.
    max_bytes: Option<u32>,
}

/// What was fetched, without its text.
#[derive(Debug, Serialize)]
struct Page {
    /// After redirects.
    url: String,
    status: u16,
    content_type: String,
    /// Bytes read.
    bytes: usize,
    /// Whether the response was longer.
    truncated: bool,
}

/// Fetches a web page over HTTP or HTTPS and gives its readable text.
#[talon_sdk::tool(read_only)]
pub(crate) async fn fetch(args: Fetch, cx: Context) -> Result<Output, ToolError> {
    let fetcher = cx.shared::<Fetcher>()?;
    let max_bytes = args.max_bytes.unwrap_or(DEFAULT_BYTES).clamp(1, MAX_BYTES) as usize;
    let url = parse(&args.url)?;
    let page = tokio::time::timeout(TOTAL_TIMEOUT, fetcher.get(url, max_bytes));
    let (page, kind, text) = page.await.map_err(|_| {
        ToolError::new(format!("the page did not arrive within {} seconds", TOTAL_TIMEOUT.as_secs()))
    })??;
    let mut text = match kind {
        MediaKind::Html => cx.blocking(move || html_to_text(&text)).await?,
        MediaKind::Text => text,
    };
    if page.truncated {
        text.push_str(&format!(
            "\n… cut after {} bytes of the response; raise max_bytes to read on",
            page.bytes
        ));
    }
    Output::text(text).structured(page)
}

fn parse(text: &str) -> Result<Url, ToolError> {
    if text.len() > MAX_URL_BYTES {
        return Err(ToolError::new(format!("a URL has at most {MAX_URL_BYTES} bytes")));
    }
    let example = "give a whole one, such as https://example.org/page";
    text.trim().parse().map_err(|error| ToolError::new(format!("this is no URL ({error}); {example}")))
}

/// What all calls share: the client with its connections, and the policy.
#[derive(Debug)]
pub(crate) struct Fetcher {
    client: Client,
    policy: Arc<Policy>,
}

impl Fetcher {
    pub(crate) fn new(config: Config) -> Result<Self, ToolError> {
        let policy = Arc::new(Policy::new(config)?);
        let builder = || {
            Client::builder()
                .user_agent(concat!("talon-web-fetch/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT_TIMEOUT)
                .read_timeout(READ_TIMEOUT)
                // Each hop is checked before it is followed.
                .redirect(redirect::Policy::none())
                // A proxy would resolve names itself and bypass our check.
                .no_proxy()
                .dns_resolver(Resolver(Arc::clone(&policy)))
                .connector_layer(RefuseSameMachine { allow: policy.allows_private() })
        };
        let client = builder().build().or_else(|error| {
            tracing::warn!(
                error = error_chain(&error),
                "no trusted certificates here: https pages cannot be fetched"
            );
            builder().tls_certs_only([]).build()
        })?;
        Ok(Self { client, policy })
    }

    async fn get(&self, mut url: Url, max_bytes: usize) -> Result<(Page, MediaKind, String), ToolError> {
        for _ in 0..=MAX_REDIRECTS {
            self.policy.check(&url)?;
            let request = self
                .client
                .get(url.clone())
                .header(ACCEPT, "text/html, text/*;q=0.9, application/json;q=0.8");
            let response = request.send().await.map_err(|error| unreachable(&url, &error))?;
            if response.status().is_redirection()
                && let Some(target) = response.headers().get(LOCATION)
            {
                let target = target.to_str().ok().and_then(|target| url.join(target).ok());
                url = target
                    .ok_or_else(|| ToolError::new(format!("{url} redirects to something that is no URL")))?;
                continue;
            }
            return read(url, response, max_bytes).await;
        }
        Err(ToolError::new(format!("more than {MAX_REDIRECTS} redirects; the last led to {url}")))
    }
}

/// Reads a response up to its limit, whatever Content-Length it claims.
async fn read(
    url: Url,
    mut response: Response,
    max_bytes: usize,
) -> Result<(Page, MediaKind, String), ToolError> {
    let status = response.status();
    if !status.is_success() {
        return Err(ToolError::new(format!("{url} answered {status}")));
    }
    let content_type = response.headers().get(CONTENT_TYPE);
    let content_type =
        content_type.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default();
    let kind = kind(&content_type)?;
    let mut bytes = Vec::new();
    let mut truncated = false;
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(&url, &error))? {
        let room = max_bytes - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            truncated = true;
            break;
        }
    }
    let text = decode(&bytes, &content_type);
    let page = Page { url: url.into(), status: status.as_u16(), content_type, bytes: bytes.len(), truncated };
    Ok((page, kind, text))
}

/// Describes in one clause why a request failed; the whole chain goes to the log.
fn unreachable(url: &Url, error: &reqwest::Error) -> ToolError {
    let host = url.host_str().unwrap_or_default();
    let causes = error_chain(error);
    if let Some(private) = find::<PrivateAddressesError>(error) {
        return ToolError::new(private.to_string());
    }
    if let Some(own) = find::<SameMachineError>(error) {
        return ToolError::new(own.to_string());
    }
    let what = if error.is_timeout() {
        "took too long"
    } else if error.is_connect() {
        "cannot be reached"
    } else {
        "broke off its answer"
    };
    ToolError::new(format!("{host} {what}")).because(causes)
}

fn find<E: std::error::Error + 'static>(error: &reqwest::Error) -> Option<&E> {
    let first: &(dyn std::error::Error + 'static) = error;
    std::iter::successors(Some(first), |error| error.source()).find_map(|error| error.downcast_ref::<E>())
}
