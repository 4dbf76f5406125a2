//! Providers that fail as they are told.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::model::{Answer, Chunk, ErrorClass, ProviderError, Request, Usage};
use crate::provider::{ChunkListener, Provider};

/// What happens to one question.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// None: it answers.
    None,
    /// It answers without saying what it used.
    Uncounted,
    /// It speaks this many times, this many seconds apart, and answers.
    Slow(u32, u64),
    /// The connection breaks at once.
    DeadNetwork,
    /// Nothing ever happens.
    Hang,
    /// It speaks, and nothing happens any more.
    HangsMidway,
    /// It speaks, and the connection breaks.
    BreaksOff,
    /// 429, with `Retry-After` in seconds.
    RateLimited(Option<u64>),
    /// 402.
    NoCredit,
    /// 401.
    WrongKey,
    /// 400 with the provider's words for a transcript that is too long.
    TooLong,
    /// 400.
    BadRequest,
    /// 500.
    BrokenServer,
    /// 503 with `Retry-After` in seconds on the way, so that it is a network's error.
    Unreachable(u64),
}

/// Follows a script, and answers when that is over.
pub(super) struct Scripted {
    name: &'static str,
    faults: Mutex<VecDeque<Fault>>,
    /// None of its keys holds.
    pub(super) refuses: AtomicBool,
    pub(super) asked: AtomicUsize,
    pub(super) probed: AtomicUsize,
    /// Questions under way.
    pub(super) under_way: AtomicUsize,
    pub(super) last: Mutex<Option<Request>>,
}

impl Scripted {
    pub(super) fn new(name: &'static str, faults: impl IntoIterator<Item = Fault>) -> Self {
        Self {
            name,
            faults: Mutex::new(faults.into_iter().collect()),
            refuses: AtomicBool::new(false),
            asked: AtomicUsize::new(0),
            probed: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            last: Mutex::new(None),
        }
    }

    pub(super) fn times_asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    fn next(&self) -> Fault {
        self.faults.lock().pop_front().unwrap_or(Fault::None)
    }

    fn fails(
        &self,
        class: ErrorClass,
        status: Option<u16>,
        message: &str,
        after: Option<u64>,
    ) -> ProviderError {
        let retry_after = after.map(Duration::from_secs);
        ProviderError {
            provider: self.name.to_owned(),
            class,
            status,
            message: message.to_owned(),
            retry_after,
        }
    }

    async fn act(&self, fault: Fault, heard: &mut dyn ChunkListener) -> Result<bool, ProviderError> {
        let text = |text: &str| Chunk::Text(text.to_owned());
        match fault {
            Fault::None => heard.on_chunk(text("an answer")),
            Fault::Uncounted => {
                heard.on_chunk(text("an answer"));
                return Ok(false);
            }
            Fault::Slow(times, seconds) => {
                for _ in 0..times {
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    heard.on_chunk(text("word "));
                }
            }
            Fault::DeadNetwork => {
                return Err(self.fails(ErrorClass::Network, None, "the connection was refused", None));
            }
            Fault::Hang => std::future::pending().await,
            Fault::HangsMidway => {
                heard.on_chunk(text("half an an"));
                std::future::pending().await
            }
            Fault::BreaksOff => {
                heard.on_chunk(Chunk::Thinking("hmm, ".to_owned()));
                heard.on_chunk(text("half an an"));
                return Err(self.fails(ErrorClass::Network, None, "the connection broke", None));
            }
            Fault::RateLimited(after) => {
                return Err(self.fails(ErrorClass::RateLimit, Some(429), "too many requests", after));
            }
            Fault::NoCredit => {
                return Err(self.fails(ErrorClass::Billing, Some(402), "no credit is left", None));
            }
            Fault::WrongKey => return Err(self.fails(ErrorClass::Auth, Some(401), "the key is wrong", None)),
            Fault::TooLong => {
                return Err(self.fails(ErrorClass::Context, Some(400), "the transcript is too long", None));
            }
            Fault::BadRequest => {
                return Err(self.fails(ErrorClass::Request, Some(400), "no such model", None));
            }
            Fault::BrokenServer => {
                return Err(self.fails(ErrorClass::Server, Some(500), "the server has an error", None));
            }
            Fault::Unreachable(after) => {
                return Err(self.fails(
                    ErrorClass::Network,
                    Some(503),
                    "the gateway reaches nobody",
                    Some(after),
                ));
            }
        }
        Ok(true)
    }
}

/// One question under way, however it ends.
struct InFlight<'a>(&'a AtomicUsize);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl Provider for Scripted {
    fn name(&self) -> &str {
        self.name
    }

    async fn ask(&self, request: &Request, heard: &mut dyn ChunkListener) -> Result<Answer, ProviderError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let _under_way = InFlight(&self.under_way);
        *self.last.lock() = Some(request.clone());
        let counts = self.act(self.next(), heard).await?;
        let usage = Usage {
            input_tokens: 1000,
            cache_written_tokens: 0,
            cached_input_tokens: 0,
            output_tokens: 100,
            thinking_tokens: 0,
        };
        Ok(Answer {
            text: "an answer".to_owned(),
            usage: counts.then_some(usage),
            model: request.model.clone(),
            ..Answer::default()
        })
    }

    fn permanent_refusal(&self) -> Option<String> {
        self.refuses
            .load(Ordering::Relaxed)
            .then(|| "all its keys were refused: give it one that holds".to_owned())
    }

    async fn probe(&self) -> Result<(), ProviderError> {
        self.probed.fetch_add(1, Ordering::Relaxed);
        self.act(self.next(), &mut |_| {}).await.map(|_| ())
    }
}
