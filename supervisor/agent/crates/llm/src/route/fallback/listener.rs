//! Listeners that receive the pieces of an answer, and their withdrawal.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use talon_agent_settings::milliseconds;
use tokio::time::Instant;

use crate::model::{Chunk, ErrorClass};
use crate::provider::ChunkListener;
use crate::route::catalog::ModelRef;

/// A piece of an answer, or the withdrawal of all pieces.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerEvent {
    /// A piece of the answer.
    Piece(Chunk),
    /// No model can be asked now, and this one is waited for. Nothing is withdrawn.
    Waiting {
        /// The model.
        model: ModelRef,
        /// The time.
        wait: Duration,
        /// Why.
        class: ErrorClass,
    },
    /// All pieces since the beginning, or since the last withdrawal, are part of no answer and have to be
    /// discarded. The answer starts again, or there is none.
    Withdrawn {
        /// The model that sent them.
        model: ModelRef,
        /// The class of the failure.
        class: ErrorClass,
    },
}

/// Receives the pieces of an answer as they arrive. Must not block.
pub trait AnswerListener: Send {
    /// Receives a piece or a withdrawal.
    fn on_event(&mut self, event: AnswerEvent);

    /// Whether pieces can be withdrawn: false for a pipe, true for a screen and for a listener that collects
    /// first.
    fn can_withdraw(&self) -> bool {
        true
    }
}

impl<F: FnMut(AnswerEvent) + Send> AnswerListener for F {
    fn on_event(&mut self, event: AnswerEvent) {
        self(event);
    }
}

/// The pieces received so far of one attempt, for supervision.
#[derive(Debug)]
pub(super) struct AttemptProgress {
    started: Instant,
    first_millis: OnceLock<u64>,
    /// Milliseconds from the start to the last piece.
    last_millis: AtomicU64,
    pieces: AtomicU64,
    chars: AtomicU64,
}

impl AttemptProgress {
    pub(super) fn new(started: Instant) -> Self {
        Self {
            started,
            first_millis: OnceLock::new(),
            last_millis: AtomicU64::new(0),
            pieces: AtomicU64::new(0),
            chars: AtomicU64::new(0),
        }
    }

    /// The time from the start to the first piece; `None` without one.
    pub(super) fn first(&self) -> Option<Duration> {
        self.first_millis.get().copied().map(Duration::from_millis)
    }

    /// The time of the last piece; the start, if there was none.
    pub(super) fn last(&self) -> Instant {
        self.started + Duration::from_millis(self.last_millis.load(Ordering::Relaxed))
    }

    pub(super) fn any(&self) -> bool {
        self.pieces.load(Ordering::Relaxed) > 0
    }

    /// The characters of all pieces.
    pub(super) fn chars(&self) -> u64 {
        self.chars.load(Ordering::Relaxed)
    }

    fn note(&self, chunk: &Chunk) {
        let chars = match chunk {
            Chunk::Thinking(text) | Chunk::Text(text) => text.chars().count(),
            // Its name and the marks around it are a few tokens, too.
            Chunk::Call(call) => {
                call.name.len() + serde_json::to_string(&call.arguments).map_or(0, |text| text.len())
            }
        };
        self.chars.fetch_add(u64::try_from(chars).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.pieces.fetch_add(1, Ordering::Relaxed);
        let millis = milliseconds(self.started.elapsed());
        self.first_millis.get_or_init(|| millis);
        self.last_millis.store(millis, Ordering::Relaxed);
    }
}

/// Passes pieces from a provider to the listener.
pub(super) struct Relay<'a> {
    pub(super) listener: &'a mut dyn AnswerListener,
    pub(super) signs: &'a AttemptProgress,
}

impl ChunkListener for Relay<'_> {
    fn on_chunk(&mut self, chunk: Chunk) {
        self.signs.note(&chunk);
        self.listener.on_event(AnswerEvent::Piece(chunk));
    }
}
