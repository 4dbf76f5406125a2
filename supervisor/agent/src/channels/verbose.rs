//! The calls of a turn, as a session shows them in its conversation whose `verbose` is on.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use talon_extensions::contract::{ChannelOp, ChannelOutcome, ChannelRequest};
use talon_proto::agent::{ToolCall, ToolResult};
use talon_sanitize::Raw;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::send::send;
use super::service::Channels;

/// The most characters of one call's arguments, or of its result. What is cut can be read with `talon session show`.
const MAX_SHOWN_CHARS: usize = 1500;
/// The most texts of one turn that wait to be sent. 64: one more is left out, and that is said.
const MAX_WAITING: usize = 64;
/// The least and the longest wait before the second attempt.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How long an answer waits for the calls before it. 15 s: some texts of a slow service.
const LAST_CALLS: Duration = Duration::from_secs(15);

/// Where the texts of a turn go.
pub(super) struct CallTexts {
    sender: mpsc::Sender<String>,
    left_out: Arc<AtomicU64>,
}

/// The texts that wait.
pub(super) struct WaitingTexts {
    receiver: mpsc::Receiver<String>,
    left_out: Arc<AtomicU64>,
}

impl CallTexts {
    pub(super) fn new() -> (Self, WaitingTexts) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let left_out = Arc::<AtomicU64>::default();
        (Self { sender, left_out: Arc::clone(&left_out) }, WaitingTexts { receiver, left_out })
    }

    /// Shows a text, or counts it if too many wait.
    pub(super) fn push(&self, text: String) {
        if self.sender.try_send(text).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl WaitingTexts {
    /// The next text. When the turn is over, at last how many were left out.
    async fn next(&mut self) -> Option<String> {
        if let Some(text) = self.receiver.recv().await {
            return Some(text);
        }
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        (left_out > 0).then(|| format!("({left_out} more calls and results: talon session show)"))
    }
}

/// Reads a turn to its end while its calls are shown. The answer waits [`LAST_CALLS`] for the last ones, and no longer. Returns what was read,
/// and whether all of them were shown.
pub(super) async fn read_and_show<T>(
    reading: impl Future<Output = T>,
    showing: impl Future<Output = ()>,
) -> (T, bool) {
    tokio::pin!(reading, showing);
    let mut is_shown = false;
    let read = loop {
        tokio::select! {
            read = &mut reading => break read,
            () = &mut showing, if !is_shown => is_shown = true,
        }
    };
    (read, is_shown || timeout(LAST_CALLS, showing).await.is_ok())
}

/// A call with its arguments.
pub(super) fn call_text(call: &ToolCall) -> String {
    let mut text = format!("🔧 {}.{}", line(&call.plugin), line(&call.action));
    let mut shown = String::new();
    match serde_json::from_str(&call.arguments) {
        Ok(Value::Object(arguments)) => {
            let mut arguments: Vec<_> = arguments.iter().collect();
            arguments.sort_by_key(|(name, _)| *name);
            for (name, value) in arguments {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                // Writing to a text cannot fail.
                let _ = write!(shown, "\n{name}: {value}");
            }
        }
        _ => {
            shown.push('\n');
            shown.push_str(&call.arguments);
        }
    }
    text.push_str(&bounded(&shown));
    text
}

/// A result.
pub(super) fn result_text(result: &ToolResult) -> String {
    let mark = if result.success { "✅" } else { "❌" };
    let tool = line(&result.tool.replacen("__", ".", 1));
    format!("{mark} {tool} ({} ms)\n{}", result.duration_ms, bounded(content(&result.output)))
}

/// What is inside of the guard's envelope, which is for models.
fn content(block: &str) -> &str {
    let block = block.trim();
    match block.split_once('\n') {
        Some((first, rest)) if first.starts_with("[plugin_output") => {
            rest.rsplit_once('\n').map_or(rest, |(content, _)| content)
        }
        _ => block,
    }
}

fn line(text: &str) -> String {
    Raw::from(text).line().into_string()
}

fn bounded(text: &str) -> String {
    let whole = text.chars().count();
    if whole <= MAX_SHOWN_CHARS {
        return text.to_owned();
    }
    let shown: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    format!("{shown}…\n({} more characters: talon session show)", whole - MAX_SHOWN_CHARS)
}

impl Channels {
    /// Sends texts in their order, until there are no more, or until one cannot be sent: they are not kept, so that no answer waits for them.
    pub(super) async fn show_calls(
        &self,
        channel: &str,
        conversation: &str,
        turn: &str,
        mut texts: WaitingTexts,
    ) {
        let mut number = 0_u32;
        while let Some(text) = texts.next().await {
            number = number.saturating_add(1);
            if let Err(reason) =
                self.show_call(channel, conversation, &format!("{turn}.{number}"), &text).await
            {
                tracing::warn!(
                    channel,
                    reason,
                    "further calls of a verbose session are not shown in its channel"
                );
                return;
            }
        }
    }

    /// Sends a text, in as many parts as the channel wants, each tried twice.
    async fn show_call(&self, channel: &str, conversation: &str, id: &str, text: &str) -> Result<(), String> {
        let (mut sent, mut attempt) = (0, 1);
        while let Some(left) = text.get(sent..).filter(|left| !left.trim().is_empty()) {
            let Some(entry) = self.entry(channel) else {
                return Err("its channel is not configured any more".to_owned());
            };
            let request = ChannelRequest {
                id: format!("{id}.{sent}"),
                conversation: conversation.to_owned(),
                text: left.to_owned(),
                attempt,
                ..ChannelRequest::of(ChannelOp::Send)
            };
            match send(&*self.host, &entry, &request).await {
                ChannelOutcome::Sent(bytes) => (sent, attempt) = (sent + bytes, 1),
                ChannelOutcome::Retry { after, .. } if attempt == 1 => {
                    attempt = 2;
                    sleep(after.unwrap_or_default().clamp(FIRST_WAIT, LONGEST_WAIT)).await;
                }
                ChannelOutcome::Retry { reason, .. } | ChannelOutcome::Refused(reason) => return Err(reason),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use proptest::prelude::*;
    use tokio::time::Instant;

    use super::*;

    fn call(arguments: &str) -> ToolCall {
        let (plugin, action) = ("files".to_owned(), "read".to_owned());
        ToolCall { plugin, action, arguments: arguments.to_owned(), ..ToolCall::default() }
    }

    // Promises: GW-230
    #[test]
    fn a_call_has_its_arguments_and_a_result_what_is_inside_of_its_envelope() {
        assert_eq!(
            call_text(&call(r#"{"path": "a", "lines": [1, 2]}"#)),
            "🔧 files.read\nlines: [1,2]\npath: a"
        );
        assert_eq!(call_text(&call("no JSON")), "🔧 files.read\nno JSON");
        let result = ToolResult {
            tool: "files__read".to_owned(),
            success: true,
            output: "[plugin_output source=\"files\"]\nhello\nthere\n[/plugin_output]".to_owned(),
            duration_ms: 7,
            ..ToolResult::default()
        };
        assert_eq!(result_text(&result), "✅ files.read (7 ms)\nhello\nthere");
        let failed = ToolResult { success: false, output: "denied by user".to_owned(), ..result };
        assert_eq!(result_text(&failed), "❌ files.read (7 ms)\ndenied by user");
        let long = call_text(&call(&"x".repeat(5000)));
        assert!(long.ends_with("more characters: talon session show)"), "{long}");
    }

    // Promises: GW-230
    #[tokio::test]
    async fn what_is_too_much_is_counted_and_said() {
        let (texts, mut waiting) = CallTexts::new();
        (0..MAX_WAITING + 3).for_each(|number| texts.push(number.to_string()));
        drop(texts);
        let mut shown = Vec::new();
        while let Some(text) = waiting.next().await {
            shown.push(text);
        }
        assert_eq!(shown.len(), MAX_WAITING + 1);
        assert_eq!(shown.last().map(String::as_str), Some("(3 more calls and results: talon session show)"));
    }

    // Promises: GW-230
    #[tokio::test(start_paused = true)]
    async fn a_channel_that_takes_no_call_holds_up_the_answer_for_a_moment() {
        let began = Instant::now();
        assert_eq!(read_and_show(async { 7 }, pending()).await, (7, false));
        assert!((LAST_CALLS..2 * LAST_CALLS).contains(&began.elapsed()));
        assert_eq!(read_and_show(async { 7 }, sleep(FIRST_WAIT)).await, (7, true));
        assert_eq!(read_and_show(sleep(FIRST_WAIT), async {}).await, ((), true));
    }

    proptest! {
        #[test]
        fn a_text_is_bounded_whatever_comes(arguments in ".{0,4000}") {
            prop_assert!(call_text(&call(&arguments)).chars().count() < MAX_SHOWN_CHARS + 100);
        }
    }
}
