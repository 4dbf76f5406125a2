//! Filters and hooks.

use std::sync::Arc;

use talon_lua_engine::{Context, Outcome, Phase, Point};
use talon_sdk::model::Model;
use talon_sdk::{HookRequest, Tool, ToolError, Verdict};

use super::script::{failed, loaded};
use crate::service::Service;

/// The three kinds: the action's ending, its role, the functions that serve it, and the side of the model.
const KINDS: [Kind; 3] = [
    Kind { ending: "filter", role: "filter", points: &[Point::Filter], phase: Phase::Pre },
    Kind {
        ending: "pre_hook",
        role: "request_hook",
        points: &[Point::PreHook, Point::Hook],
        phase: Phase::Pre,
    },
    Kind {
        ending: "post_hook",
        role: "response_hook",
        points: &[Point::PostHook, Point::Hook],
        phase: Phase::Post,
    },
];

#[derive(Clone, Copy)]
struct Kind {
    ending: &'static str,
    role: &'static str,
    points: &'static [Point],
    phase: Phase,
}

/// The three actions of a script.
pub(super) fn tools(service: &Arc<Service>, name: &str) -> impl Iterator<Item = Tool> {
    KINDS.into_iter().map(move |kind| tool(service, name, kind))
}

fn tool(service: &Arc<Service>, name: &str, kind: Kind) -> Tool {
    let (service, script) = (Arc::clone(service), name.to_owned());
    let about = format!("{name}.lua as a {}: its function {}.", kind.role, kind.ending);
    Tool::new(&format!("{name}-{}", kind.ending), &about, move |asked: HookRequest, cx| {
        let (service, script) = (Arc::clone(&service), script.clone());
        async move { run(&service, &script, kind, asked, cx.model().ok()).await }
    })
    .role(kind.role)
}

async fn run(
    service: &Service,
    name: &str,
    kind: Kind,
    asked: HookRequest,
    model: Option<Model>,
) -> Result<Verdict, ToolError> {
    let loaded = loaded(service, name)?;
    let defined = &loaded.definition.points;
    let Some(point) = kind.points.iter().copied().find(|point| defined.contains(point)) else {
        return Ok(Verdict::pass());
    };
    let context = context(asked, kind.phase);
    match service.call(name, loaded, point, context, model).await {
        Ok(outcome) => verdict(name, outcome),
        Err(error) => Err(failed(name, &error)),
    }
}

fn context(asked: HookRequest, phase: Phase) -> Context {
    let HookRequest { message, session, metadata } = asked;
    let mut fields = serde_json::Map::new();
    let _ = fields.insert("turn".to_owned(), session.turn.into());
    let _ = fields.insert("subagent".to_owned(), session.subagent.into());
    Context {
        message,
        session_id: session.id,
        sender: session.sender,
        channel: session.channel,
        phase: Some(phase),
        metadata,
        fields,
    }
}

fn verdict(name: &str, outcome: Outcome) -> Result<Verdict, ToolError> {
    match outcome {
        Outcome::Drop { reason } => Ok(Verdict::drop(reason)),
        Outcome::Continue { message: None, metadata } if metadata.is_empty() => Ok(Verdict::pass()),
        Outcome::Continue { message, metadata } => {
            let mut notes = metadata.into_iter();
            let verdict = match message {
                Some(message) => Verdict::replace(message),
                None => match notes.next() {
                    Some((key, value)) => Verdict::annotate(key, value),
                    None => Verdict::pass(),
                },
            };
            Ok(notes.fold(verdict, |verdict, (key, value)| verdict.note(key, value)))
        }
        Outcome::Delivery { .. } | Outcome::Text(_) => {
            Err(ToolError::new(format!("{name}.lua gave no verdict: this is a defect of talon-lua")))
        }
    }
}
