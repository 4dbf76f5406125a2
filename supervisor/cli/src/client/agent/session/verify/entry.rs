//! One call of a session's record, beside its receipt.

use std::collections::VecDeque;

use prost::Message as _;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use talon_arguments::Arguments;
use talon_client::tool;
use talon_proto::agent::{Message, ToolCall, ToolResult};
use talon_proto::host::{Receipt, ReceiptVerdict};

/// An answer that is stored shorter than this is whole: the agent stores up to 50,000 tokens of it, and a token
/// has at least one byte.
const WHOLE_ANSWER_BYTES: usize = 50_000;
/// What stands in the record for arguments that are too large for it.
const DIGEST_ONLY: &str = "sha256:";
/// How the agent's own tools are named for models; no plugin may have such a name while they are on.
const OWN_TOOLS: [&str; 4] = ["memory__", "subagent", "tools__search", "talon__read_more"];

/// How a call of the record is judged, from the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Status {
    Proven,
    Partial,
    Own,
    NoAnswer,
    Unverified,
    UnknownKey,
    Altered,
    Forged,
}

impl Status {
    /// For programs.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Partial => "partial",
            Self::Own => "own",
            Self::NoAnswer => "no_answer",
            Self::Unverified => "unverified",
            Self::UnknownKey => "unknown_key",
            Self::Altered => "altered",
            Self::Forged => "forged",
        }
    }

    /// For people.
    pub(super) fn shown(self) -> &'static str {
        match self {
            Self::NoAnswer => "no answer",
            Self::UnknownKey => "unknown key",
            other => other.word(),
        }
    }

    /// 0: nothing is wrong; 1: it cannot be checked; 2: it is contradicted.
    pub(super) fn severity(self) -> usize {
        match self {
            Self::Proven | Self::Partial | Self::Own | Self::NoAnswer => 0,
            Self::Unverified | Self::UnknownKey => 1,
            Self::Altered | Self::Forged => 2,
        }
    }
}

/// A call and its result.
#[derive(Debug)]
pub(super) struct Entry {
    /// As the model named it.
    pub(super) tool: String,
    pub(super) unix_ms: u64,
    pub(super) receipt: Option<Receipt>,
    pub(super) status: Status,
    /// Why it is not proven.
    pub(super) why: String,
    /// The arguments as the record has them, as JSON; or their digest.
    arguments: String,
    result: ToolResult,
}

/// All calls with a result, in order. What has no receipt is judged already.
pub(super) fn entries(messages: &[Message]) -> Vec<Entry> {
    let mut calls: VecDeque<ToolCall> = VecDeque::new();
    let mut entries = Vec::new();
    for message in messages {
        if !message.tool_calls.is_empty() {
            calls = message.tool_calls.iter().cloned().collect();
        }
        for result in &message.tool_results {
            let call = calls.pop_front().unwrap_or_default();
            entries.push(Entry::new(call, result.clone(), message.unix_ms));
        }
    }
    entries
}

impl Entry {
    fn new(call: ToolCall, result: ToolResult, unix_ms: u64) -> Self {
        let tool = if call.tool.is_empty() { result.tool.clone() } else { call.tool };
        let arguments = match &*result.arguments {
            "" => canonical(&call.arguments),
            sent => sent.to_owned(),
        };
        let receipt = Receipt::decode(&*result.receipt).ok().filter(|_| !result.receipt.is_empty());
        let (status, why) = match (&receipt, result.receipt.is_empty()) {
            (_, false) => (Status::Forged, "its receipt cannot be read"),
            (_, true) if OWN_TOOLS.iter().any(|own| tool.starts_with(own)) => (Status::Own, ""),
            (_, true) if !result.output.starts_with("[plugin_output") => (Status::NoAnswer, ""),
            (_, true) => (Status::Unverified, "it has no receipt"),
        };
        Self { tool, unix_ms, receipt, status, why: why.to_owned(), arguments, result }
    }

    pub(super) fn set(&mut self, status: Status, why: impl Into<String>) {
        (self.status, self.why) = (status, why.into());
    }

    /// Judges by what the supervisor says of the receipt, and by what the receipt says.
    pub(super) fn judge(&mut self, session: &str, verdict: ReceiptVerdict) {
        let (status, why) = match verdict {
            ReceiptVerdict::Valid => self.compare(session),
            ReceiptVerdict::Invalid => (Status::Forged, "the supervisor did not make its receipt"),
            ReceiptVerdict::UnknownKey => {
                (Status::UnknownKey, "the supervisor has not the key of its receipt")
            }
            ReceiptVerdict::Unspecified => (Status::Unverified, "the supervisor gave no verdict"),
        };
        self.set(status, why);
    }

