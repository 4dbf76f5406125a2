//! A response, event by event. A stream cannot take back what it said: where the agent begins anew after text was sent, it ends with an
//! error.

use std::convert::Infallible;

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{FutureExt as _, Stream, StreamExt as _, stream};
use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{ClientCall, Done};

use super::super::stream::{begun_anew, lost};
use super::event::{ResponseEvent, ResponseStreamEvent};
use super::response::{ItemStatus, OutputItem, OutputPart, ResponseFrame, ResponseStatus};
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
    let events = events
        .flat_map(stream::iter)
        .map(|event: ResponseStreamEvent| Ok(Event::default().event(event.kind()).data(event.to_json())));
    Sse::new(events.boxed()).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

/// What a piece of a turn becomes.
#[derive(Debug)]
enum Step {
    More(Vec<ResponseStreamEvent>),
    End(Vec<ResponseStreamEvent>),
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

    fn number(&mut self, events: Vec<ResponseEvent>) -> Vec<ResponseStreamEvent> {
        let numbered = events.into_iter().zip(self.sequence..);
        let numbered: Vec<_> =
            numbered.map(|(event, number)| ResponseStreamEvent::new(event, number)).collect();
        self.sequence = self.sequence.saturating_add(numbered.len() as u64);
        numbered
    }

    fn begin(&mut self) -> Vec<ResponseStreamEvent> {
        let response = self.frame.with(ResponseStatus::InProgress, Vec::new(), None);
        let created = ResponseEvent::Created { response: response.clone() };
        self.number(vec![created, ResponseEvent::InProgress { response }])
    }

    fn next(&mut self, kind: Kind) -> Step {
        match kind {
            Kind::Text(text) if text.whole && self.message.is_some() => Step::End(self.fail(&begun_anew())),
            Kind::Text(text) => {
                let events = self.text(text.text);
                Step::More(self.number(events))
            }
            Kind::Notice(notice) if notice.discard_text && self.message.is_some() => {
                Step::End(self.fail(&begun_anew()))
            }
            Kind::Done(done) => {
                let events = self.end(&done);
                Step::End(self.number(events))
            }
            Kind::Error(failure) => Step::End(self.fail(&failed(&failure))),
            _ => Step::More(Vec::new()),
        }
    }

    /// A piece of the text. The message is the first item, and has one part.
    fn text(&mut self, delta: String) -> Vec<ResponseEvent> {
        let (output_index, content_index) = (0, 0);
        let mut events = Vec::new();
        let item_id = match &mut self.message {
            Some((id, text)) => {
                text.push_str(&delta);
                id.clone()
            }
            None => {
                let id = self.frame.message_id();
                self.message = Some((id.clone(), delta.clone()));
                let item = OutputItem::message(&id, ItemStatus::InProgress, None);
                events.push(ResponseEvent::ItemAdded { output_index, item });
                let part = OutputPart::text("");
                events.push(ResponseEvent::PartAdded {
                    item_id: id.clone(),
                    output_index,
                    content_index,
                    part,
                });
                id
            }
        };
        events.push(ResponseEvent::TextDelta {
            item_id,
            output_index,
            content_index,
            delta,
            logprobs: Vec::new(),
        });
        events
    }

    fn end(&mut self, done: &Done) -> Vec<ResponseEvent> {
        let mut events = Vec::new();
        if self.message.is_none() && !done.text.is_empty() {
            events.extend(self.text(done.text.clone()));
        }
        let mut output = Vec::new();
        if let Some((id, text)) = self.message.take() {
            let (output_index, content_index) = (0, 0);
            let part = OutputPart::text(&text);
            let item = OutputItem::message(&id, ItemStatus::Completed, Some(&text));
            events.extend([
                ResponseEvent::TextDone {
                    item_id: id.clone(),
                    output_index,
                    content_index,
                    text,
                    logprobs: Vec::new(),
                },
                ResponseEvent::PartDone { item_id: id, output_index, content_index, part },
                ResponseEvent::ItemDone { output_index, item: item.clone() },
            ]);
            output.push(item);
        }
        for (place, call) in done.client_calls.iter().enumerate() {
            let (id, output_index) = (self.frame.call_id(place), output.len());
            let ClientCall { name, arguments, .. } = call.clone();
            let item = OutputItem::call(&id, ItemStatus::Completed, call, &arguments);
            events.extend([
                ResponseEvent::ItemAdded {
                    output_index,
                    item: OutputItem::call(&id, ItemStatus::InProgress, call, ""),
                },
                ResponseEvent::ArgumentsDelta { item_id: id.clone(), output_index, delta: arguments.clone() },
                ResponseEvent::ArgumentsDone { item_id: id, output_index, name, arguments },
                ResponseEvent::ItemDone { output_index, item: item.clone() },
            ]);
            output.push(item);
        }
        let status = ResponseStatus::of(done);
        let response = self.frame.with(status, output, Some(done));
        events.push(match status {
            ResponseStatus::Incomplete => ResponseEvent::Incomplete { response },
            _ => ResponseEvent::Completed { response },
        });
        events
    }

    fn fail(&mut self, problem: &Problem) -> Vec<ResponseStreamEvent> {
        let response = self.frame.with(ResponseStatus::Failed, Vec::new(), None).failed(problem);
        self.number(vec![ResponseEvent::Failed { response }])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};
    use talon_proto::agent::{Notice, Text};

    use super::*;
    use crate::openai::responses::request::stored_echo;

    fn writer() -> EventWriter {
        EventWriter::new(ResponseFrame::new(None, 1, "talon".to_owned(), stored_echo(BTreeMap::new())))
    }

    fn written(events: &[ResponseStreamEvent]) -> Vec<Value> {
        events.iter().map(|event| serde_json::from_str(&event.to_json()).unwrap()).collect()
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
        let events = written(&events);
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
        let events = written(&events);
        assert_eq!(
            (&events[0]["type"], events[0]["response"]["status"].as_str()),
            (&"response.failed".into(), Some("failed"))
        );
        assert!(events[0]["response"]["error"]["message"].as_str().unwrap().contains("begun anew"));
    }
}
