//! `Embed`: vectors of texts, by the operator's model.

use std::sync::{Arc, LazyLock};

use talon_listen::{ConnectionLimiter, ConnectionPermit};
use talon_llm::limits::MAX_EMBEDDED_TEXTS;
use talon_llm::model::{ErrorClass, ProviderError, Usage};
use talon_llm::route::Money;
use talon_llm::route::cost::{BudgetScope, Charge, OverBudgetError, Reservation};
use talon_proto::agent::{EmbedRequest, EmbedResponse, EmbeddedText};
use tonic::Status;

use super::client::Client;
use super::limits::MAX_PLAIN_REQUEST_BYTES;
use super::service::Service;
use crate::costs::today;
use crate::embeddings::Embedder;
use crate::error_status::store_error_status;
use crate::tokens::{Estimate, TokenCounter as _};

/// The most texts of one request. 2,048: as many as OpenAI takes. Not configurable.
const MAX_TEXTS: usize = 2048;
/// The longest text. 32 KiB: about the 8,192 tokens that OpenAI's models take. Not configurable.
const MAX_TEXT_BYTES: usize = 32 << 10;
/// The most bytes of texts that the provider is sent at once, with which its answer stays below a few megabytes.
const MAX_BATCH_BYTES: usize = 256 << 10;
/// The most requests of all clients that are answered at once. 16: each has a batch under way at the provider. Not configurable.
const MAX_AT_ONCE: usize = 16;
/// The most of one sender. 4: as many programs as one runs, and a quarter of all. Not configurable.
const MAX_OF_SENDER: usize = 4;
/// Of the process, as the provider's limits are.
static PLACES: LazyLock<Arc<ConnectionLimiter<Arc<str>>>> =
    LazyLock::new(|| ConnectionLimiter::new(MAX_AT_ONCE, MAX_OF_SENDER));

/// The place of a request.
type BatchPermit = ConnectionPermit<Arc<str>>;

impl Service {
    pub(super) async fn embed(
        &self,
        client: &Client,
        request: EmbedRequest,
    ) -> Result<EmbedResponse, Status> {
        let EmbedRequest { texts, model, dimensions } = request;
        let setup = self.agent.setup();
        let Some(embedder) = &setup.embedder else {
            return Err(Status::failed_precondition(
                "there is no model for vectors: an operator names one under models.embeddings",
            ));
        };
        if setup.settings.models.local_only && !embedder.is_local() {
            return Err(Status::failed_precondition(
                "the model for vectors is not on this machine, and models.local_only wants those alone",
            ));
        }
        check_model(embedder, &model, dimensions)?;
        check_texts(&texts)?;
        let place = Arc::new(enter(&PLACES, &client.sender)?);
        let mut vectors = Vec::with_capacity(texts.len());
        let mut input_tokens = 0_u64;
        for batch in batches(texts) {
            let tokens: usize = batch.iter().map(|text| Estimate.count(text)).sum();
            let usage = Usage { input_tokens: u64::try_from(tokens).unwrap_or(u64::MAX), ..Usage::default() };
            let cost = embedder.keys().cost.unwrap_or_default().of(usage.input_tokens);
            // Each batch by itself: of a request that fails in the middle only what was made is paid.
            let (session, reservation) = self.reserve(client, cost).await?;
            let charge = Charge { usage, cost, estimated: true };
            let (embedder, chain) = (embedder.clone(), Arc::clone(&setup.environment.chain));
            let place = Arc::clone(&place);
            // What the provider was asked for is paid, also if the client goes away meanwhile.
            let task = tokio::spawn(async move {
                let _place = place;
                let made = embedder.plain(batch, embedder.keys().timeout.get()).await;
                if made.as_ref().map_or_else(is_paid, |_| true) {
                    chain.charge(reservation, &session, &embedder.model_ref(), &charge);
                }
                made
            });
            let made = task
                .await
                .map_err(|_| Status::internal("the vectors were not made: the agent's log says why"))?;
            let made = made.map_err(|error| failed(&error))?;
            input_tokens = input_tokens.saturating_add(usage.input_tokens);
            vectors.extend(made.into_iter().map(|numbers| EmbeddedText { numbers }));
        }
        Ok(EmbedResponse { vectors, model: embedder.model(), input_tokens })
    }

