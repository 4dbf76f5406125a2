//! The files of a session: `talon.read_attachment`, and what a plugin's action is passed of them.
//!
//! A model is shown no file. It reads text page by page, as data in the guard's envelope, and names a file by
//! its id in the arguments of a plugin's action. The bytes go along only where that action asks for
//! [`CONTEXT_NAME`] among its context values; the supervisor passes them on if the operator grants it.

use std::collections::BTreeMap;
use std::ops::Range;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use talon_guard::{Answer, Outcome};
use talon_llm::model::ToolCall;
use talon_sanitize::MarkedSpans;

use super::drive::TurnRun;
use super::read_more::page_answer;
use crate::media::{Attachment, is_attachment_id};
use crate::tool_result::ToolResult;
use crate::tools::{self, READ_ATTACHMENT_ACTION, TURN_PLUGIN, Tool, read_attachment_tool};

/// The context value by which an action asks for the file that its arguments name.
pub(super) const CONTEXT_NAME: &str = "attachment";

/// The largest file that a plugin is passed. As base64 it is 2.7 MiB, and the supervisor takes messages of 4
/// MiB; `guard.max_argument_bytes`, 1 MiB unless the operator raises it, comes first.
const MAX_PASSED_BYTES: usize = 2 << 20;
/// The most files that a list names: more than a session's latest messages have.
const MAX_LISTED: usize = 20;

/// Whether a call is one of this action.
pub(super) fn reads_attachment(tool: &Tool) -> bool {
    tool.plugin == TURN_PLUGIN && tool.action == READ_ATTACHMENT_ACTION
}

impl TurnRun<'_> {
    /// Reads which files the session has. A sub-agent is passed a task and no files.
    pub(super) async fn load_attachments(&mut self) {
        if self.spec.caller.subagent.is_empty() {
            self.attachments = self.environment.attachments.list(&self.spec.caller.session).await;
        }
    }

    /// Notifies people how the files of their message are used.
    pub(super) fn notify_attachments(&self) {
        if self.spec.attachments.is_empty() {
            return;
        }
        let each: Vec<String> = self.spec.attachments.iter().map(Attachment::to_string).collect();
        let how = if self.spec.no_tools {
            "No tools are offered in this turn, so the model cannot read them."
        } else if self.spec.attachments.iter().all(|file| file.is_text) {
            "The model reads them page by page."
        } else {
            "The model reads what is text, page by page. Anything else is only for plugins that you grant the context value \
             attachment."
        };
        self.notice("info", format!("Not shown to the model as a whole: {}. {how}", each.join("; ")));
    }

    /// One page of a file, or the list of files.
    pub(super) async fn read_attachment(
        &self,
        call: &ToolCall,
        args: &BTreeMap<String, String>,
    ) -> ToolResult {
        let offset = args.get("offset").map_or(0, |offset| offset.parse().unwrap_or(usize::MAX));
        let Some(id) = args.get("id").map(String::as_str).filter(|id| !id.is_empty()) else {
            return self.own_result(call, Answer::from_tool(self.listed_attachments()));
        };
        let page = match self.attachment_text(id).await {
            Ok(text) => self.page_range(&text, offset).map(|page| (text, page)),
            Err(why) => Err(why),
        };
        match page {
            Ok((text, page)) => self.attachment_page(call, &text, &page),
            Err(why) => self.own_result(call, Answer::from_host(Outcome::ToolError, why)),
        }
    }

    /// A page as a result. What marked pieces of it were goes back into arguments for plugins, as with a plugin's
    /// result.
    fn attachment_page(&self, call: &ToolCall, text: &str, page: &Range<usize>) -> ToolResult {
        let raw = &text[page.clone()];
        let mut result = self.own_result(call, page_answer(raw.to_owned(), page, text.len()));
        let mut originals = MarkedSpans::default();
        // The output is the content, without its envelope, and what stands behind a zero byte.
        originals.add_text(raw, result.output.split('\0').next().unwrap_or_default());
        result.provenance.originals = originals.into_iter().collect();
        result
    }

    async fn attachment_text(&self, id: &str) -> Result<String, String> {
        let file = self.attachment(id).ok_or_else(|| no_attachment(id))?;
        if !file.is_text {
            let why = format!("{file} is not text and is not shown: pass its id to a tool that takes files");
            return Err(why);
        }
        let bytes = self.attachment_bytes(file).await?;
        String::from_utf8(bytes)
            .map_err(|_| format!("{file} was stored damaged: the user has to send it again"))
    }

    async fn attachment_bytes(&self, file: &Attachment) -> Result<Vec<u8>, String> {
        match self.environment.attachments.load(&self.spec.caller.session, file).await {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(format!("{file} is no longer stored: the user has to send it again")),
            Err(error) => Err(format!("{file} cannot be read now: {error}")),
        }
    }

    fn attachment(&self, id: &str) -> Option<&Attachment> {
        self.attachments.iter().find(|file| file.id() == id)
    }

    fn listed_attachments(&self) -> String {
        let latest = self.attachments.iter().rev().take(MAX_LISTED);
        let lines: Vec<String> = latest.map(|file| format!("{}: {file}", file.id())).collect();
        let older = self.attachments.len().saturating_sub(MAX_LISTED);
        let more = if older > 0 { format!("\nand {older} older ones") } else { String::new() };
        format!("{}{more}", lines.join("\n"))
    }

    /// The file that a call's arguments name, for an action that asks for it, as JSON for the plugin.
    ///
    /// # Errors
    /// The text for the model, if the named file cannot be passed.
    pub(super) async fn passed_attachment(
        &self,
        tool: &Tool,
        args: &BTreeMap<String, String>,
    ) -> Result<Option<String>, String> {
        if !tool.injected.iter().any(|asked| asked == CONTEXT_NAME) {
            return Ok(None);
        }
        let Some(id) = args.values().find(|value| is_attachment_id(value)) else { return Ok(None) };
        let file = self.attachment(id).ok_or_else(|| no_attachment(id))?;
        if file.bytes > MAX_PASSED_BYTES {
            return Err(format!("{file} is too large for a call, which takes {MAX_PASSED_BYTES} bytes"));
        }
        let bytes = self.attachment_bytes(file).await?;
        let Attachment { digest, media_type, name, .. } = file;
        let data = BASE64_STANDARD.encode(&bytes);
        let passed = json!({
            "name": name, "media_type": media_type, "bytes": bytes.len(), "sha256": digest, "base64": data,
        });
        Ok(Some(passed.to_string()))
    }
}

fn no_attachment(id: &str) -> String {
    let id = talon_sanitize::truncate(id, 40, "…");
    format!(
        "there is no file {id:?} in this session: call {} without an id for a list",
        read_attachment_tool()
    )
}

/// The result of a call that is not made since its file cannot be passed.
pub(super) fn not_passed(why: &str) -> ToolResult {
    tools::denied(&format!("error: not made: {why}"))
}
