//! Answers, piece by piece. A stream cannot take back what it said: where the agent begins anew after text was sent, the stream ends with
//! an error instead of a mixture of two answers.

use std::convert::Infallible;

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{FutureExt as _, Stream, StreamExt as _, stream};
use serde::Serialize;
use serde_json::{Value, json};
use talon_proto::agent::ClientCall;
use talon_proto::agent::chunk::Kind;

use super::completion::{CompletionUsage, completion_id, created, finish_reason};
use super::errors::error;
use super::request::ChatRequest;
use super::turn::CompletionTurn;
use crate::app::App;
use crate::identity::Caller;
use crate::problem::{Problem, ProblemKind};
use crate::sse::{KEEP_ALIVE, ended};
use crate::turn::failed;

/// What a stream writes at its end.
const DONE: &str = "[DONE]";

/// The stream of an answer.
pub(super) fn answer(
    app: &App,
    caller: &Caller,
    turn: CompletionTurn,
    request: &ChatRequest,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + use<>> {
    let pieces = Pieces {
        id: completion_id(),
        created: created(),
        model: request.model.clone(),
        include_usage: request.include_usage,
        has_text: false,
    };
    let begin = pieces.piece(&json!({"role": "assistant", "content": ""}), None);
    let rest = stream::unfold(Some((turn, pieces)), |state| async move {
        let (mut turn, mut pieces) = state?;
        loop {
            let kind = match turn.next().await {
                Ok(Some(kind)) => kind,
                Ok(None) => return Some((vec![error(&lost()).to_string()], None)),
                Err(status) => return Some((vec![error(&status.into()).to_string()], None)),
            };
            match pieces.next(kind) {
                Step::Nothing => {}
                Step::More(text) => return Some((vec![text], Some((turn, pieces)))),
                Step::End(texts) => return Some((texts, None)),
            }
        }
    });
    let texts = stream::iter([vec![begin]]).chain(rest).take_until(ended(app, caller).boxed());
    let events = texts.flat_map(stream::iter).map(|text| Ok(Event::default().data(text)));
    Sse::new(events.boxed()).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

pub(super) fn lost() -> Problem {
    Problem::new(ProblemKind::Unavailable, "the agent ended in the middle of the answer: ask again")
}

pub(super) fn begun_anew() -> Problem {
    let detail = "the answer was begun anew after a part of it was sent: ask again, or without stream";
    Problem::new(ProblemKind::BadGateway, detail)
}

/// What a piece of a turn becomes.
#[derive(Debug, PartialEq)]
enum Step {
    Nothing,
    More(String),
    End(Vec<String>),
}

/// Writes the pieces of one completion.
struct Pieces {
    id: String,
    created: u64,
    model: String,
    include_usage: bool,
    has_text: bool,
}

impl Pieces {
    fn next(&mut self, kind: Kind) -> Step {
        match kind {
            Kind::Text(text) if text.whole && self.has_text => {
                Step::End(vec![error(&begun_anew()).to_string()])
            }
            Kind::Text(text) => {
                self.has_text = true;
                Step::More(self.piece(&TextDelta { content: &text.text }, None))
            }
            Kind::Notice(notice) if notice.discard_text && self.has_text => {
                Step::End(vec![error(&begun_anew()).to_string()])
            }
            Kind::Done(done) => {
                let mut texts: Vec<String> = done
                    .client_calls
                    .iter()
                    .enumerate()
                    .flat_map(|(index, call)| self.call(index, call))
                    .collect();
                texts.push(self.piece(&json!({}), Some(finish_reason(&done))));
                if self.include_usage {
                    let usage = CompletionUsage::from(done.usage.as_ref());
                    texts.push(self.chunk(&[] as &[ChunkChoice<'_, Value>], Some(usage)));
                }
                texts.push(DONE.to_owned());
                Step::End(texts)
            }
            Kind::Error(failure) => Step::End(vec![error(&failed(&failure)).to_string()]),
            _ => Step::Nothing,
        }
    }

    /// A call: its name first, and then its arguments, as clients put calls together.
    fn call(&self, index: usize, call: &ClientCall) -> [String; 2] {
        let named = json!({"index": index, "id": call.id, "type": "function",
            "function": {"name": call.name, "arguments": ""}});
        let arguments = json!({"index": index, "function": {"arguments": call.arguments}});
        [named, arguments].map(|call| self.piece(&json!({"tool_calls": [call]}), None))
    }

    fn piece(&self, delta: &impl Serialize, finish_reason: Option<&str>) -> String {
        let choice = ChunkChoice { index: 0, delta, finish_reason, logprobs: () };
        self.chunk(&[choice], None)
    }

    fn chunk(&self, choices: &[ChunkChoice<'_, impl Serialize>], usage: Option<CompletionUsage>) -> String {
        let Self { id, created, model, .. } = self;
        let usage = self.include_usage.then_some(usage);
        let chunk =
            CompletionChunk { id, object: "chat.completion.chunk", created: *created, model, choices, usage };
        serde_json::to_string(&chunk).expect("it is texts and numbers")
    }
}

/// A piece, as it is written. Written from its parts: as a JSON value it would be built of dozens of allocations.
#[derive(Serialize)]
struct CompletionChunk<'p, D> {
    id: &'p str,
    object: &'static str,
    created: u64,
    model: &'p str,
    choices: &'p [ChunkChoice<'p, D>],
    /// In each piece if asked for, and null in all but the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Option<CompletionUsage>>,
}

#[derive(Serialize)]
struct ChunkChoice<'p, D> {
    index: u32,
    delta: &'p D,
    finish_reason: Option<&'p str>,
    /// Always null.
    logprobs: (),
}

/// A piece of the text.
#[derive(Serialize)]
struct TextDelta<'p> {
    content: &'p str,
}

#[cfg(test)]
mod tests {
    use talon_proto::agent::{Done, Notice, Text};

    use super::*;

    fn pieces() -> Pieces {
        let (id, model) = ("chatcmpl_1".to_owned(), "talon".to_owned());
        Pieces { id, created: 1, model, include_usage: true, has_text: false }
    }

    fn text(text: &str, whole: bool) -> Kind {
        Kind::Text(Text { text: text.to_owned(), whole })
    }

    #[test]
    fn a_stream_ends_with_usage_and_done() {
        let mut pieces = pieces();
        let Step::More(piece) = pieces.next(text("Hi", false)) else { panic!() };
        let piece: Value = serde_json::from_str(&piece).unwrap();
        assert_eq!((&piece["choices"][0]["delta"]["content"], &piece["usage"]), (&json!("Hi"), &Value::Null));
        let Step::End(texts) = pieces.next(Kind::Done(Done::default())) else { panic!() };
        assert_eq!((texts.len(), texts[2].as_str()), (3, DONE));
        assert_eq!(serde_json::from_str::<Value>(&texts[1]).unwrap()["choices"], json!([]));
    }

    // Promises: GW-167
    #[test]
    fn calls_of_the_clients_tools_are_streamed_by_their_places() {
        let call = |id: &str| ClientCall {
            id: id.to_owned(),
            name: "look".to_owned(),
            arguments: format!("{{\"at\":\"{id}\"}}"),
        };
        let done = Done {
            client_calls: vec![call("a"), call("b")],
            finish: "client_calls".to_owned(),
            ..Done::default()
        };
        let Step::End(texts) = pieces().next(Kind::Done(done)) else { panic!() };
        let mut arguments = [String::new(), String::new()];
        let mut finish = Value::Null;
        for text in texts.iter().filter(|text| *text != DONE) {
            let piece: Value = serde_json::from_str(text).unwrap();
            let Some(choice) = piece["choices"].get(0) else { continue };
            for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
                let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
                arguments[index].push_str(call["function"]["arguments"].as_str().unwrap());
            }
            finish = choice["finish_reason"].clone();
        }
        assert_eq!(arguments, ["{\"at\":\"a\"}", "{\"at\":\"b\"}"]);
        assert_eq!(finish, "tool_calls");
    }

    #[test]
    fn two_answers_are_never_mixed() {
        let discard = || Kind::Notice(Notice { discard_text: true, ..Notice::default() });
        for second in [text("all", true), discard()] {
            let mut pieces = pieces();
            assert!(matches!(pieces.next(text("a", false)), Step::More(_)));
            let Step::End(texts) = pieces.next(second) else { panic!() };
            assert!(texts.len() == 1 && texts[0].contains("begun anew"), "{texts:?}");
        }
        let mut fresh = pieces();
        assert_eq!(fresh.next(discard()), Step::Nothing);
        assert!(matches!(fresh.next(text("all", true)), Step::More(_)));
    }
}