    /// Reserves what a batch costs, of the day and of who asks.
    async fn reserve(&self, client: &Client, cost: Money) -> Result<(String, Reservation), Status> {
        let setup = self.agent.setup();
        let chain = &setup.environment.chain;
        let opened = self.agent.costs.open_embeddings(chain.ledgers(), &client.sender).await;
        let session = opened.map_err(|error| store_error_status(&error))?;
        match chain.ledgers().reserve(&session, today(), cost) {
            Ok(reservation) => Ok((session, reservation)),
            Err(over) => {
                chain.refuse(&session, &over);
                Err(Status::resource_exhausted(over_budget(&over)))
            }
        }
    }
}

/// A place for a request of this sender.
fn enter(places: &Arc<ConnectionLimiter<Arc<str>>>, sender: &Arc<str>) -> Result<BatchPermit, Status> {
    places.acquire(Arc::clone(sender)).map_err(|_| {
        Status::resource_exhausted(format!(
            "{MAX_AT_ONCE} requests for vectors are being answered, or {MAX_OF_SENDER} of {sender}, which is the most: try again in a moment"
        ))
    })
}

/// Whether a provider that gave no vectors may have made some: it was too slow, or its answer cannot be used.
fn is_paid(error: &ProviderError) -> bool {
    let is_answer = error.status.is_none_or(|status| (200..300).contains(&status));
    error.class == ErrorClass::Timeout || (error.class == ErrorClass::Server && is_answer)
}

fn over_budget(over: &OverBudgetError) -> String {
    let OverBudgetError { limit, budget, spent, estimate } = over;
    match limit {
        BudgetScope::Day => over.to_string(),
        BudgetScope::Session => format!(
            "${spent} of ${budget} are spent on your vectors of today (models.budget.per_session), and these would cost about \
             ${estimate}: go on after midnight UTC, or with fewer texts"
        ),
    }
}

fn check_model(embedder: &Embedder, model: &str, dimensions: u32) -> Result<(), Status> {
    let names = [embedder.model(), embedder.keys().model.clone()];
    if !model.is_empty() && names.iter().all(|name| name != model) {
        return Err(Status::not_found(format!("vectors are made by {} alone: name it", names[0])));
    }
    let own = embedder.keys().dimensions;
    if dimensions == 0 || own == Some(dimensions) {
        return Ok(());
    }
    Err(Status::invalid_argument(match own {
        Some(own) => {
            format!("vectors have {own} numbers here (models.embeddings.dimensions): leave dimensions out")
        }
        None => "vectors have as many numbers as the model makes: leave dimensions out".to_owned(),
    }))
}

fn check_texts(texts: &[String]) -> Result<(), Status> {
    if texts.is_empty() || texts.len() > MAX_TEXTS {
        return Err(Status::invalid_argument(format!("1 to {MAX_TEXTS} texts are taken at once")));
    }
    if let Some(place) = texts.iter().position(|text| text.trim().is_empty()) {
        return Err(Status::invalid_argument(format!("the text {place} is empty")));
    }
    if let Some(place) = texts.iter().position(|text| text.len() > MAX_TEXT_BYTES) {
        return Err(Status::invalid_argument(format!(
            "the text {place} has more than {MAX_TEXT_BYTES} bytes: send it in parts"
        )));
    }
    if texts.iter().map(String::len).sum::<usize>() > MAX_PLAIN_REQUEST_BYTES {
        return Err(Status::out_of_range(format!(
            "the texts have more than {MAX_PLAIN_REQUEST_BYTES} bytes together: send fewer at once"
        )));
    }
    Ok(())
}

