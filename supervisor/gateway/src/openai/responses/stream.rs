//! A response, event by event. A stream cannot take back what it said: where the agent begins anew after text was sent, it ends with an
//! error.

use std::convert::Infallible;

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{FutureExt as _, Stream, StreamExt as _, stream};
use serde_json::{Value, json};
use talon_proto::agent::Done;
use talon_proto::agent::chunk::Kind;

use super::super::stream::{begun_anew, lost};
use super::response::{ResponseFrame, function_call, message, part, status};
use crate::app::App;
use crate::identity::Caller;
use crate::problem::Problem;
use crate::sse::{KEEP_ALIVE, ended};
use crate::turn::{Turn, failed};

/// The stream of a response.
pub(super) fn answer(
    app: &App,
    caller: &Caller,
    turn: Turn,
    frame: ResponseFrame,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + use<>> {
    let mut writer = EventWriter::new(frame);
    let begin = writer.begin();
    let rest = stream::unfold(Some((turn, writer)), |state| async move {
        let (mut turn, mut writer) = state?;
        loop {
            let step = match turn.next().await {
                Ok(Some(kind)) => writer.next(kind),
                Ok(None) => Step::End(writer.fail(&lost())),
                Err(status) => Step::End(writer.fail(&status.into())),
            };
            match step {
                Step::More(events) if events.is_empty() => {}
                Step::More(events) => return Some((events, Some((turn, writer)))),
                Step::End(events) => return Some((events, None)),
            }
        }
    });
    let events = stream::iter([begin]).chain(rest).take_until(ended(app, caller).boxed());
    let events = events.flat_map(stream::iter).map(|event| {
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        Ok(Event::default().event(kind).data(event.to_string()))
    });
    Sse::new(events.boxed()).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

/// What a piece of a turn becomes.
#[derive(Debug, PartialEq)]
enum Step {
    More(Vec<Value>),
    End(Vec<Value>),
}

/// Writes the events of one response.
struct EventWriter {
    frame: ResponseFrame,
    sequence: u64,
    /// The id and text of the message, once it has begun.
    message: Option<(String, String)>,
}

impl EventWriter {
    fn new(frame: ResponseFrame) -> Self {
        Self { frame, sequence: 0, message: None }
    }

    fn event(&mut self, kind: &str, mut event: Value) -> Value {
        event["type"] = json!(kind);
        event["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        event
    }

    fn begin(&mut self) -> Vec<Value> {
        let response = self.frame.with("in_progress", &[], None);
        let created = self.event("response.created", json!({"response": response}));
        vec![created, self.event("response.in_progress", json!({"response": response}))]
    }

    fn next(&mut self, kind: Kind) -> Step {
        match kind {
            Kind::Text(text) if text.whole && self.message.is_some() => Step::End(self.fail(&begun_anew())),
            Kind::Text(text) => Step::More(self.text(&text.text)),
            Kind::Notice(notice) if notice.discard_text && self.message.is_some() => {
                Step::End(self.fail(&begun_anew()))
            }
            Kind::Done(done) => Step::End(self.end(&done)),
            Kind::Error(failure) => Step::End(self.fail(&failed(&failure))),
            _ => Step::More(Vec::new()),
        }
    }

    fn text(&mut self, delta: &str) -> Vec<Value> {
        let mut events = Vec::new();
        let id = match &mut self.message {
            Some((id, text)) => {
                text.push_str(delta);
                id.clone()
            }
            None => {
                let id = self.frame.message_id();
                self.message = Some((id.clone(), delta.to_owned()));
                let item = message(&id, "in_progress", None);
                events
                    .push(self.event("response.output_item.added", json!({"output_index": 0, "item": item})));
                let begun = json!({"item_id": id, "output_index": 0, "content_index": 0, "part": part("")});
                events.push(self.event("response.content_part.added", begun));
                id
            }
        };
        let piece =
            json!({"item_id": id, "output_index": 0, "content_index": 0, "delta": delta, "logprobs": []});
        events.push(self.event("response.output_text.delta", piece));
        events
    }

    fn end(&mut self, done: &Done) -> Vec<Value> {
        let mut events = Vec::new();
        if self.message.is_none() && !done.text.is_empty() {
            events.extend(self.text(&done.text));
        }
        let mut output = Vec::new();
        if let Some((id, text)) = self.message.take() {
            let at = json!({"item_id": id, "output_index": 0, "content_index": 0});
            let mut said = at.clone();
            (said["text"], said["logprobs"]) = (json!(text), json!([]));
            events.push(self.event("response.output_text.done", said));
            let mut whole = at;
            whole["part"] = part(&text);
            events.push(self.event("response.content_part.done", whole));
            let item = message(&id, "completed", Some(&text));
            events.push(self.event("response.output_item.done", json!({"output_index": 0, "item": item})));
            output.push(item);
        }
        for (place, call) in done.client_calls.iter().enumerate() {
            let (id, index) = (self.frame.call_id(place), output.len());
            let begun = function_call(&id, "in_progress", call, "");
            events.push(
                self.event("response.output_item.added", json!({"output_index": index, "item": begun})),
            );
            let delta = json!({"item_id": id, "output_index": index, "delta": call.arguments});
            events.push(self.event("response.function_call_arguments.delta", delta));
            let all =
                json!({"item_id": id, "output_index": index, "name": call.name, "arguments": call.arguments});
            events.push(self.event("response.function_call_arguments.done", all));
            let item = function_call(&id, "completed", call, &call.arguments);
            events
                .push(self.event("response.output_item.done", json!({"output_index": index, "item": item})));
            output.push(item);
        }
        let status = status(done);
        let response = self.frame.with(status, &output, Some(done));
        events.push(self.event(&format!("response.{status}"), json!({"response": response})));
        events
    }

    fn fail(&mut self, problem: &Problem) -> Vec<Value> {
        let mut response = self.frame.with("failed", &[], None);
        response["error"] = json!({"code": "server_error", "message": problem.detail()});
        vec![self.event("response.failed", json!({"response": response}))]
    }
}

#[cfg(test)]
mod tests {
    use talon_proto::agent::{ClientCall, Notice, Text};

    use super::*;

    fn writer() -> EventWriter {
        EventWriter::new(ResponseFrame::new(None, 1, "talon".to_owned(), serde_json::Map::new()))
    }

    fn text(text: &str) -> Kind {
        Kind::Text(Text { text: text.to_owned(), whole: false })
    }

    // Promises: GW-175
    #[test]
    fn events_are_numbered_and_come_to_the_same_as_the_whole() {
        let mut writer = writer();
        let mut events = writer.begin();
        for piece in ["He", "llo"] {
            let Step::More(more) = writer.next(text(piece)) else { panic!() };
            events.extend(more);
        }
        let call = ClientCall { id: "c1".to_owned(), name: "look".to_owned(), arguments: "{}".to_owned() };
        let done = Done { text: "Hello".to_owned(), client_calls: vec![call], ..Done::default() };
        let Step::End(rest) = writer.next(Kind::Done(done)) else { panic!() };
        events.extend(rest);
        let numbers: Vec<u64> =
            events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
        let deltas = events.iter().filter(|event| event["type"] == "response.output_text.delta");
        assert_eq!(deltas.map(|event| event["delta"].as_str().unwrap()).collect::<String>(), "Hello");
        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.completed");
        let output = last["response"]["output"].as_array().unwrap();
        assert_eq!(
            (&output[0]["content"][0]["text"], &output[1]["call_id"]),
            (&json!("Hello"), &json!("c1"))
        );
        let done: Vec<&Value> = events
            .iter()
            .filter(|event| event["type"] == "response.output_item.done")
            .map(|event| &event["item"])
            .collect();
        assert_eq!(done, output.iter().collect::<Vec<_>>());
    }

    // Promises: GW-175
    #[test]
    fn two_answers_are_never_mixed() {
        let mut writer = writer();
        let _more = writer.next(text("a"));
        let discard = Kind::Notice(Notice { discard_text: true, ..Notice::default() });
        let Step::End(events) = writer.next(discard) else { panic!() };
        assert_eq!(events[0]["type"], "response.failed");
        assert!(events[0]["response"]["error"]["message"].as_str().unwrap().contains("begun anew"));
    }
}
