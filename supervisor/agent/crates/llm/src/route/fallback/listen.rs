//! Who hears the pieces of an answer, and that some are taken back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::model::{Chunk, ErrorClass};
use crate::provider::Hear;
use crate::route::catalog::ModelRef;

/// What is heard.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// One more piece of the answer.
    Piece(Chunk),
    /// All pieces since the beginning, or since the last of these, are part of no answer: forget them. The answer starts
    /// afresh, or there is none.
    Withdrawn {
        /// Who said them.
        model: ModelRef,
        /// Why they are worth nothing.
        class: ErrorClass,
    },
}

/// Hears the pieces of an answer as they come. Must not block.
pub trait Listen: Send {
    /// One more thing.
    fn hear(&mut self, heard: Heard);

    /// Whether what was heard can be taken back: false for a pipe, true for a screen and for whoever collects first.
    fn can_withdraw(&self) -> bool {
        true
    }
}

impl<F: FnMut(Heard) + Send> Listen for F {
    fn hear(&mut self, heard: Heard) {
        self(heard);
    }
}

/// What was heard of one attempt, for whoever watches it.
#[derive(Debug)]
pub(super) struct Signs {
    started: Instant,
    /// Milliseconds from the start to the last piece.
    last_millis: AtomicU64,
    pieces: AtomicU64,
    chars: AtomicU64,
}

impl Signs {
    pub(super) fn new(started: Instant) -> Self {
        Self { started, last_millis: AtomicU64::new(0), pieces: AtomicU64::new(0), chars: AtomicU64::new(0) }
    }

    /// When it gave the last sign of life; its start, if there was none.
    pub(super) fn last(&self) -> Instant {
        self.started + Duration::from_millis(self.last_millis.load(Ordering::Relaxed))
    }

    pub(super) fn any(&self) -> bool {
        self.pieces.load(Ordering::Relaxed) > 0
    }

    /// Characters of all pieces.
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
        let millis = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_millis.store(millis, Ordering::Relaxed);
    }
}

/// Stands between a provider and the listener.
pub(super) struct Relay<'a> {
    pub(super) listener: &'a mut dyn Listen,
    pub(super) signs: &'a Signs,
}

impl Hear for Relay<'_> {
    fn hear(&mut self, chunk: Chunk) {
        self.signs.note(&chunk);
        self.listener.hear(Heard::Piece(chunk));
    }
}
