//! Which calls of a turn run at this moment, for people who watch.

use std::time::{Duration, Instant};

use talon_proto::agent::{ToolCall, ToolProgress, chunk};
use talon_sanitize::{Sanitized, sanitized};

use crate::client::agent::formatting::{bounded_line, single_line, tool_name};

/// More calls than that run at once only by a setting of the operator; the others are not shown.
const MAX_SHOWN: usize = 8;
/// Bytes of what a tool says about its progress: the rest of a line of 80 columns.
const NOTE_BYTES: usize = 60;

/// A call that runs.
#[derive(Debug)]
pub(super) struct RunningCall {
    id: String,
    name: Sanitized,
    note: Sanitized,
    since: Instant,
}

/// The calls that run, the oldest first.
#[derive(Debug, Default)]
pub(super) struct RunningCalls(Vec<RunningCall>);

impl RunningCalls {
    /// Follows the turn.
    pub(super) fn update(&mut self, kind: &chunk::Kind) {
        match kind {
            chunk::Kind::ToolCall(call) if self.0.len() < MAX_SHOWN && !self.knows(&call.call_id) => {
                let (id, name) = (call.call_id.clone(), call_name(call));
                self.0.push(RunningCall { id, name, note: Sanitized::default(), since: Instant::now() });
            }
            chunk::Kind::SubagentStart(start) => self.note(&start.call_id, single_line(&start.agent)),
            chunk::Kind::ToolProgress(progress) => self.note(&progress.call_id, progress_note(progress)),
            chunk::Kind::ToolResult(result) => self.0.retain(|call| call.id != result.call_id),
            chunk::Kind::Done(_) | chunk::Kind::Error(_) => self.0.clear(),
            _ => {}
        }
    }

    fn knows(&self, id: &str) -> bool {
        self.0.iter().any(|call| call.id == id)
    }

    fn note(&mut self, id: &str, note: Sanitized) {
        if let Some(call) = self.0.iter_mut().find(|call| call.id == id) {
            call.note = note;
        }
    }

    /// Each call with how long it has run.
    pub(super) fn lines(&self) -> impl Iterator<Item = (String, Duration)> {
        self.0.iter().map(|call| {
            let text = match call.note.is_empty() {
                true => call.name.clone(),
                false => sanitized!("{}: {}", call.name, call.note),
            };
            (text.into_string(), call.since.elapsed())
        })
    }

    /// Which calls they are: their lines are drawn anew when that changes.
    pub(super) fn ids(&self) -> Vec<String> {
        self.0.iter().map(|call| call.id.clone()).collect()
    }
}

/// A tool by the name that operators use.
pub(super) fn call_name(call: &ToolCall) -> Sanitized {
    match call.plugin.as_str() {
        "" => tool_name(&call.tool),
        plugin => sanitized!("{}.{}", single_line(plugin), single_line(&call.action)),
    }
}

/// How far a call is.
pub(super) fn progress_note(progress: &ToolProgress) -> Sanitized {
    let far = match progress.total {
        Some(total) if total > 0.0 => sanitized!("{:.0} %", 100.0 * progress.progress / total),
        _ => sanitized!("{}", progress.progress),
    };
    sanitized!("{} {}", far, bounded_line(&progress.message, NOTE_BYTES))
}

#[cfg(test)]
mod tests {
    use talon_proto::agent::ToolResult;

    use super::*;

    fn call(id: &str) -> chunk::Kind {
        chunk::Kind::ToolCall(ToolCall {
            call_id: id.into(),
            plugin: "git".into(),
            action: "log".into(),
            ..ToolCall::default()
        })
    }

    #[test]
    fn calls_are_shown_from_their_begin_to_their_result() {
        let mut running = RunningCalls::default();
        running.update(&call("a"));
        running.update(&call("a"));
        running.update(&call("b"));
        let progress = ToolProgress {
            call_id: "b".into(),
            progress: 1.0,
            total: Some(4.0),
            message: "half\u{1b}".into(),
        };
        running.update(&chunk::Kind::ToolProgress(progress));
        let texts = |running: &RunningCalls| running.lines().map(|(text, _)| text).collect::<Vec<_>>();
        assert_eq!(texts(&running), ["git.log", "git.log: 25 % half␛"]);
        let result = ToolResult { call_id: "a".into(), ..ToolResult::default() };
        running.update(&chunk::Kind::ToolResult(result));
        assert_eq!(running.ids(), ["b"]);
        for id in 0..100 {
            running.update(&call(&id.to_string()));
        }
        assert_eq!(texts(&running).len(), MAX_SHOWN);
    }
}
