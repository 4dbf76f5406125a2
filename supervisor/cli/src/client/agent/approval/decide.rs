//! `talon approval approve` and `deny`.

use std::time::SystemTime;

use clap::Args;
use talon_proto::agent::{Approval, DecideRequest};
use talon_sanitize::sanitized;

use super::find;
use super::scope::Scope;
use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::single_line;
use crate::client::agent::turn::approval::{is_pending, lines, rule_line};
use crate::confirm;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json;
use crate::output::Output;

/// Approve a call: it runs exactly as shown.
///
/// Shows the call first. The approval is bound to the digest of what was shown: a call that changed since
/// then does not run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon approval approve 01K0
  talon approval approve 01K0 --yes
  talon approval approve 01K0 --scope session
  talon approval approve 01K0 --scope always --argument 'command=make *'")]
pub(crate) struct ApproveArgs {
    /// The approval's id.
    #[arg(value_name = "ID")]
    id: String,
    /// Do not ask for confirmation. Without a terminal there is no confirmation anyway.
    #[arg(long)]
    yes: bool,
    /// Whether such calls ask again: session and always make a rule, which `talon approval rules` shows.
    #[arg(long, value_enum, value_name = "SCOPE", default_value = "once")]
    scope: Scope,
    /// With a rule: a pattern for an argument, which otherwise has to be the same. `*` stands for any text
    /// within one shell command, `**` for any text, and `\*` for a star.
    #[arg(long, value_name = "NAME=PATTERN", value_parser = name_and_pattern)]
    argument: Vec<(String, String)>,
}

fn name_and_pattern(text: &str) -> Result<(String, String), String> {
    let (name, pattern) = text.split_once('=').ok_or("write NAME=PATTERN")?;
    Ok((name.to_owned(), pattern.to_owned()))
}

/// Answer a question of the model, or of a plugin; its turn continues with the answer.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon approval answer 01K0 'the red one'
  talon approval answer 01K0 '{\"seat\": \"aisle\"}'")]
pub(crate) struct AnswerArgs {
    /// The question's id.
    #[arg(value_name = "ID")]
    id: String,
    /// The answer, at most 16 KiB; to a plugin a JSON object with the fields that `talon approval show` names.
    #[arg(value_name = "TEXT")]
    text: String,
}

/// Deny a call: the model gets "denied by user" as its result and continues without it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon approval deny 01K0
  talon approval deny 01K0 --reason 'use the trash instead'")]
pub(crate) struct DenyArgs {
    /// The approval's id.
    #[arg(value_name = "ID")]
    id: String,
    /// A reason for the model, at most 500 bytes.
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

impl ApproveArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let seen = pending(&reach, &self.id).await?;
        for line in lines(&seen, SystemTime::now()) {
            out.err_line(line);
        }
        if !self.yes
            && confirm::is_interactive()
            && !confirm::is_confirmed("Run it, exactly as shown?".into(), out)?
        {
            out.err_line("nothing was decided");
            return Ok(exit::OK);
        }
        let request = DecideRequest {
            id: self.id,
            approve: true,
            digest: seen.digest,
            plan_revision: seen.plan.map_or(0, |plan| plan.revision),
            scope: self.scope.word().to_owned(),
            patterns: self.argument.into_iter().collect(),
            ..DecideRequest::default()
        };
        decide(&reach, request, out).await
    }
}

impl DenyArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let request = DecideRequest { id: self.id, reason: self.reason, ..DecideRequest::default() };
        decide(&reach, request, out).await
    }
}

impl AnswerArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let request =
            DecideRequest { id: self.id, approve: true, answer: self.text, ..DecideRequest::default() };
        decide(&reach, request, out).await
    }
}

/// Fetches an approval and fails unless it is still pending.
async fn pending(reach: &AgentConnection, id: &str) -> Result<Approval, Failure> {
    let found = find::fetch_one(reach, id).await?;
    if is_pending(&found) {
        return Ok(found);
    }
    Err(Failure::new(
        exit::REFUSED,
        format!("{id} is already {}: `talon approval show {id}` says who decided", found.state),
    ))
}

async fn decide(reach: &AgentConnection, request: DecideRequest, out: &mut Output) -> Result<u8, Failure> {
    let decided = reach.send_once(async move |mut agent| agent.decide(request).await).await?;
    if out.is_json() {
        out.exact_json(&json::fields(&decided));
    } else {
        let call = match decided.question.as_str() {
            "" => sanitized!("{}.{}", single_line(&decided.plugin), single_line(&decided.action)),
            question => single_line(question),
        };
        out.line(sanitized!("{} {}: {}", single_line(&decided.state), single_line(&decided.id), call));
        if !decided.rule_id.is_empty() {
            out.line(rule_line(&decided));
        }
    }
    Ok(exit::OK)
}
