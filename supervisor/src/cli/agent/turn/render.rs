//! Renders a turn for people.

use std::time::SystemTime;

use anstyle::{AnsiColor, Style};
use talon_proto::agent::{
    Done, LoopState, Notice, SubagentResult, ToolCall, ToolProgress, ToolResult, chunk,
};
use talon_sanitize::{Sanitized, inert};

use super::super::super::line::Line;
use super::super::words::{content, count, counted, one, took, tool, usd, within};
use super::approval;
use super::flow::Flow;

/// Bytes of arguments and results in a preview: about two lines of a terminal.
const GLIMPSE_BYTES: usize = 160;

const CALL: Style = AnsiColor::Cyan.on_default();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const WARN: Style = AnsiColor::Yellow.on_default();
/// For secondary information.
pub(super) const DIM: Style = Style::new().dimmed();

/// Something to show.
#[derive(Debug)]
pub(super) enum Shown {
    /// A piece of the answer.
    Answer(Sanitized),
    /// A piece of the model's thoughts.
    Thought(Sanitized),
    /// Ends the line of the answer or of the thoughts.
    Break(Voice),
    /// A complete line.
    Line(Line),
    /// An ongoing activity, shown until the next item.
    Phase(Sanitized),
}

/// The kind of text that is being streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    Answer,
    Thought,
}

/// Which parts of a turn to show.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct Wanted {
    /// The answer as it is streamed.
    pub(in crate::cli) text: bool,
    pub(in crate::cli) thoughts: bool,
    /// Tools and sub-agents.
    pub(in crate::cli) lines: bool,
    /// Notices for people during the turn.
    pub(in crate::cli) notices: bool,
}

/// Turns chunks into display items. Its only state is the open line and pending text.
pub(super) struct Renderer {
    wanted: Wanted,
    open: Option<Voice>,
    flow: Flow,
    whose: Option<Voice>,
}

impl Renderer {
    pub(super) fn new(wanted: Wanted) -> Self {
        Self { wanted, open: None, flow: Flow::default(), whose: None }
    }

    /// The items of this chunk.
    pub(super) fn chunk(&mut self, kind: &chunk::Kind, now: SystemTime) -> Vec<Shown> {
        let mut shown = Vec::new();
        match kind {
            chunk::Kind::Text(text) if self.wanted.text => self.piece(Voice::Answer, &text.text, &mut shown),
            chunk::Kind::Thinking(thought) if self.wanted.thoughts => {
                self.piece(Voice::Thought, &thought.text, &mut shown);
            }
            chunk::Kind::Loop(state) => shown.extend(phase(state)),
            chunk::Kind::ToolProgress(progress) => shown.push(Shown::Phase(going(progress))),
            // A pending decision is always shown.
            chunk::Kind::Approval(approval) => {
                let lines = match approval::is_pending(approval) {
                    true => approval::lines(approval, now),
                    false => {
                        vec![Line::from(inert!("approval {}: {}", one(&approval.id), one(&approval.state)))]
                    }
                };
                self.lines(lines, &mut shown);
            }
            chunk::Kind::Notice(notice) if self.wanted.notices => {
                self.lines(told(notice, self.wanted.text), &mut shown)
            }
            _ if self.wanted.lines => self.lines(line(kind), &mut shown),
            _ => {}
        }
        shown
    }

    /// Ends the turn or a part of it: closes an open line.
    pub(super) fn ends(&mut self) -> Vec<Shown> {
        let mut shown = Vec::new();
        self.settle(&mut shown);
        shown
    }

    /// The whole answer, if it was not streamed.
    pub(super) fn answer(&mut self, text: &str) -> Vec<Shown> {
        let mut shown = Vec::new();
        self.piece(Voice::Answer, text, &mut shown);
        self.settle(&mut shown);
        shown
    }

    fn piece(&mut self, voice: Voice, text: &str, shown: &mut Vec<Shown>) {
        if self.whose != Some(voice) {
            self.settle(shown);
            self.whose = Some(voice);
        }
        let piece = self.flow.push(text);
        self.show(voice, piece, shown);
    }

    fn show(&mut self, voice: Voice, piece: Option<Sanitized>, shown: &mut Vec<Shown>) {
        if let Some(piece) = piece {
            self.open = (!piece.ends_with('\n')).then_some(voice);
            shown.push(match voice {
                Voice::Answer => Shown::Answer(piece),
                Voice::Thought => Shown::Thought(piece),
            });
        }
    }

