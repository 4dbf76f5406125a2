//! MCP over streamable HTTP.

pub(crate) mod address;
mod client;
mod connect;
mod events;

use std::collections::HashMap;

use http::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use self::address::Address;
use self::client::HttpClient;
use self::connect::Connector;
pub(crate) use self::connect::TlsError;
use crate::server::lines::MAX_MESSAGE_BYTES;

/// Concurrent calls; the supervisor admits fewer.
const MAX_CONCURRENT_REQUESTS: usize = 64;

/// A transport to one address.
pub(crate) type Http = StreamableHttpClientTransport<HttpClient>;

/// A transport to an address. Connects on the first message.
///
/// # Errors
/// When TLS cannot be set up.
pub(crate) fn transport(
    address: &Address,
    headers: HashMap<HeaderName, HeaderValue>,
) -> Result<Http, TlsError> {
    let client = HttpClient::new(Connector::new(address)?);
    let config = StreamableHttpClientTransportConfig::with_uri(address.as_str())
        .custom_headers(headers)
        .max_concurrent_requests(MAX_CONCURRENT_REQUESTS)
        .max_sse_event_size(MAX_MESSAGE_BYTES);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}
