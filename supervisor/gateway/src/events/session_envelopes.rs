//! What an event of the agent becomes. An event that is recorded has the same envelope whenever it is sent.

use talon_proto::agent;
use talon_proto::agent::event::Kind;

use super::agent::{AgentResponse, AgentResponseDiscard, AgentThought};
use super::ids::{group_id, message_id, new_message_id, session_id};
use super::session::{ChannelMessageEvent, MediaInfo, SessionCreated, SessionEvent};
use super::{Envelope, ServerEvent, chunk, translate};

/// The envelopes of an event, in order.
pub(crate) fn envelopes(event: agent::Event) -> Vec<Envelope> {
    let agent::Event { session_id: session, sequence, unix_ms, kind, .. } = event;
    let events = kind.map(|kind| events(&session, kind)).unwrap_or_default();
    let recorded = (sequence > 0).then_some(sequence);
    let envelope = |(place, event): (usize, ServerEvent)| {
        let id = match (&event, recorded) {
            (ServerEvent::ToolCall(call), _) => call.id.clone(),
            // Most events are one; what is more has its place in its id.
            (_, Some(sequence)) if place == 0 => message_id(&session, sequence),
            (_, Some(sequence)) => message_id(&format!("{session}/{place}"), sequence),
            (_, None) => new_message_id(),
        };
        Envelope { id, event, timestamp: unix_ms, sequence: recorded }
    };
    events.into_iter().enumerate().map(envelope).collect()
}

fn events(session: &str, kind: Kind) -> Vec<ServerEvent> {
    use agent::chunk::Kind as Piece;
    let of = SessionEvent { session_id: session_id(session) };
    match kind {
        Kind::SessionCreated(created) => vec![ServerEvent::SessionCreated(SessionCreated {
            session_id: session_id(session),
            sender_id: created.sender,
            channel: created.channel,
            reply_to: None,
        })],
        Kind::SessionResumed(_) => vec![ServerEvent::SessionResumed(of)],
        Kind::SessionIdle(_) => vec![ServerEvent::SessionIdle(of)],
        Kind::SessionDeleted(_) => vec![ServerEvent::SessionDeleted(of)],
        Kind::SessionUpdated(_) | Kind::TurnsUndone(_) | Kind::SessionCompacted(_) => {
            vec![ServerEvent::SessionUpdated(of)]
        }
        Kind::Message(message) => vec![said(session, message)],
        Kind::Answer(answer) => {
            vec![translate::text(session, agent::Text { text: answer.text, whole: true })]
        }
        Kind::Piece(piece) => vec![spoken(session, piece)],
        Kind::Discard(discard) => vec![ServerEvent::AgentResponseDiscard(AgentResponseDiscard {
            session_id: session_id(session),
            attempt: Some(discard.attempt).filter(|attempt| *attempt > 0),
        })],
        Kind::Thought(thought) => chunk::events(session, Piece::Thinking(thought)),
        Kind::ToolCall(call) => chunk::events(session, Piece::ToolCall(call)),
        Kind::ToolResult(result) => chunk::events(session, Piece::ToolResult(result)),
        Kind::Approval(approval) => chunk::events(session, Piece::Approval(approval)),
        Kind::SubagentStart(start) => chunk::events(session, Piece::SubagentStart(start)),
        Kind::SubagentResult(result) => chunk::events(session, Piece::SubagentResult(result)),
        Kind::Notice(notice) | Kind::LiveNotice(notice) => chunk::events(session, Piece::Notice(notice)),
        Kind::Done(done) => chunk::events(session, Piece::Done(done)),
        Kind::Error(error) => chunk::events(session, Piece::Error(error)),
        Kind::Loop(state) => chunk::events(session, Piece::Loop(state)),
        Kind::ToolProgress(progress) => chunk::events(session, Piece::ToolProgress(progress)),
        Kind::ToolStream(stream) => chunk::events(session, Piece::ToolStream(stream)),
        Kind::Plan(plan) => chunk::events(session, Piece::Plan(plan)),
        Kind::CaughtUp(_) => Vec::new(),
    }
}

