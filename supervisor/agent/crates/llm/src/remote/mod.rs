//! What all providers over HTTP have in common.
//!
//! A [`Protocol`] defines requests and how to read responses; an [`Endpoint`] has the address, the keys and
//! the timeouts.

mod assembly;
mod attempt;
mod body;
mod classify;
mod embeddings;
mod endpoint;
mod failure;
mod protocol;
mod report;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::key::{KeyUnavailableError, Lease};
use crate::model::{Answer, EmbeddingRequest, ErrorClass, ProviderError, Request};
use crate::provider::{ChunkListener, Provider};

pub(crate) use assembly::{Assembly, Fragment, split_extras};
pub(crate) use body::Clock;
pub(crate) use classify::reported;
pub(crate) use endpoint::{Endpoint, EndpointError};
pub(crate) use failure::{Failure, Quote};
pub(crate) use protocol::{Protocol, Reader, Step};
pub(crate) use report::Report;

/// The most keys named in the error if all were rejected; the first ones say where to look.
const MAX_NAMED_KEYS: usize = 3;

/// A provider over HTTP.
pub(crate) struct Remote<P> {
    endpoint: Endpoint,
    protocol: P,
}

impl<P: Protocol> Remote<P> {
    pub(crate) fn new(endpoint: Endpoint, protocol: P) -> Self {
        Self { endpoint, protocol }
    }
}

#[async_trait]
impl<P: Protocol> Provider for Remote<P> {
    fn name(&self) -> &str {
        self.endpoint.name()
    }

    async fn ask(
        &self,
        request: &Request,
        listener: &mut dyn ChunkListener,
    ) -> Result<Answer, ProviderError> {
        let endpoint = &self.endpoint;
        let total = Instant::now() + endpoint.timeouts().total.get();
        let body = bytes::Bytes::from(self.protocol.body(request).to_string());
        let mut tour = KeyAttempts::new(endpoint);
        loop {
            let lease = tour.next()?;
            let mut assembly = Assembly::new(endpoint.name(), request, listener);
            match attempt::ask(endpoint, &self.protocol, &lease, request, body.clone(), total, &mut assembly)
                .await
            {
                Ok(()) => {
                    let answer = assembly.finish();
                    tracing::debug!(provider = endpoint.name(), model = answer.model, "answered");
                    return Ok(answer);
                }
                Err(failure) => {
                    let spoke = assembly.has_spoken();
                    tour.record_failure(lease, failure, spoke)?;
                }
            }
        }
    }

    async fn embed(&self, request: &EmbeddingRequest) -> Result<Vec<Vec<f32>>, ProviderError> {
        let endpoint = &self.endpoint;
        let total = Instant::now() + request.timeout.min(endpoint.timeouts().total.get());
        let Some(path) = P::EMBED else { return Err(endpoint.error(Failure::has_no_vectors())) };
        let body = bytes::Bytes::from(embeddings::body(request).to_string());
        let mut tour = KeyAttempts::new(endpoint);
        loop {
            let lease = tour.next()?;
            let answer = attempt::document(endpoint, &self.protocol, &lease, path, body.clone(), total).await;
            match answer.and_then(|value| embeddings::read(&value, request.texts.len())) {
                Ok(vectors) => return Ok(vectors),
                Err(failure) => tour.record_failure(lease, failure, false)?,
            }
        }
    }

    fn searches_tools(&self) -> bool {
        self.protocol.searches_tools()
    }

    fn permanent_refusal(&self) -> Option<String> {
        let mut places = self.endpoint.keys().all_refused()?;
        let more = places.len().saturating_sub(MAX_NAMED_KEYS);
        places.truncate(MAX_NAMED_KEYS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Some(format!(
            "all its keys were refused ({}{more}): give it one that holds, and reload",
            places.join(", ")
        ))
    }

    async fn probe(&self) -> Result<(), ProviderError> {
        let mut tour = KeyAttempts::new(&self.endpoint);
        loop {
            let lease = tour.next()?;
            match attempt::probe(&self.endpoint, &self.protocol, &lease).await {
                Ok(()) => return Ok(()),
                Err(failure) => tour.record_failure(lease, failure, false)?,
            }
        }
    }
}

/// One question's attempts with the keys: each at most once.
struct KeyAttempts<'e> {
    endpoint: &'e Endpoint,
    tried: Vec<usize>,
    last: Option<ProviderError>,
}

impl<'e> KeyAttempts<'e> {
    fn new(endpoint: &'e Endpoint) -> Self {
        Self { endpoint, tried: Vec::new(), last: None }
    }

    fn next(&mut self) -> Result<Lease, ProviderError> {
        let lease =
            self.endpoint.keys().take(&self.tried).map_err(|none| match (self.last.take(), none) {
                // The last key's error says more than that there is no other key.
                (Some(last), _) => last,
                (None, KeyUnavailableError::Cooling(rest)) => {
                    self.endpoint.error(Failure::keys_cooling(rest))
                }
                (None, KeyUnavailableError::Refused) => self.endpoint.error(Failure::refused_before()),
            })?;
        self.tried.push(lease.index());
        Ok(lease)
    }

    /// Records what a failure means for the key. Returns it as the question's error unless another key may do
    /// better.
    fn record_failure(&mut self, lease: Lease, failure: Failure, spoke: bool) -> Result<(), ProviderError> {
        let keys = self.endpoint.keys();
        let another = match (failure.class, failure.status) {
            (ErrorClass::RateLimit | ErrorClass::Billing, _) => {
                keys.cool(&lease, failure.retry_after);
                true
            }
            // 403 is about the request: the key itself is valid, and may work for another model.
            (ErrorClass::Auth, status) if status != Some(403) => {
                keys.refuse(&lease);
                true
            }
            _ => false,
        };
        let error = self.endpoint.error(failure.with_key(&lease.place));
        tracing::debug!(provider = error.provider, class = ?error.class, status = error.status, key = lease.place, "failed");
        if spoke || !another {
            return Err(error);
        }
        // A rate-limited key is valid, so a rejected one beside it does not fail the question for good.
        if error.class != ErrorClass::Auth || self.last.is_none() {
            self.last = Some(error);
        }
        Ok(())
    }
}
