//! The event bus of the agent, for `talon event watch --type`.

use std::time::Duration;

use anstyle::AnsiColor;
use serde_json::{Map, Value, json};
use talon_event_bus::{EventKind, KindSet};
use talon_proto::agent::watch_bus_response::Item;
use talon_proto::agent::{BusEvent, WatchBusRequest};
use talon_sanitize::sanitized;
use tokio::time::sleep;
use tonic::{Code, Status};

use super::connection::AgentConnection;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json;
use crate::line::{Line, sanitized_line};
use crate::output::Output;
use crate::show::timestamp;

/// The wait before an agent that is being replaced is asked again.
const RECONNECT_WAIT: Duration = Duration::from_secs(1);

/// Which events are watched, and for how long.
pub(in crate::client) struct BusWatch {
    /// Names of kinds, or families.
    pub(in crate::client) kinds: Vec<String>,
    /// Only what belongs to the caller.
    pub(in crate::client) mine: bool,
    /// Whether an agent that restarts is waited for.
    pub(in crate::client) follow: bool,
    /// It ends after so many events.
    pub(in crate::client) count: Option<u64>,
}

impl BusWatch {
    pub(in crate::client) async fn run(
        self,
        socket: &HostSocket<'_>,
        out: &mut Output,
    ) -> Result<u8, Failure> {
        // Before anything is connected: a misspelt one is the caller's mistake.
        KindSet::selected(self.kinds.iter().map(String::as_str))
            .map_err(|error| Failure::usage(error.to_string()))?;
        let reach = AgentConnection::connect(socket).await?;
        let mut left = self.count.unwrap_or(u64::MAX);
        let mut watched = false;
        loop {
            let ended = self.stream(&reach, &mut watched, &mut left, out).await;
            if left == 0 || out.is_closed() {
                return Ok(exit::OK);
            }
            match ended {
                Ok(()) if !self.follow => return Ok(exit::OK),
                Err(status) if !self.follow || !is_restart(&status) => return Err(reach.failure(&status)),
                _ => sleep(RECONNECT_WAIT).await,
            }
        }
    }

    /// Prints events until the stream ends, or enough were printed. `watched` says whether an earlier stream was there: then what happened
    /// in between is missing.
    async fn stream(
        &self,
        reach: &AgentConnection,
        watched: &mut bool,
        left: &mut u64,
        out: &mut Output,
    ) -> Result<(), Status> {
        let request = WatchBusRequest { kinds: self.kinds.clone(), everybody: !self.mine };
        let mut stream = reach.agent.grpc().watch_bus(request).await?.into_inner();
        if std::mem::replace(watched, true) {
            if out.is_json() {
                out.json_line(&json!({ "missed": null }));
            } else {
                out.line("the agent ended, and is watched again: events are missing here");
            }
            out.flush();
        }
        while *left > 0 && !out.is_closed() {
            let Some(next) = stream.message().await? else { return Ok(()) };
            match next.item {
                Some(Item::Event(event)) => {
                    show(&event, out);
                    *left -= 1;
                }
                Some(Item::Missed(missed)) if out.is_json() => out.json_line(&json!({ "missed": missed })),
                Some(Item::Missed(missed)) => {
                    out.line(sanitized!("{} events are missing here: this reader is too slow", missed));
                }
                None => {}
            }
            out.flush();
        }
        Ok(())
    }
}

fn is_restart(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled)
}

fn show(event: &BusEvent, out: &mut Output) {
    let (kind, payload) = payload(event);
    if out.is_json() {
        out.json_line(&json!({
            "sequence": event.sequence,
            "unix_ms": event.unix_ms,
            "kind": kind,
            "sender": event.sender,
            "session_id": event.session_id,
            "payload": payload,
        }));
        return;
    }
    let owner = [("sender", &event.sender), ("session", &event.session_id)];
    let owner = owner.into_iter().filter(|(_, value)| !value.is_empty());
    let owner = owner.map(|(key, value)| format!("{key}={value}"));
    let fields = payload.iter().filter(|(_, value)| !is_empty(value)).map(|(key, value)| match value {
        Value::String(text) => format!("{key}={text}"),
        value => format!("{key}={value}"),
    });
    let text: Vec<String> = owner.chain(fields).collect();
    out.line(
        Line::styled(AnsiColor::BrightBlack.on_default(), timestamp(event.unix_ms))
            .and(sanitized!(" "))
            .and_styled(AnsiColor::Cyan.on_default(), sanitized_line(kind))
            .and(sanitized!(" {}", sanitized_line(text.join(" ")))),
    );
}

/// The kind's name, and the fields of the payload. A later agent may emit what this client does not know.
fn payload(event: &BusEvent) -> (&'static str, Map<String, Value>) {
    let Some(payload) = &event.payload else { return ("unknown", Map::new()) };
    // The fields stand below the name of the variant.
    let fields = match json::fields(payload) {
        Value::Object(variant) => variant.into_iter().next().map(|(_, fields)| fields),
        _ => None,
    };
    let fields = match fields {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    (EventKind::of(payload).as_str(), fields)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(number) => number.as_u64() == Some(0),
        Value::Bool(true) => false,
    }
}

#[cfg(test)]
mod tests {
    use talon_proto::agent::ToolComplete;
    use talon_proto::agent::bus_event::Payload;

    use super::*;

    // Promises: GW-153
    #[test]
    fn an_event_has_the_name_of_its_kind_and_the_fields_of_its_payload() {
        let complete = ToolComplete { tool: "files.read".to_owned(), ..ToolComplete::default() };
        let event = BusEvent { payload: Some(Payload::ToolComplete(complete)), ..BusEvent::default() };
        let (kind, fields) = payload(&event);
        assert_eq!((kind, &fields["tool"]), ("tool.complete", &Value::from("files.read")));
        assert!(is_empty(&fields["layers"]) && !is_empty(&fields["tool"]));
        assert_eq!(payload(&BusEvent::default()), ("unknown", Map::new()));
    }
}