    fn compare(&self, session: &str) -> (Status, &'static str) {
        let Some(receipt) = &self.receipt else { return (Status::Unverified, "it has no receipt") };
        let Entry { result, arguments, tool, .. } = self;
        if receipt.session != session {
            return (Status::Altered, "its receipt is of another session");
        }
        if tool::tool_name(&receipt.plugin, &receipt.action) != *tool {
            return (Status::Altered, "another action was called");
        }
        if result.success != (receipt.outcome == "ok") {
            return (Status::Altered, "its outcome was another one");
        }
        let digest_only = arguments.strip_prefix(DIGEST_ONLY);
        let arguments_sha256 = digest_only.map_or_else(|| sha256(arguments), str::to_owned);
        if arguments_sha256 != receipt.arguments_sha256 {
            return (Status::Altered, "its arguments were others");
        }
        if sha256(&result.output) != receipt.answer_sha256 {
            return match result.output.len() {
                ..WHOLE_ANSWER_BYTES => (Status::Altered, "its answer was another one"),
                _ => (Status::Partial, "the record has not the whole answer"),
            };
        }
        match digest_only {
            Some(_) => (Status::Partial, "the arguments that were sent were too large for the record"),
            None => (Status::Proven, ""),
        }
    }
}

/// Arguments in the form whose digest is in receipts.
fn canonical(arguments: &str) -> String {
    match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(object) => Arguments::of(&object).to_json(),
        Err(_) => arguments.to_owned(),
    }
}

fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "[plugin_output]\ntext\n[/plugin_output]";

    fn receipt() -> Receipt {
        Receipt {
            call_id: "c.1".into(),
            session: "s".into(),
            plugin: "files".into(),
            action: "read".into(),
            arguments_sha256: sha256(r#"{"a":1,"path":"x"}"#),
            answer_sha256: sha256(BLOCK),
            outcome: "ok".into(),
            ..Receipt::default()
        }
    }

    fn entry(change: impl FnOnce(&mut ToolCall, &mut ToolResult)) -> Entry {
        let mut call = ToolCall {
            tool: "files__read".into(),
            arguments: r#"{"path": "x", "a": 1}"#.into(),
            ..ToolCall::default()
        };
        let mut result = ToolResult {
            success: true,
            output: BLOCK.into(),
            receipt: receipt().encode_to_vec(),
            ..ToolResult::default()
        };
        change(&mut call, &mut result);
        let message = |message: Message| message;
        let messages = [
            message(Message { tool_calls: vec![call], ..Message::default() }),
            message(Message { tool_results: vec![result], ..Message::default() }),
        ];
        entries(&messages).pop().expect("one")
    }

    // Promises: AUDIT-16
    #[test]
    fn a_record_that_says_something_else_than_its_receipt_is_altered() {
        let judged = |change: fn(&mut ToolCall, &mut ToolResult)| {
            let mut entry = entry(change);
            entry.judge("s", ReceiptVerdict::Valid);
            entry.status
        };
        assert_eq!(judged(|_, _| {}), Status::Proven);
        let altered: [fn(&mut ToolCall, &mut ToolResult); 5] = [
            |call, _| call.tool = "files__write".into(),
            |call, _| call.arguments = r#"{"path": "y", "a": 1}"#.into(),
            |call, _| call.arguments = r#"{"path": "x", "a": "1"}"#.into(),
            |_, result| result.output.push('x'),
            |_, result| result.success = false,
        ];
        for change in altered {
            assert_eq!(judged(change), Status::Altered);
        }
        assert_eq!(judged(|_, result| result.output = "x".repeat(WHOLE_ANSWER_BYTES)), Status::Partial);
        // What was sent counts where a piece got its original back.
        assert_eq!(
            judged(|call, result| {
                call.arguments = "{}".into();
                result.arguments = r#"{"a":1,"path":"x"}"#.into();
            }),
            Status::Proven
        );
        let mut other = entry(|_, _| {});
        other.judge("t", ReceiptVerdict::Valid);
        assert_eq!(other.status, Status::Altered);
    }

    // Promises: AUDIT-16
    #[test]
    fn what_has_no_valid_receipt_is_said_to_have_none() {
        for (verdict, status) in [
            (ReceiptVerdict::Invalid, Status::Forged),
            (ReceiptVerdict::UnknownKey, Status::UnknownKey),
            (ReceiptVerdict::Unspecified, Status::Unverified),
        ] {
            let mut entry = entry(|_, _| {});
            entry.judge("s", verdict);
            assert_eq!(entry.status, status);
        }
        let without = |change: fn(&mut ToolCall, &mut ToolResult)| {
            entry(|call, result| {
                result.receipt.clear();
                change(call, result);
            })
            .status
        };
        assert_eq!(without(|_, _| {}), Status::Unverified);
        assert_eq!(without(|_, result| result.output = "error: denied by user".into()), Status::NoAnswer);
        assert_eq!(without(|call, _| call.tool = "memory__save".into()), Status::Own);
        assert_eq!(entry(|_, result| result.receipt = vec![0xff]).status, Status::Forged);
    }
}
