//! Renders a turn for people.

use std::time::SystemTime;

use talon_proto::agent::{
    Done, LoopState, Notice, PlanStep, SubagentResult, ToolCall, ToolProgress, ToolResult, chunk,
};
use talon_sanitize::{Sanitized, TerminalText, sanitized};

use super::call_output::CallOutputs;
use super::running_calls::{call_name, progress_note};
use super::styles::{BAD, CALL, DIM, GOOD, WARN};
use super::terminal_stream::TerminalStream;
use super::{approval, plan_question};
use crate::client::agent::formatting::{
    block_content, bounded_line, bounded_text, count, count_of, duration, single_line, tool_name, usd,
};
use crate::client::agent::plan::plan_lines;
use crate::line::Line;

/// Bytes of arguments and results in a preview: about two lines of a terminal.
const PREVIEW_BYTES: usize = 160;
/// The tool by which a model writes the plan.
const PLAN_TOOL: &str = "talon__plan";

/// Something to show.
#[derive(Debug)]
pub(super) enum DisplayItem {
    /// A piece of the answer.
    Answer(TerminalText),
    /// A piece of the model's thoughts.
    Thought(TerminalText),
    /// Ends the line of the answer or of the thoughts.
    Break(TextStream),
    /// A complete line.
    Line(Line),
    /// An ongoing activity, shown until the next item.
    Phase(Sanitized),
}

/// The kind of text that is being streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextStream {
    Answer,
    Thought,
}

/// Which parts of a turn to show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DisplayFilter {
    /// The answer as it is streamed.
    pub(crate) text: bool,
    pub(crate) thoughts: bool,
    /// Tools and sub-agents.
    pub(crate) lines: bool,
    /// Notices for people during the turn.
    pub(crate) notices: bool,
    /// Words in place of symbols: for a screen reader, or a terminal without UTF-8.
    pub(crate) words: bool,
}

/// Turns chunks into display items. Its only state is the open line and pending text.
pub(super) struct Renderer {
    filter: DisplayFilter,
    open: Option<TextStream>,
    stream: TerminalStream,
    pending_stream: Option<TextStream>,
    /// The steps of the plan that was shown last.
    plan: Vec<PlanStep>,
    outputs: CallOutputs,
}

impl Renderer {
    pub(super) fn new(filter: DisplayFilter) -> Self {
        Self {
            filter,
            open: None,
            stream: TerminalStream::default(),
            pending_stream: None,
            plan: Vec::new(),
            outputs: CallOutputs::default(),
        }
    }

    /// The items of this chunk.
    pub(super) fn chunk(&mut self, kind: &chunk::Kind, now: SystemTime) -> Vec<DisplayItem> {
        let mut shown = Vec::new();
        match kind {
            chunk::Kind::Text(text) if self.filter.text => {
                self.piece(TextStream::Answer, &text.text, &mut shown)
            }
            chunk::Kind::Thinking(thought) if self.filter.thoughts => {
                self.piece(TextStream::Thought, &thought.text, &mut shown);
            }
            chunk::Kind::Loop(state) => shown.extend(phase(state)),
            chunk::Kind::ToolProgress(progress) => shown.push(DisplayItem::Phase(progress_text(progress))),
            chunk::Kind::Plan(plan) if self.filter.lines && self.plan != plan.steps => {
                self.plan.clone_from(&plan.steps);
                self.lines(plan_lines(plan, self.filter.words), &mut shown);
            }
            // A pending decision is always shown.
            chunk::Kind::Approval(approval) => {
                if let Some(plan) = &approval.plan {
                    self.plan.clone_from(&plan.steps);
                }
                let lines = match approval::is_pending(approval) {
                    true => approval::lines(approval, now),
                    false if approval.plan.is_some() => vec![plan_question::outcome(approval)],
                    false => {
                        vec![Line::from(sanitized!(
                            "approval {}: {}",
                            single_line(&approval.id),
                            single_line(&approval.state)
                        ))]
                    }
                };
                self.lines(lines, &mut shown);
            }
            chunk::Kind::Notice(notice) if self.filter.notices => {
                self.lines(notice_lines(notice, self.filter.text), &mut shown)
            }
            chunk::Kind::ToolStream(output) if self.filter.lines => {
                let lines = self.outputs.lines(output);
                self.lines(lines, &mut shown);
            }
            _ if self.filter.lines => {
                if let chunk::Kind::ToolResult(result) = kind {
                    let rest = self.outputs.finish(result);
                    self.lines(Vec::from_iter(rest), &mut shown);
                }
                self.lines(chunk_lines(kind, Marks::new(self.filter.words)), &mut shown);
            }
            _ => {}
        }
        shown
    }

    /// Ends the turn or a part of it: closes an open line.
    pub(super) fn finish(&mut self) -> Vec<DisplayItem> {
        let mut shown = Vec::new();
        self.flush(&mut shown);
        shown
    }

    /// The whole answer, if it was not streamed.
    pub(super) fn answer(&mut self, text: &str) -> Vec<DisplayItem> {
        let mut shown = Vec::new();
        self.piece(TextStream::Answer, text, &mut shown);
        self.flush(&mut shown);
        shown
    }

    fn piece(&mut self, voice: TextStream, text: &str, shown: &mut Vec<DisplayItem>) {
        if self.pending_stream != Some(voice) {
            self.flush(shown);
            self.pending_stream = Some(voice);
        }
        let piece = self.stream.push(text);
        self.show(voice, piece, shown);
    }

    fn show(&mut self, voice: TextStream, piece: Option<TerminalText>, shown: &mut Vec<DisplayItem>) {
        if let Some(piece) = piece {
            self.open = (!piece.ends_with('\n')).then_some(voice);
            shown.push(match voice {
                TextStream::Answer => DisplayItem::Answer(piece),
                TextStream::Thought => DisplayItem::Thought(piece),
            });
        }
    }

