//! The state of a running turn that is not durable: once in memory, whoever follows it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use talon_proto::agent::event::Kind;
use talon_proto::agent::{Discard, LoopState, Notice, Piece};
use talon_store::Timestamp;

/// The most text of an attempt, as the journal has it: what comes after is in neither.
const MAX_TEXT_BYTES: usize = 1_000_000;
/// The most thoughts of an attempt. 256 KiB: more than people read; the rest is left out of pieces.
const MAX_THINKING_BYTES: usize = 256 << 10;
/// The most progress, output and notices that are kept for followers who have not got them yet. 64 KiB and 256: some
/// seconds of a build; who is slower is told how many are missing.
const MAX_RECENT_BYTES: usize = 64 << 10;
const MAX_RECENT: usize = 256;

/// The latest number of an attempt. Numbers grow over restarts, since they begin with the time.
static LAST_ATTEMPT: AtomicU64 = AtomicU64::new(0);

fn next_attempt() -> u64 {
    let now = Timestamp::now().as_millis().unsigned_abs().saturating_mul(1000);
    let next = |last: u64| Some(now.max(last + 1));
    match LAST_ATTEMPT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
        Ok(last) | Err(last) => now.max(last + 1),
    }
}

/// What is not durable of a running turn.
#[derive(Debug)]
pub(super) struct LiveTurn {
    /// No other has it.
    number: u64,
    turn: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The session's last message in the store, as far as this process wrote it.
    last_message: u64,
    attempt: Option<Attempt>,
    /// The last attempt is in the store, or about to be.
    is_stored: bool,
    /// Where the loop is, and how often that changed.
    loop_state: Option<Arc<LoopState>>,
    loop_changes: u64,
    recent: VecDeque<(Arc<Kind>, usize)>,
    recent_bytes: usize,
    /// How many were put there in all.
    recent_count: u64,
}

/// What a model has said of an answer so far.
#[derive(Debug)]
struct Attempt {
    number: u64,
    /// The session's last message before it.
    after: u64,
    text: String,
    thinking: String,
}

/// How far a follower is in a turn.
#[derive(Debug, Clone, Default)]
pub(super) struct LiveCursor {
    /// [`LiveTurn::number`], so that the next one begins at its beginning.
    turn: Option<u64>,
    /// The attempt, and how much of its text and thoughts was told.
    attempt: Option<(u64, usize, usize)>,
    loop_changes: u64,
    recent_count: u64,
    /// Whether the follower knows which attempt counts.
    is_settled: bool,
}

impl LiveCursor {
    /// A durable event told what the attempt became.
    pub(super) fn forget_attempt(&mut self) {
        self.attempt = None;
    }

    /// What to say if the session is in no turn.
    pub(super) fn settle(&mut self) -> Option<Kind> {
        (!std::mem::replace(&mut self.is_settled, true)).then_some(Kind::Discard(Discard { attempt: 0 }))
    }
}

/// Messages have to be read from the store first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BehindStore;

