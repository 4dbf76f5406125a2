//! Which call a server's question belongs to.
//!
//! The protocol does not say it, so a question is asked only while one call is under way.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::question::{Question, Refusal};

/// A question that waits for its answer. Dropping it cancels it.
pub(crate) struct AskedQuestion {
    pub(crate) question: Question,
    /// Takes the result of `elicitation/create`.
    pub(crate) answer: oneshot::Sender<Value>,
}

/// The calls that are under way or parked. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Questions {
    calls: Arc<Mutex<Calls>>,
}

#[derive(Default)]
struct Calls {
    next: u64,
    open: HashMap<u64, CallEntry>,
}

/// One call.
struct CallEntry {
    /// Takes its question, if its caller can ask one.
    asked: Option<mpsc::Sender<AskedQuestion>>,
    /// Why the last question that was not asked was declined.
    declined: Arc<Mutex<Option<Refusal>>>,
}

impl Questions {
    /// Enters a call, until its place is dropped. `takes`: whether its caller can put a question to a user.
    pub(crate) fn enter(&self, takes: bool) -> CallPlace {
        // One question of a call at a time.
        let (sender, asked) = mpsc::channel(1);
        let declined = Arc::<Mutex<Option<Refusal>>>::default();
        let mut calls = self.calls.lock();
        let id = calls.next;
        calls.next += 1;
        let entry = CallEntry { asked: takes.then_some(sender), declined: Arc::clone(&declined) };
        calls.open.insert(id, entry);
        CallPlace { questions: self.clone(), id, asked, declined }
    }

    /// Asks, and returns the result of `elicitation/create`. What cannot be asked is declined at once.
    pub(crate) async fn ask(&self, params: &Value) -> Value {
        let waiting = Question::of(params).and_then(|question| self.deliver(question));
        match waiting {
            // The other end is dropped when the call is over, or was parked for too long.
            Ok(answer) => answer.await.unwrap_or_else(|_| json!({ "action": "cancel" })),
            Err(why) => {
                tracing::info!("the MCP server asks its user something: declined, because {why}");
                self.note(why);
                json!({ "action": "decline" })
            }
        }
    }

    fn deliver(&self, question: Question) -> Result<oneshot::Receiver<Value>, Refusal> {
        let calls = self.calls.lock();
        let mut open = calls.open.values();
        let (Some(call), None) = (open.next(), open.next()) else {
            return Err(Refusal::Calls(calls.open.len()));
        };
        let (answer, waiting) = oneshot::channel();
        let refusal = match &call.asked {
            None => Refusal::Caller,
            Some(asked) => match asked.try_send(AskedQuestion { question, answer }) {
                Ok(()) => return Ok(waiting),
                Err(_) => Refusal::Open,
            },
        };
        Err(refusal)
    }

    /// Notes why a question was not asked, for the answer of the only call that is under way.
    fn note(&self, why: Refusal) {
        let calls = self.calls.lock();
        let mut open = calls.open.values();
        if let (Some(call), None) = (open.next(), open.next()) {
            *call.declined.lock() = Some(why);
        }
    }
}

/// One call among those that a question may be for.
pub(crate) struct CallPlace {
    questions: Questions,
    id: u64,
    asked: mpsc::Receiver<AskedQuestion>,
    declined: Arc<Mutex<Option<Refusal>>>,
}

impl CallPlace {
    /// The next question; never resolves without one.
    pub(crate) async fn asked(&mut self) -> AskedQuestion {
        match self.asked.recv().await {
            Some(asked) => asked,
            None => std::future::pending().await,
        }
    }

    /// Why the last question that could not be asked was declined.
    pub(crate) fn declined(&self) -> Option<Refusal> {
        self.declined.lock().clone()
    }
}

impl Drop for CallPlace {
    fn drop(&mut self) {
        self.questions.calls.lock().open.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Value {
        json!({ "message": "Which?", "requestedSchema": {"type": "object", "properties": {}} })
    }

    // Promises: MCP-41
    #[tokio::test]
    async fn a_question_goes_to_the_one_call_whose_caller_can_ask() {
        let declined = json!({ "action": "decline" });
        let questions = Questions::default();
        assert_eq!(questions.ask(&question()).await, declined, "there is no call");
        let silent = questions.enter(false);
        assert_eq!(questions.ask(&question()).await, declined, "its caller cannot ask");
        assert_eq!(silent.declined(), Some(Refusal::Caller));
        let mut call = questions.enter(true);
        assert_eq!(questions.ask(&question()).await, declined, "it may be either one's");
        drop(silent);
        let asking = question();
        let (answer, ()) = tokio::join!(questions.ask(&asking), async {
            let asked = call.asked().await;
            assert_eq!(asked.question.text, "Which?");
            asked.answer.send(json!({ "action": "accept" })).unwrap();
        });
        assert_eq!(answer, json!({ "action": "accept" }));
        let asking = question();
        let (answer, ()) = tokio::join!(questions.ask(&asking), async { drop(call.asked().await) });
        assert_eq!(answer, json!({ "action": "cancel" }), "the call is over");
    }

    #[tokio::test]
    async fn a_call_has_one_question_at_a_time() {
        let questions = Questions::default();
        let call = questions.enter(true);
        let first = tokio::spawn({
            let questions = questions.clone();
            async move { questions.ask(&question()).await }
        });
        while call.asked.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(questions.ask(&question()).await, json!({ "action": "decline" }));
        drop(call);
        assert_eq!(first.await.unwrap(), json!({ "action": "cancel" }));
    }
}
