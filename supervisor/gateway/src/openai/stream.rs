//! Answers, piece by piece. A stream cannot take back what it said: where the agent begins anew after text was sent, the stream ends with
//! an error instead of a mixture of two answers.

use std::convert::Infallible;

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{FutureExt as _, Stream, StreamExt as _, stream};
use serde::Serialize;
use talon_proto::agent::ClientCall;
use talon_proto::agent::chunk::Kind;
use utoipa::ToSchema;

use super::completion::{CompletionUsage, FinishReason, Null, completion_id, created};
use super::errors::{OpenAiError, error};
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
    let first = ChunkDelta { role: Some("assistant"), content: Some(""), ..ChunkDelta::default() };
    let begin = pieces.piece(first, None);
    let rest = stream::unfold(Some((turn, pieces)), |state| async move {
        let (mut turn, mut pieces) = state?;
        loop {
            let kind = match turn.next().await {
                Ok(Some(kind)) => kind,
                Ok(None) => return Some((vec![refusal(&lost())], None)),
                Err(status) => return Some((vec![refusal(&status.into())], None)),
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
            Kind::Text(text) if text.whole && self.has_text => Step::End(vec![refusal(&begun_anew())]),
            Kind::Text(text) => {
                self.has_text = true;
                Step::More(
                    self.piece(ChunkDelta { content: Some(&text.text), ..ChunkDelta::default() }, None),
                )
            }
            Kind::Notice(notice) if notice.discard_text && self.has_text => {
                Step::End(vec![refusal(&begun_anew())])
            }
            Kind::Done(done) => {
                let mut texts: Vec<String> = done
                    .client_calls
                    .iter()
                    .enumerate()
                    .flat_map(|(index, call)| self.call(index, call))
                    .collect();
                texts.push(self.piece(ChunkDelta::default(), Some(FinishReason::of(&done))));
                if self.include_usage {
                    let usage = CompletionUsage::from(done.usage.as_ref());
                    texts.push(self.chunk(&[], Some(usage)));
                }
                texts.push(DONE.to_owned());
                Step::End(texts)
            }
            Kind::Error(failure) => Step::End(vec![refusal(&failed(&failure))]),
            _ => Step::Nothing,
        }
    }

    /// A call: its name first, and then its arguments, as clients put calls together.
    fn call(&self, index: usize, call: &ClientCall) -> [String; 2] {
        let named = ChunkCall {
            index,
            id: Some(&call.id),
            kind: Some("function"),
            function: ChunkFunction { name: Some(&call.name), arguments: "" },
        };
        let function = ChunkFunction { name: None, arguments: &call.arguments };
        let arguments = ChunkCall { index, id: None, kind: None, function };
        [named, arguments]
            .map(|call| self.piece(ChunkDelta { tool_calls: Some([call]), ..ChunkDelta::default() }, None))
    }

    fn piece(&self, delta: ChunkDelta<'_>, finish_reason: Option<FinishReason>) -> String {
        let choice = ChunkChoice { index: 0, delta, finish_reason, logprobs: Null };
        self.chunk(&[choice], None)
    }

    fn chunk(&self, choices: &[ChunkChoice<'_>], usage: Option<CompletionUsage>) -> String {
        let Self { id, created, model, .. } = self;
        let usage = self.include_usage.then_some(usage);
        let chunk =
            CompletionChunk { id, object: "chat.completion.chunk", created: *created, model, choices, usage };
        CompletionEvent::Piece(chunk).to_json()
    }
}

/// An event of a streamed completion. `[DONE]` follows the last piece; an error ends the stream without it.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum CompletionEvent<'p> {
    Piece(CompletionChunk<'p>),
    Failed(OpenAiError),
}

impl CompletionEvent<'_> {
    fn to_json(&self) -> String {
        serde_json::to_string(self).expect("it is texts and numbers")
    }
}

/// The event of a problem.
fn refusal(problem: &Problem) -> String {
    CompletionEvent::Failed(error(problem)).to_json()
}

/// A piece of a streamed completion.
// Written from its parts: as a JSON value it would be built of dozens of allocations.
#[derive(Serialize, ToSchema)]
pub(super) struct CompletionChunk<'p> {
    id: &'p str,
    /// chat.completion.chunk
    object: &'static str,
    /// In seconds since 1970.
    created: u64,
    /// As the request named it.
    model: &'p str,
    /// One, or none in the piece with the usage.
    choices: &'p [ChunkChoice<'p>],
    /// In each piece if asked for, and null in all but the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<CompletionUsage>)]
    usage: Option<Option<CompletionUsage>>,
}

#[derive(Serialize, ToSchema)]
struct ChunkChoice<'p> {
    index: u32,
    delta: ChunkDelta<'p>,
    /// Null in all pieces but the last of the answer.
    #[schema(required = true)]
    finish_reason: Option<FinishReason>,
    /// Always null.
    #[schema(value_type = Option<Object>, required = true)]
    logprobs: Null,
}

/// What a piece adds.
#[derive(Default, Serialize, ToSchema)]
struct ChunkDelta<'p> {
    /// In the first piece: assistant.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'p str>,
    /// Of a call that the client makes: its name, or its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<ChunkCall<'p>>>)]
    tool_calls: Option<[ChunkCall<'p>; 1]>,
}

/// A piece of a call.
#[derive(Serialize, ToSchema)]
struct ChunkCall<'p> {
    /// Which of the answer's calls it belongs to.
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'p str>,
    /// function
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    function: ChunkFunction<'p>,
}

#[derive(Serialize, ToSchema)]
struct ChunkFunction<'p> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'p str>,
    /// JSON, or a piece of it.
    arguments: &'p str,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
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
