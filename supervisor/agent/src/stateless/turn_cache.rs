//! What turns did that their clients do not know: calls of the server's own tools before calls that the client makes. The client's next
//! request names it by the ids that were issued.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use talon_llm::model::{Message, ToolCall};
use tokio::time::Instant;

use crate::media::ImageWithBytes;

/// How long it is kept. An hour: clients run their tools at once or ask a person first. Not configurable; after it the client is told
/// that the turn has expired.
const KEPT_FOR: Duration = Duration::from_secs(60 * 60);
/// The most bytes of one sender, and of all. Beyond them the oldest go first, whose clients are told the same.
const MAX_SENDER_BYTES: usize = 16 << 20;
const MAX_BYTES: usize = 128 << 20;
/// What one turn costs besides its texts.
const OVERHEAD_BYTES: usize = 512;

/// What one turn did.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CachedTurn {
    /// From what the client knew up to the answer that makes its calls, with the results of the server's.
    pub(crate) messages: Vec<Message>,
    /// The images in it.
    pub(crate) images: Vec<ImageWithBytes>,
}

#[derive(Debug)]
struct Entry {
    sender: String,
    ids: Vec<String>,
    until: Instant,
    bytes: usize,
    turn: Arc<CachedTurn>,
}

/// The turns of the last hour.
#[derive(Debug, Default)]
pub(crate) struct TurnCache(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// By number, which grows with time.
    entries: BTreeMap<u64, Entry>,
    next: u64,
    by_id: BTreeMap<String, u64>,
    by_sender: BTreeMap<String, (usize, VecDeque<u64>)>,
    bytes: usize,
}

impl TurnCache {
    /// Keeps what a turn did before these calls.
    pub(crate) fn add(&self, sender: &str, calls: &[ToolCall], turn: CachedTurn) {
        let bytes = size(&turn);
        if bytes > MAX_SENDER_BYTES {
            tracing::warn!(target: "agent", sender, bytes, "a turn is too large to be kept for its client, who will be told that it has expired");
            return;
        }
        let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
        let entry = Entry {
            sender: sender.to_owned(),
            ids,
            until: Instant::now() + KEPT_FOR,
            bytes,
            turn: Arc::new(turn),
        };
        let mut state = self.0.lock();
        state.forget_old(Instant::now());
        while state.by_sender.get(sender).is_some_and(|(held, _)| held + bytes > MAX_SENDER_BYTES) {
            let Some(oldest) = state.by_sender.get(sender).and_then(|(_, own)| own.front().copied()) else {
                break;
            };
            state.remove(oldest);
        }
        while state.bytes + bytes > MAX_BYTES {
            let Some(oldest) = state.entries.keys().next().copied() else { break };
            state.remove(oldest);
        }
        state.insert(entry);
    }

    /// What the turn did that issued this call to this sender.
    pub(crate) fn find(&self, sender: &str, id: &str) -> Option<Arc<CachedTurn>> {
        let mut state = self.0.lock();
        state.forget_old(Instant::now());
        let entry = state.entries.get(state.by_id.get(id)?)?;
        (entry.sender == sender).then(|| Arc::clone(&entry.turn))
    }

    /// Forgets what was kept of a sender.
    pub(crate) fn forget(&self, sender: &str) {
        let mut state = self.0.lock();
        let own: Vec<u64> =
            state.by_sender.get(sender).map(|(_, own)| own.iter().copied().collect()).unwrap_or_default();
        own.into_iter().for_each(|number| state.remove(number));
    }
}

impl State {
    fn insert(&mut self, entry: Entry) {
        let number = self.next;
        self.next += 1;
        self.bytes += entry.bytes;
        let (held, own) = self.by_sender.entry(entry.sender.clone()).or_default();
        *held += entry.bytes;
        own.push_back(number);
        self.by_id.extend(entry.ids.iter().map(|id| (id.clone(), number)));
        self.entries.insert(number, entry);
    }

    fn remove(&mut self, number: u64) {
        let Some(entry) = self.entries.remove(&number) else { return };
        self.bytes -= entry.bytes;
        for id in &entry.ids {
            self.by_id.remove(id);
        }
        if let Some((held, own)) = self.by_sender.get_mut(&entry.sender) {
            *held -= entry.bytes;
            own.retain(|kept| *kept != number);
            if own.is_empty() {
                self.by_sender.remove(&entry.sender);
            }
        }
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some((number, entry)) = self.entries.first_key_value() {
            if entry.until > now {
                return;
            }
            let number = *number;
            self.remove(number);
        }
    }
}

fn size(turn: &CachedTurn) -> usize {
    let texts =
        turn.messages.iter().map(|message| serde_json::to_string(message).map_or(0, |text| text.len()));
    let images = turn.images.iter().map(|(_, bytes)| bytes.len());
    OVERHEAD_BYTES + texts.chain(images).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use talon_llm::model::Arguments;

    fn call(id: &str) -> ToolCall {
        ToolCall {
            id: id.to_owned(),
            name: "look".to_owned(),
            arguments: Arguments::Object(Default::default()),
        }
    }

    fn turn(text: &str) -> CachedTurn {
        CachedTurn { messages: vec![Message::User { text: text.to_owned() }], images: Vec::new() }
    }

    // Promises: GW-163
    #[tokio::test(start_paused = true)]
    async fn a_turn_is_found_by_any_of_its_calls_by_its_sender_for_an_hour() {
        let kept = TurnCache::default();
        kept.add("ada", &[call("a"), call("b")], turn("one"));
        for id in ["a", "b"] {
            assert_eq!(kept.find("ada", id).expect("it is kept").messages, turn("one").messages);
        }
        assert!(kept.find("bob", "a").is_none() && kept.find("ada", "c").is_none());
        tokio::time::advance(KEPT_FOR).await;
        assert!(kept.find("ada", "a").is_none());
        assert_eq!(kept.0.lock().bytes, 0);
    }

    // Promises: GW-163
    #[tokio::test(start_paused = true)]
    async fn the_oldest_of_a_sender_go_first_and_no_sender_takes_the_room_of_all() {
        let kept = TurnCache::default();
        kept.add("bob", &[call("bob")], turn("his"));
        let large = "x".repeat(MAX_SENDER_BYTES / 4);
        for number in 0..6 {
            kept.add("ada", &[call(&number.to_string())], turn(&large));
        }
        let found: Vec<bool> = (0..6).map(|number| kept.find("ada", &number.to_string()).is_some()).collect();
        assert_eq!(found, [false, false, false, true, true, true]);
        assert!(kept.find("bob", "bob").is_some());
        kept.add("ada", &[call("huge")], turn(&"x".repeat(MAX_SENDER_BYTES)));
        assert!(kept.find("ada", "huge").is_none() && kept.find("ada", "5").is_some());
        kept.forget("ada");
        assert!(kept.find("ada", "5").is_none() && kept.find("bob", "bob").is_some());
    }
}
