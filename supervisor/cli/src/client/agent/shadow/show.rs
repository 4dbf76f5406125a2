//! `talon shadow show` and `why`.

use clap::Args;
use talon_proto::agent::{GetGhostRequest, GetGhostResponse, Ghost, ShadowLogEntry};
use talon_sanitize::sanitized;

use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::{count, single_line, usd};
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json;
use crate::output::Output;
use crate::show::timestamp;
use crate::table::Table;

/// Show a ghost: what was noticed, what is proposed, and what can be done.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon shadow show 01K0
  talon shadow show 01K0 --output json | jq .actions")]
pub(crate) struct ShowArgs {
    /// The ghost's id, or a beginning of it that no other has.
    #[arg(value_name = "ID")]
    id: String,
}

/// Say why a ghost is there: its trigger, the rules that it passed, what was sent to which model, and what that cost.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon shadow why 01K0
  talon shadow why 01K0 --output json | jq .sent")]
pub(crate) struct WhyArgs {
    /// The ghost's id, or a beginning of it that no other has.
    #[arg(value_name = "ID")]
    id: String,
}

/// One ghost, and why it is there.
pub(super) async fn fetch(reach: &AgentConnection, id: &str) -> Result<GetGhostResponse, Failure> {
    let request = GetGhostRequest { id: id.to_owned() };
    reach
        .query(|mut agent| {
            let request = request.clone();
            async move { agent.get_ghost(request).await }
        })
        .await
}

/// A ghost as people read it.
pub(super) fn print(ghost: &Ghost, out: &mut Output) {
    out.line(sanitized!("{} {}", single_line(&ghost.id), single_line(&ghost.trigger)));
    out.line(sanitized!("  {}", single_line(&ghost.observation)));
    out.line(sanitized!(
        "  {} (confidence: {})",
        single_line(&ghost.proposal),
        single_line(&ghost.confidence)
    ));
    for action in &ghost.actions {
        let kind = single_line(&action.r#type);
        if action.payload_json.is_empty() {
            out.line(sanitized!("  · {} ({})", single_line(&action.label), kind));
        } else {
            let payload = single_line(&action.payload_json);
            out.line(sanitized!("  · {} ({}): {}", single_line(&action.label), kind, payload));
        }
    }
    if !ghost.no_act.is_empty() {
        out.line(sanitized!("  It offers no act: {}", single_line(&ghost.no_act)));
    }
}

impl ShowArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let ghost = fetch(&reach, &self.id).await?.ghost.unwrap_or_default();
        if out.is_json() {
            out.json(&json::fields(&ghost));
            return Ok(exit::OK);
        }
        print(&ghost, out);
        out.line("");
        let mut table = Table::new(&[]);
        let mut row = |key: &str, value: String| {
            if !value.is_empty() {
                table.row(vec![key.into(), value.into()]);
            }
        };
        row("state", ghost.state.clone());
        row("sender", ghost.sender.clone());
        row("repository", ghost.repository.clone());
        row("directory", ghost.directory.clone());
        row("created", timestamp(ghost.created_unix_ms).into_string());
        row("expires", timestamp(ghost.expires_unix_ms).into_string());
        if let Some(until) = ghost.snoozed_until_unix_ms {
            row("snoozed until", timestamp(until).into_string());
        }
        if let Some(at) = ghost.decided_unix_ms {
            row("decided", format!("{} by {}", timestamp(at), ghost.decided_by));
        }
        row("session", ghost.session_id.clone());
        out.table(&table);
        Ok(exit::OK)
    }
}

impl WhyArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let found = fetch(&reach, &self.id).await?;
        if out.is_json() {
            out.json(&json::fields(&found));
            return Ok(exit::OK);
        }
        let GetGhostResponse { ghost, source, passed, sent } = found;
        let (ghost, source) = (ghost.unwrap_or_default(), source.unwrap_or_default());
        print(&ghost, out);
        out.line("");
        let mut table = Table::new(&[]);
        table.row(vec!["trigger".into(), source.trigger.into()]);
        table.row(vec!["found".into(), source.finding.into()]);
        table.row(vec!["seen".into(), timestamp(source.occurred_unix_ms).into_string().into()]);
        for rule in passed {
            table.row(vec!["rule".into(), rule.into()]);
        }
        for (key, value) in sent.map(|sent| facts(&sent)).unwrap_or_default() {
            table.row(vec![key.into(), value.into()]);
        }
        out.table(&table);
        Ok(exit::OK)
    }
}

/// What was sent, to whom, and at what cost.
fn facts(sent: &ShadowLogEntry) -> Vec<(&'static str, String)> {
    let place = if sent.local { "on this machine" } else { "not on this machine" };
    vec![
        ("asked", format!("{} ({place})", sent.models.join(", "))),
        ("sent", kinds(sent)),
        ("redactions", sent.redactions.to_string()),
        ("tokens", format!("{} in, {} out", count(sent.input_tokens), count(sent.output_tokens))),
        ("cost", usd(sent.cost_pico_usd)),
    ]
}

/// The bytes by their kind.
pub(super) fn kinds(entry: &ShadowLogEntry) -> String {
    let kinds: Vec<String> =
        entry.sent.iter().map(|sent| format!("{} {} B", sent.kind, count(sent.bytes))).collect();
    if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(", ") }
}
