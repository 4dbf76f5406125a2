//! `talon session show`.

use anstyle::{AnsiColor, Style};
use clap::Args;
use serde_json::{Value, json};
use talon_proto::agent::{GetSessionRequest, Message, Session};
use talon_sanitize::{Raw, sanitized};

use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::{
    block_content, bounded_text, count, count_of, single_line, tool_name, usd,
};
use crate::client::agent::json::{message, session};
use crate::client::agent::plan::plan_lines;
use crate::client::agent::session_overrides::sampling_text;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::line::Line;
use crate::output::Output;
use crate::show::timestamp;
use crate::table::Table;
use crate::terminal_style::uses_words;

/// Messages per request.
const PAGE_SIZE: u32 = 200;
/// Bytes of a call's arguments in the output for people; JSON has all of them.
const ARGUMENTS_BYTES: usize = 400;

const ROLE: Style = AnsiColor::Cyan.on_default().bold();
const DIM: Style = Style::new().dimmed();

/// Show a session: its settings and its messages.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon session show 01K0
  talon session show 01K0 --all --output json | jq -r '.messages[] | select(.role == \"assistant\") | .content'")]
pub(crate) struct ShowArgs {
    /// The session's id.
    #[arg(value_name = "ID")]
    id: String,
    /// Include the messages that summaries replaced.
    #[arg(long)]
    all: bool,
    /// The most messages to show.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

impl ShowArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let (whole, messages, more) = read(&reach, &self.id, self.all, limit).await?;
        if out.is_json() {
            let messages = messages.iter().map(message).collect::<Value>();
            out.exact_json(&json!({ "session": session(&whole), "messages": messages, "more": more }));
            return Ok(exit::OK);
        }
        print_facts(&whole, out);
        for message in &messages {
            out.line("");
            print_message(message, out);
        }
        if more {
            let shown = count_of(messages.len() as u64, "message");
            out.err_line(sanitized!("{}, and there are more: --limit shows them", shown));
        }
        Ok(exit::OK)
    }
}

/// The session, its messages up to a limit, and whether there are more.
pub(super) async fn read(
    reach: &AgentConnection,
    id: &str,
    all: bool,
    limit: usize,
) -> Result<(Session, Vec<Message>, bool), Failure> {
    let (mut whole, mut messages, mut page_token) =
        (Session::default(), Vec::<Message>::new(), String::new());
    loop {
        let request = GetSessionRequest {
            session_id: id.to_owned(),
            all,
            page_size: u32::try_from(limit - messages.len()).unwrap_or(PAGE_SIZE).min(PAGE_SIZE),
            page_token,
        };
        let page = reach
            .query(|mut agent| {
                let request = request.clone();
                async move { agent.get_session(request).await }
            })
            .await?;
        whole = page.session.unwrap_or(whole);
        messages.extend(page.messages);
        page_token = page.next_page_token;
        if messages.len() >= limit || page_token.is_empty() {
            let more = messages.len() > limit || !page_token.is_empty();
            messages.truncate(limit);
            return Ok((whole, messages, more));
        }
    }
}

/// Prints the session's metadata and settings.
pub(in crate::client::agent) fn print_facts(session: &Session, out: &mut Output) {
    let mut table = Table::new(&[]);
    let mut row = |key: &str, value: String| {
        if !value.is_empty() {
            table.row(vec![key.into(), value.into()]);
        }
    };
    row("session", session.id.clone());
    row("title", session.title.clone());
    row("sender", format!("{} ({})", session.sender, session.channel));
    row("state", format!("{}, turn: {}", session.state, session.turn));
    row("model", session.model.clone());
    row("answered by", session.active_model.clone());
    row("thinking", session.thinking.clone());
    row("answers", sampling_text(session.sampling.as_ref()).join(", "));
    row("verbosity", session.verbosity.clone());
    row("verbose", if session.verbose { "on" } else { "" }.to_owned());
    row("tools", session.tools.join(", "));
    row("created", timestamp(session.created_unix_ms).into_string());
    row("updated", timestamp(session.updated_unix_ms).into_string());
    if session.delete_unix_ms > 0 {
        row("deleted at", timestamp(session.delete_unix_ms).into_string());
    }
    row("messages", count(session.messages));
    row("cost", usd(session.cost_pico_usd));
    let metadata: Vec<String> =
        session.metadata.iter().map(|(key, value)| format!("{key}={value}")).collect();
    row("metadata", metadata.join(", "));
    out.table(&table);
    if let Some(plan) = session.plan.as_ref().filter(|plan| !plan.steps.is_empty()) {
        plan_lines(plan, uses_words()).into_iter().for_each(|line| out.line(line));
    }
}

fn print_message(message: &Message, out: &mut Output) {
    let what = if message.summary { " (a summary of what was before)" } else { "" };
    out.line(
        Line::styled(ROLE, single_line(&message.role))
            .and(what)
            .and_styled(DIM, sanitized!("  {}", timestamp(message.unix_ms))),
    );
    if !message.content.is_empty() {
        out.terminal_text(&Raw::from(&message.content).terminal_text());
    }
    for media in &message.media {
        // A file that is no image has no pixels.
        let pixels = match (media.width, media.height) {
            (0, 0) => String::new(),
            (width, height) => format!(", {width} × {height} pixels"),
        };
        out.line(sanitized!(
            "▣ {} {}{}, {} bytes",
            single_line(&media.name),
            single_line(&media.media_type),
            single_line(&pixels),
            single_line(&count(media.bytes))
        ));
    }
    for call in &message.tool_calls {
        let arguments = bounded_text(&call.arguments, ARGUMENTS_BYTES);
        out.line(Line::from(sanitized!("→ {} ", tool_name(&call.tool))).and_text(arguments));
    }
    for result in &message.tool_results {
        let mark = if result.success { "✓" } else { "✗" };
        out.line(sanitized!("{} {}", mark, tool_name(&result.tool)));
        out.text(&Raw::from(block_content(&result.output)).text());
    }
}