fn said(session: &str, message: agent::MessageReceived) -> ServerEvent {
    let set = |text: String| Some(text).filter(|text| !text.is_empty());
    let group = group_id(&message.sender).map(str::to_owned);
    ServerEvent::ChannelMessage(ChannelMessageEvent {
        session_id: session_id(session),
        channel: message.channel,
        sender_id: message.sender,
        sender_name: set(message.sender_name),
        text: message.text,
        media: message.media.into_iter().map(MediaInfo::from).collect(),
        is_group: group.is_some(),
        group_id: group,
        client_id: set(message.client_id),
    })
}

fn spoken(session: &str, piece: agent::Piece) -> ServerEvent {
    let (session_id, content) = (session_id(session), piece.text);
    let (attempt, offset) = (Some(piece.attempt), Some(piece.offset));
    if piece.thinking {
        ServerEvent::AgentThought(AgentThought { session_id, content, attempt, offset })
    } else {
        ServerEvent::AgentResponse(AgentResponse { session_id, content, whole: false, attempt, offset })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn told(sequence: u64, kind: Kind) -> Vec<Envelope> {
        envelopes(agent::Event {
            session_id: "01A".to_owned(),
            sequence,
            unix_ms: 7,
            turn: 1,
            kind: Some(kind),
        })
    }

    #[test]
    fn what_is_recorded_is_the_same_whenever_it_is_told_and_has_a_sequence() {
        let answer = |text: &str| {
            Kind::Answer(agent::AnswerText { text: text.to_owned(), ..agent::AnswerText::default() })
        };
        let [once] = told(1024, answer("a")).try_into().unwrap();
        assert_eq!(told(1024, answer("a")), std::slice::from_ref(&once));
        assert_eq!((once.sequence, once.timestamp), (Some(1024), 7));
        assert_ne!(told(1025, answer("a"))[0].id, once.id);
        let piece = agent::Piece { attempt: 3, offset: 2, text: "b".to_owned(), thinking: false };
        let [live] = told(0, Kind::Piece(piece)).try_into().unwrap();
        assert_eq!(live.sequence, None);
        let ServerEvent::AgentResponse(said) = live.event else { panic!("{live:?}") };
        assert_eq!((said.attempt, said.offset, said.whole), (Some(3), Some(2), false));
        assert!(told(0, Kind::CaughtUp(agent::CaughtUp {})).is_empty());
    }

    #[test]
    fn a_message_is_told_with_its_media_and_its_group() {
        let of = |sender: &str, media: Vec<agent::MediaInfo>| {
            let message = agent::MessageReceived {
                text: "look".to_owned(),
                channel: "telegram".to_owned(),
                sender: sender.to_owned(),
                media,
                ..agent::MessageReceived::default()
            };
            let [told] = told(1024, Kind::Message(message)).try_into().unwrap();
            serde_json::to_value(&told.event).unwrap()["payload"].clone()
        };
        let file = agent::MediaInfo {
            media_type: "application/pdf".to_owned(),
            name: "a.pdf".to_owned(),
            bytes: 7,
            digest: "d".to_owned(),
            ..agent::MediaInfo::default()
        };
        let image = agent::MediaInfo { width: 3, height: 2, ..file.clone() };
        let payload = of("gw:telegram/group:-100", vec![file, image]);
        let file = json!({"name": "a.pdf", "type": "application/pdf", "size": 7, "digest": "d"});
        let mut image = file.clone();
        (image["width"], image["height"]) = (json!(3), json!(2));
        assert_eq!(payload["media"], json!([file, image]));
        assert_eq!((&payload["isGroup"], &payload["groupId"]), (&json!(true), &json!("-100")));
        for sender in ["gw:telegram/42", "gw:telegram/42/group:7", "group:7", "local/group:7"] {
            let payload = of(sender, Vec::new());
            assert_eq!((&payload["isGroup"], &payload["groupId"]), (&json!(false), &Value::Null), "{sender}");
            assert_eq!(payload["media"], json!([]));
        }
    }
}