impl LiveTurn {
    pub(super) fn new(turn: u64) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { number, turn, state: Mutex::default() })
    }

    pub(super) fn turn(&self) -> u64 {
        self.turn
    }

    pub(super) fn add_text(&self, text: &str) {
        let mut state = self.state.lock();
        add(&mut state.attempt().text, text, MAX_TEXT_BYTES);
    }

    pub(super) fn add_thinking(&self, text: &str) {
        let mut state = self.state.lock();
        add(&mut state.attempt().thinking, text, MAX_THINKING_BYTES);
    }

    /// The attempt does not count: another one begins.
    pub(super) fn discard(&self) {
        let mut state = self.state.lock();
        (state.attempt, state.is_stored) = (None, false);
    }

    /// What the attempt became is about to be stored.
    pub(super) fn store_attempt(&self) {
        let mut state = self.state.lock();
        if state.attempt.take().is_some() {
            state.is_stored = true;
        }
    }

    /// The session's log ends with this message.
    pub(super) fn stored(&self, last: u64) {
        let mut state = self.state.lock();
        state.last_message = state.last_message.max(last);
    }

    pub(super) fn set_loop(&self, at: LoopState) {
        let mut state = self.state.lock();
        state.loop_state = Some(Arc::new(at));
        state.loop_changes += 1;
    }

    pub(super) fn add_recent(&self, kind: Kind) {
        let bytes = kind.encoded_len();
        let mut state = self.state.lock();
        state.recent.push_back((Arc::new(kind), bytes));
        state.recent_bytes += bytes;
        state.recent_count += 1;
        while state.recent.len() > MAX_RECENT || state.recent_bytes > MAX_RECENT_BYTES {
            let Some((_, bytes)) = state.recent.pop_front() else { break };
            state.recent_bytes -= bytes;
        }
    }

    /// What a follower has not got yet, who has read the store up to `message`.
    ///
    /// # Errors
    /// [`BehindStore`] if the store has more, which comes first.
    pub(super) fn news(&self, cursor: &mut LiveCursor, message: u64) -> Result<Vec<Kind>, BehindStore> {
        let state = self.state.lock();
        if state.attempt.as_ref().is_some_and(|attempt| attempt.after > message) {
            return Err(BehindStore);
        }
        if cursor.turn != Some(self.number) {
            let LiveCursor { attempt, is_settled, .. } = *cursor;
            *cursor = LiveCursor { turn: Some(self.number), attempt, is_settled, ..LiveCursor::default() };
        }
        let mut news = Vec::new();
        if cursor.loop_changes != state.loop_changes {
            cursor.loop_changes = state.loop_changes;
            news.extend(state.loop_state.as_deref().cloned().map(Kind::Loop));
        }
        let missed = state.recent_count - cursor.recent_count;
        let kept = state.recent.len();
        if let Some(lost) = missed.checked_sub(kept as u64).filter(|lost| *lost > 0) {
            let text = format!(
                "{lost} lines of progress and output are missing here, since this reader is too slow"
            );
            news.push(Kind::LiveNotice(Notice { level: "warn".to_owned(), text, discard_text: false }));
        }
        let skipped = kept.saturating_sub(usize::try_from(missed).unwrap_or(usize::MAX));
        news.extend(state.recent.iter().skip(skipped).map(|(kind, _)| (**kind).clone()));
        cursor.recent_count = state.recent_count;
        state.tell_attempt(cursor, &mut news);
        Ok(news)
    }
}

impl State {
    fn attempt(&mut self) -> &mut Attempt {
        let after = self.last_message;
        self.is_stored = false;
        self.attempt.get_or_insert_with(|| Attempt {
            number: next_attempt(),
            after,
            text: String::new(),
            thinking: String::new(),
        })
    }

    fn tell_attempt(&self, cursor: &mut LiveCursor, news: &mut Vec<Kind>) {
        let Some(attempt) = &self.attempt else {
            // What became of a stored one is told by the message in the store.
            let is_void = cursor.attempt.is_some() && !self.is_stored;
            if is_void || !cursor.is_settled {
                news.push(Kind::Discard(Discard { attempt: 0 }));
                (cursor.attempt, cursor.is_settled) = (None, true);
            }
            return;
        };
        let number = attempt.number;
        let is_known = cursor.attempt.is_some_and(|(known, ..)| known == number);
        if !is_known && (cursor.attempt.is_some() || !cursor.is_settled) {
            news.push(Kind::Discard(Discard { attempt: number }));
        }
        let (_, text, thinking) = cursor.attempt.filter(|_| is_known).unwrap_or((number, 0, 0));
        for (all, from, is_thinking) in [(&attempt.thinking, thinking, true), (&attempt.text, text, false)] {
            if let Some(more) = all.get(from..).filter(|more| !more.is_empty()) {
                let (offset, text) = (from as u64, more.to_owned());
                news.push(Kind::Piece(Piece { attempt: number, offset, text, thinking: is_thinking }));
            }
        }
        cursor.attempt = Some((number, attempt.text.len(), attempt.thinking.len()));
        cursor.is_settled = true;
    }
}

fn add(to: &mut String, more: &str, limit: usize) {
    let room = limit.saturating_sub(to.len());
    to.push_str(&more[..more.floor_char_boundary(room)]);
}

#[cfg(test)]
#[path = "live_turn_tests.rs"]
mod tests;