    fn settle(&mut self, shown: &mut Vec<Shown>) {
        if let Some(voice) = self.whose.take() {
            let rest = self.flow.finish();
            self.show(voice, rest, shown);
        }
        shown.extend(self.open.take().map(Shown::Break));
    }

    fn lines(&mut self, lines: Vec<Line>, shown: &mut Vec<Shown>) {
        if !lines.is_empty() {
            self.settle(shown);
            shown.extend(lines.into_iter().map(Shown::Line));
        }
    }
}

fn phase(state: &LoopState) -> Option<Shown> {
    (state.phase != "done" && !state.phase.is_empty()).then(|| {
        Shown::Phase(inert!(
            "{} (question {} of {})",
            one(&state.phase),
            state.iteration,
            state.max_iterations
        ))
    })
}

fn going(progress: &ToolProgress) -> Sanitized {
    let far = match progress.total {
        Some(total) if total > 0.0 => inert!("{:.0} %", 100.0 * progress.progress / total),
        _ => inert!("{}", progress.progress),
    };
    inert!("executing: {} {}", far, within(&progress.message, GLIMPSE_BYTES))
}

fn told(notice: &Notice, text_is_seen: bool) -> Vec<Line> {
    let style = if notice.level == "warn" { WARN } else { DIM };
    let mut lines = vec![Line::styled(style, "note:").and(" ").and(one(&notice.text))];
    if notice.discard_text && text_is_seen {
        lines.push(Line::styled(WARN, "note:").and(" the text above does not count; it begins again"));
    }
    lines
}

fn line(kind: &chunk::Kind) -> Vec<Line> {
    match kind {
        chunk::Kind::ToolCall(call) => vec![called(call)],
        chunk::Kind::ToolResult(result) => vec![came(result)],
        chunk::Kind::SubagentStart(start) => {
            let task = within(&start.task, GLIMPSE_BYTES);
            vec![Line::styled(CALL, inert!("→ {}", one(&start.agent))).and(" ").and(task)]
        }
        chunk::Kind::SubagentResult(result) => vec![reported(result)],
        _ => Vec::new(),
    }
}

/// A tool by the name that operators use.
fn name(call: &ToolCall) -> Sanitized {
    match call.plugin.as_str() {
        "" => tool(&call.tool),
        plugin => inert!("{}.{}", one(plugin), one(&call.action)),
    }
}

fn called(call: &ToolCall) -> Line {
    Line::styled(CALL, inert!("→ {}", name(call))).and(" ").and(within(&call.arguments, GLIMPSE_BYTES))
}

fn came(result: &ToolResult) -> Line {
    let (style, mark) = if result.success { (GOOD, "✓") } else { (BAD, "✗") };
    let cut = if result.truncated { ", cut" } else { "" };
    Line::styled(style, inert!("{} {}", mark, tool(&result.tool)))
        .and_styled(DIM, inert!(" ({}{})", one(&took(result.duration_ms)), cut))
        .and(" ")
        .and(within(content(&result.output), GLIMPSE_BYTES))
}

fn reported(result: &SubagentResult) -> Line {
    let (style, mark, said) = match result.error.as_str() {
        "" => (GOOD, "✓", &result.result),
        _ => (BAD, "✗", &result.error),
    };
    let about = inert!(
        " ({}, {} tokens, {})",
        one(&took(result.duration_ms)),
        one(&count(result.tokens)),
        one(&usd(result.cost_pico_usd))
    );
    Line::styled(style, inert!("{} {}", mark, one(&result.agent)))
        .and_styled(DIM, about)
        .and(" ")
        .and(within(said, GLIMPSE_BYTES))
}

/// The last line of an answer: model, duration and cost.
pub(in crate::cli) fn footer(done: &Done, session_id: &str) -> Line {
    let usage = done.usage.unwrap_or_default();
    let who = inert!("{}/{}", one(&done.provider), one(&done.model));
    let mut parts = vec![who];
    if done.tool_calls > 0 {
        parts.push(counted(u64::from(done.tool_calls), "tool call"));
    }
    parts.push(inert!("{} tokens", one(&count(usage.input_tokens + usage.output_tokens))));
    parts.push(one(&usd(done.cost_pico_usd)));
    parts.push(one(&took(done.duration_ms)));
    if !session_id.is_empty() {
        parts.push(inert!("session {}", one(session_id)));
    }
    let rest = Line::default().and_styled(DIM, Sanitized::joined(parts, " · "));
    if done.scripted {
        return Line::styled(WARN, "scripted: no model answered")
            .and_styled(DIM, inert!(" · {}", one(&rest.render(false))));
    }
    rest
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