    fn flush(&mut self, shown: &mut Vec<DisplayItem>) {
        if let Some(voice) = self.pending_stream.take() {
            let rest = self.stream.finish();
            self.show(voice, rest, shown);
        }
        shown.extend(self.open.take().map(DisplayItem::Break));
    }

    fn lines(&mut self, lines: Vec<Line>, shown: &mut Vec<DisplayItem>) {
        if !lines.is_empty() {
            self.flush(shown);
            shown.extend(lines.into_iter().map(DisplayItem::Line));
        }
    }
}

fn phase(state: &LoopState) -> Option<DisplayItem> {
    (state.phase != "done" && !state.phase.is_empty()).then(|| {
        DisplayItem::Phase(sanitized!(
            "{} (question {} of {})",
            single_line(&state.phase),
            state.iteration,
            state.max_iterations
        ))
    })
}

fn progress_text(progress: &ToolProgress) -> Sanitized {
    sanitized!("executing: {}", progress_note(progress))
}

fn notice_lines(notice: &Notice, text_is_seen: bool) -> Vec<Line> {
    let style = if notice.level == "warn" { WARN } else { DIM };
    let mut lines = vec![Line::styled(style, "note:").and(" ").and(single_line(&notice.text))];
    if notice.discard_text && text_is_seen {
        lines.push(Line::styled(WARN, "note:").and(" the text above does not count; it begins again"));
    }
    lines
}

fn chunk_lines(kind: &chunk::Kind, marks: Marks) -> Vec<Line> {
    match kind {
        // The plan is shown itself.
        chunk::Kind::ToolCall(call) if call.tool == PLAN_TOOL => Vec::new(),
        chunk::Kind::ToolResult(result) if result.tool == PLAN_TOOL && result.success => Vec::new(),
        chunk::Kind::ToolCall(call) => vec![call_line(call, marks)],
        chunk::Kind::ToolResult(result) => vec![result_line(result, marks)],
        chunk::Kind::SubagentStart(start) => {
            let task = bounded_text(&start.task, PREVIEW_BYTES);
            let agent = single_line(&start.agent);
            vec![Line::styled(CALL, sanitized!("{} {}", marks.call, agent)).and(" ").and_text(task)]
        }
        chunk::Kind::SubagentResult(result) => vec![subagent_line(result, marks)],
        _ => Vec::new(),
    }
}

/// The words or symbols before a call and its result.
#[derive(Debug, Clone, Copy)]
struct Marks {
    call: &'static str,
    good: &'static str,
    bad: &'static str,
}

impl Marks {
    fn new(words: bool) -> Self {
        match words {
            true => Self { call: "calls", good: "done:", bad: "failed:" },
            false => Self { call: "→", good: "✓", bad: "✗" },
        }
    }
}

fn call_line(call: &ToolCall, marks: Marks) -> Line {
    Line::styled(CALL, sanitized!("{} {}", marks.call, call_name(call)))
        .and(" ")
        .and_text(bounded_text(&call.arguments, PREVIEW_BYTES))
}

fn result_line(result: &ToolResult, marks: Marks) -> Line {
    let (style, mark) = if result.success { (GOOD, marks.good) } else { (BAD, marks.bad) };
    let cut = if result.truncated { ", cut" } else { "" };
    Line::styled(style, sanitized!("{} {}", mark, tool_name(&result.tool)))
        .and_styled(DIM, sanitized!(" ({}{})", single_line(&duration(result.duration_ms)), cut))
        .and(" ")
        .and(bounded_line(block_content(&result.output), PREVIEW_BYTES))
}

fn subagent_line(result: &SubagentResult, marks: Marks) -> Line {
    let (style, mark, said) = match result.error.as_str() {
        "" => (GOOD, marks.good, &result.result),
        _ => (BAD, marks.bad, &result.error),
    };
    let about = sanitized!(
        " ({}, {} tokens, {})",
        single_line(&duration(result.duration_ms)),
        single_line(&count(result.tokens)),
        single_line(&usd(result.cost_pico_usd))
    );
    Line::styled(style, sanitized!("{} {}", mark, single_line(&result.agent)))
        .and_styled(DIM, about)
        .and(" ")
        .and_text(bounded_text(said, PREVIEW_BYTES))
}

/// The last line of an answer: model, duration and cost.
pub(crate) fn footer(done: &Done, session_id: &str, words: bool) -> Line {
    let separator = if words { ", " } else { " · " };
    let usage = done.usage.unwrap_or_default();
    let who = sanitized!("{}/{}", single_line(&done.provider), single_line(&done.model));
    let mut parts = vec![who];
    if done.tool_calls > 0 {
        parts.push(count_of(u64::from(done.tool_calls), "tool call"));
    }
    parts.push(sanitized!("{} tokens", single_line(&count(usage.input_tokens + usage.output_tokens))));
    parts.push(single_line(&usd(done.cost_pico_usd)));
    if done.saved_pico_usd > 0 {
        parts.push(sanitized!("{} saved by the cache", single_line(&usd(done.saved_pico_usd))));
    }
    parts.push(single_line(&duration(done.duration_ms)));
    if !session_id.is_empty() {
        parts.push(sanitized!("session {}", single_line(session_id)));
    }
    let rest = Line::default().and_styled(DIM, Sanitized::join(parts, separator));
    if done.scripted {
        return Line::styled(WARN, "scripted: no model answered")
            .and_styled(DIM, sanitized!("{}{}", separator, single_line(&rest.render(false))));
    }
    rest
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