/// The texts in order, as many at once as a provider takes.
fn batches(texts: Vec<String>) -> Vec<Vec<String>> {
    let mut batches: Vec<Vec<String>> = Vec::new();
    let mut bytes = 0;
    for text in texts {
        bytes += text.len();
        match batches.last_mut().filter(|batch| batch.len() < MAX_EMBEDDED_TEXTS && bytes <= MAX_BATCH_BYTES)
        {
            Some(batch) => batch.push(text),
            None => {
                bytes = text.len();
                batches.push(vec![text]);
            }
        }
    }
    batches
}

fn failed(error: &ProviderError) -> Status {
    tracing::warn!(target: "agent", %error, "vectors were not made for a client");
    match error.class {
        ErrorClass::RateLimit => {
            Status::resource_exhausted("the provider of vectors takes no more now: try later")
        }
        ErrorClass::Timeout => {
            Status::deadline_exceeded("the provider of vectors did not answer in time: send fewer texts")
        }
        _ => Status::unavailable("the provider of vectors failed: the agent's log says how"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-180
    #[test]
    fn texts_go_to_the_provider_in_order_and_in_batches_that_it_takes() {
        let texts: Vec<String> = (0..250).map(|number| format!("{number}{}", "x".repeat(4000))).collect();
        let batches = batches(texts.clone());
        assert!(batches.iter().all(|batch| batch.len() <= MAX_EMBEDDED_TEXTS));
        assert!(batches.iter().all(|batch| batch.iter().map(String::len).sum::<usize>() <= MAX_BATCH_BYTES));
        assert_eq!(batches.concat(), texts);
    }

    // Promises: GW-234
    #[test]
    fn who_has_spent_the_budget_is_told_which_and_what_to_do() {
        let money = |text: &str| text.parse::<Money>().expect("an amount");
        let over = OverBudgetError {
            limit: BudgetScope::Session,
            budget: money("1"),
            spent: money("0.90"),
            estimate: money("0.20"),
        };
        let said = over_budget(&over);
        assert!(
            said.starts_with("$0.90 of $1.00 are spent on your vectors") && said.contains("midnight"),
            "{said}"
        );
        assert!(
            over_budget(&OverBudgetError { limit: BudgetScope::Day, ..over })
                .contains("models.budget.per_day")
        );
    }

    // Promises: GW-234
    #[test]
    fn what_a_provider_may_have_made_is_paid_and_what_it_refused_is_not() {
        let error = |class, status| ProviderError {
            provider: "local".to_owned(),
            class,
            status,
            message: String::new(),
            retry_after: None,
        };
        assert!(is_paid(&error(ErrorClass::Timeout, None)));
        assert!(is_paid(&error(ErrorClass::Server, None)), "its answer cannot be used");
        assert!(!is_paid(&error(ErrorClass::Server, Some(503))));
        assert!(!is_paid(&error(ErrorClass::Network, None)));
        assert!(!is_paid(&error(ErrorClass::RateLimit, Some(429))));
    }

    // Promises: GW-234
    #[test]
    fn one_sender_cannot_take_all_places() {
        let places = ConnectionLimiter::new(MAX_AT_ONCE, MAX_OF_SENDER);
        let held: Vec<BatchPermit> = std::iter::from_fn(|| enter(&places, &"ada".into()).ok()).collect();
        assert_eq!(held.len(), MAX_OF_SENDER);
        let refused = enter(&places, &"ada".into()).expect_err("refused");
        assert!(refused.message().contains("4 of ada"), "{refused}");
        let others = (0..MAX_AT_ONCE).filter_map(|number| enter(&places, &number.to_string().into()).ok());
        assert_eq!(others.collect::<Vec<_>>().len(), MAX_AT_ONCE - MAX_OF_SENDER);
    }

    // Promises: GW-180
    #[test]
    fn texts_that_no_model_takes_are_refused_with_their_place() {
        let refused = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            check_texts(&texts).expect_err("refused").message().to_owned()
        };
        assert!(refused(&[]).contains("texts are taken"));
        assert!(refused(&["a", " "]).contains("text 1 is empty"));
        assert!(refused(&["a", &"x".repeat(MAX_TEXT_BYTES + 1)]).contains("text 1 has more"));
        assert!(check_texts(&["a".to_owned()]).is_ok());
    }
}
