//! `talon.read_more` on what the agent cut itself: results that are shown shortened are whole in the session.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::json;
use talon_guard::pages::READ_MORE;
use talon_guard::{Answer, EnvelopeMode, Guard, GuardSettings, Outcome, QUOTE_MARK, Raw, Sanitizer};
use talon_llm::model::{Message, ToolCall};
use talon_proto::plugin::{Action, Parameter};

use super::drive::TurnRun;
use crate::context::{handle, is_handle};
use crate::tokens::{Estimate, cut, fit};
use crate::tool_result::ToolResult;
use crate::tools::from_builtin;

/// The plugin and the action, as the supervisor calls its own.
pub(super) const PLUGIN: &str = "talon";
pub(super) const ACTION: &str = "read_more";

/// The longest page, in tokens: some 600 lines. A longer one would push out what it is read for.
const MAX_PAGE_TOKENS: usize = 8_000;
/// The shortest page: envelope and some lines.
const MIN_PAGE_TOKENS: usize = 64;
/// The tokens of a page's envelope and of its place in the text.
const PAGE_OVERHEAD: usize = 120;

/// The action, for a supervisor that does not offer its own.
pub(super) fn action() -> Action {
    let parameter = |name: &str, kind: &str, required, description: &str| Parameter {
        name: name.to_owned(),
        description: description.to_owned(),
        r#type: kind.to_owned(),
        required,
        schema: String::new(),
    };
    Action {
        name: ACTION.to_owned(),
        description: "Reads on in a shortened result.".to_owned(),
        parameters: vec![
            parameter("handle", "string", true, "As in the notice"),
            parameter("offset", "integer", false, "In bytes"),
        ],
        read_only: true,
        destructive: Some(false),
        ..Action::default()
    }
}

/// Whether a call reads on in what the agent cut.
pub(super) fn reads_own_cut(plugin: &str, action: &str, args: &BTreeMap<String, String>) -> bool {
    plugin == PLUGIN && action == ACTION && args.get("handle").is_some_and(|handle| is_handle(handle))
}

impl TurnRun<'_> {
    /// One page of a result of this session.
    pub(super) fn read_more(&self, call: &ToolCall, args: &BTreeMap<String, String>) -> ToolResult {
        let wanted = args.get("handle").map(String::as_str).unwrap_or_default();
        let offset = args.get("offset").map_or(0, |offset| offset.parse().unwrap_or(usize::MAX));
        let mut results = self.transcript.messages().iter().filter_map(|past| match &past.message {
            Message::Tool { content, .. } => Some(content.as_str()),
            _ => None,
        });
        let answer = match results.find(|content| handle(content) == wanted) {
            Some(block) => {
                let text = cut::text(block).unwrap_or_else(|| block.to_owned());
                match self.page_range(&text, offset) {
                    Ok(page) => Answer {
                        written_by: cut::plugin(block).map(str::to_owned),
                        // It is quoted again.
                        ..page_answer(without_marks(&text[page.clone()]), &page, text.len())
                    },
                    Err(why) => Answer::from_host(Outcome::ToolError, why),
                }
            }
            None => Answer::from_host(
                Outcome::ToolError,
                format!("there is no result {wanted} in this session any more: make the call again"),
            ),
        };
        self.own_result(call, answer)
    }

    /// The result of one of the driver's own actions, in the guard's envelope, each line marked.
    pub(super) fn own_result(&self, call: &ToolCall, answer: Answer) -> ToolResult {
        let settings = GuardSettings { envelope: EnvelopeMode::Quoted, ..GuardSettings::default() };
        let guard = Guard::with_sanitizer(Sanitizer::clone(&self.environment.sanitizer), settings);
        from_builtin(guard.answer(&self.spec.caller.session, PLUGIN, &call.id, answer))
    }

    /// Which bytes of a text a page has that begins at this offset.
    ///
    /// # Errors
    /// The text for the model, if the text is shorter.
    pub(super) fn page_range(&self, text: &str, offset: usize) -> Result<Range<usize>, String> {
        if offset >= text.len() {
            return Err(format!("the offset is beyond the end of the text, which has {} bytes", text.len()));
        }
        let start = text.floor_char_boundary(offset);
        let rest = &text[start..];
        // What a page may have without being shortened itself.
        let room = (self.sections.tool_results).min(self.sections.recent / 4).min(MAX_PAGE_TOKENS);
        let tokens = room.saturating_sub(PAGE_OVERHEAD).max(MIN_PAGE_TOKENS);
        let mut end = fit(&Estimate, rest, tokens).max(rest.ceil_char_boundary(1));
        // Whole lines read better.
        if end < rest.len() {
            end = rest[..end].rfind('\n').filter(|at| *at >= end / 2).map_or(end, |at| at + 1);
        }
        Ok(start..start + end)
    }
}

/// A page, with its place and where the next one begins.
pub(super) fn page_answer(content: String, page: &Range<usize>, total: usize) -> Answer {
    let next = (page.end < total).then_some(page.end);
    let place = json!({ "offset": page.start, "next_offset": next, "total": total });
    Answer { structured_content: Raw::from(place.to_string()), ..Answer::from_tool(content) }
}

/// The text of quoted lines: the page is quoted again.
fn without_marks(text: &str) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        out.push_str(line.strip_prefix(QUOTE_MARK).unwrap_or(line));
    }
    out
}

/// The notice to people where results are shown shortened.
pub(super) fn notice(results: usize, tokens: usize, profile: &str) -> String {
    let (results, them) = match results {
        1 => ("1 result of a tool is".to_owned(), "it"),
        _ => (format!("{results} results of tools are"), "them"),
    };
    format!(
        "{results} shown to the model shortened, without about {tokens} tokens; it can read on in {them} with {READ_MORE}. \
         A model with a larger window shows more, and so does agent.context (its profile is {profile})."
    )
}
