//! MCP over streamable HTTP, and over the HTTP+SSE transport that was before it.

pub(crate) mod address;
pub(crate) mod authorization;
pub(crate) mod challenge;
mod client;
pub(crate) mod connect;
mod error;
mod events;
mod legacy;

use std::collections::HashMap;

use http::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use self::address::Address;
use self::client::HttpClient;
pub(crate) use self::client::Login;
use self::connect::Connector;
pub(crate) use self::connect::TlsError;
pub(crate) use self::legacy::{LegacyError, LegacySse};
use crate::server::lines::MAX_MESSAGE_BYTES;

/// Concurrent calls; the supervisor admits fewer.
const MAX_CONCURRENT_REQUESTS: usize = 64;

/// A transport to one address.
pub(crate) type Http = StreamableHttpClientTransport<HttpClient>;

/// A server, by its address. Nothing connects before the first message.
pub(crate) struct HttpServer {
    client: HttpClient,
    address: Address,
    headers: HashMap<HeaderName, HeaderValue>,
}

impl HttpServer {
    /// A server at an address; every request has these headers, and that of the login.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub(crate) fn new(
        address: &Address,
        headers: HashMap<HeaderName, HeaderValue>,
        login: Login,
    ) -> Result<Self, TlsError> {
        let client = HttpClient::new(Connector::new(address)?, login);
        Ok(Self { client, address: address.clone(), headers })
    }

    /// Streamable HTTP.
    pub(crate) fn transport(&self) -> Http {
        let config = StreamableHttpClientTransportConfig::with_uri(self.address.as_str())
            .custom_headers(self.headers.clone())
            .max_concurrent_requests(MAX_CONCURRENT_REQUESTS)
            .max_sse_event_size(MAX_MESSAGE_BYTES);
        StreamableHttpClientTransport::with_client(self.client.clone(), config)
    }

    /// The status by which it refused the first message of streamable HTTP, if it may be a server of the older
    /// transport.
    pub(crate) fn refused_post(&self) -> Option<u16> {
        self.client.refused_post()
    }

    /// Whether it is away, and not misconfigured: the last request had no answer, or one that says so.
    pub(crate) fn is_away(&self) -> bool {
        self.client.is_away()
    }

    /// The HTTP+SSE transport of 2024-11-05.
    ///
    /// # Errors
    /// When the address opens none.
    pub(crate) async fn legacy_transport(&self) -> Result<LegacySse, LegacyError> {
        LegacySse::open(self.client.clone(), &self.address, self.headers.clone()).await
    }
}
