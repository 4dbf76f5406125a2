//! `talon approval rules` and `revoke`.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::json;
use talon_proto::agent::{ApprovalRule, ListApprovalRulesRequest, RevokeApprovalRuleRequest};
use talon_sanitize::sanitized;

use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::{bounded_line, single_line};
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json;
use crate::output::Output;
use crate::show::timestamp;
use crate::table::{Column, Table};

/// Bytes of the arguments in a table row; `--output json` has all of them.
const ARGUMENTS_BYTES: usize = 80;

/// List the rules by which calls run without asking.
///
/// `talon approval approve --scope session|always` makes them. An argument is shown as NAME=VALUE if it has to be the
/// same, and as NAME~PATTERN if it has to fit a pattern.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon approval rules
  talon approval rules --everybody --output json")]
pub(crate) struct RulesArgs {
    /// Rules of all users, for operators; otherwise only your own.
    #[arg(long)]
    everybody: bool,
}

/// Revoke a rule: calls that it covered ask again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon approval revoke 01K0")]
pub(crate) struct RevokeArgs {
    /// The rule's id.
    #[arg(value_name = "ID")]
    id: String,
}

impl RulesArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let request = ListApprovalRulesRequest { everybody: self.everybody };
        let rules = reach.query(|mut agent| async move { agent.list_approval_rules(request).await }).await?;
        if out.is_json() {
            out.json(&json!({ "rules": rules.rules }));
        } else {
            print(&rules.rules, out);
        }
        Ok(exit::OK)
    }
}

impl RevokeArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let request = RevokeApprovalRuleRequest { id: self.id };
        let rule = reach.send_once(async move |mut agent| agent.revoke_approval_rule(request).await).await?;
        if out.is_json() {
            out.json(&json::fields(&rule));
        } else {
            let call = sanitized!("{}.{}", single_line(&rule.plugin), single_line(&rule.action));
            out.line(sanitized!("revoked {}: {} asks again", single_line(&rule.id), call));
        }
        Ok(exit::OK)
    }
}

fn print(rules: &[ApprovalRule], out: &mut Output) {
    if rules.is_empty() {
        out.line("no rule lets a call run without asking");
        return;
    }
    let mut table = Table::of(&[
        Column::text("RULE", 0),
        Column::text("CALL", 0),
        Column::text("ARGUMENTS", 1),
        Column::text("WHERE", 2),
        Column::text("USES", 3),
        Column::text("LAST USED", 4),
        Column::text("SENDER", 5),
        Column::text("MADE BY", 6),
    ]);
    for rule in rules {
        let session = match rule.session_id.as_str() {
            "" => "always".to_owned(),
            session => format!("session {session}"),
        };
        let used = match rule.used_unix_ms {
            0 => String::new(),
            used => timestamp(used).into_string(),
        };
        table.row(vec![
            rule.id.as_str().into(),
            format!("{}.{}", rule.plugin, rule.action).into(),
            bounded_line(&arguments(rule), ARGUMENTS_BYTES).into(),
            session.into(),
            rule.uses.to_string().into(),
            used.into(),
            rule.sender.as_str().into(),
            rule.created_by.as_str().into(),
        ]);
    }
    table.fit(out.columns());
    out.table(&table);
}

/// All arguments, in the order of their names.
fn arguments(rule: &ApprovalRule) -> String {
    let same = rule.arguments.iter().map(|(name, value)| (name, format!("{name}={value}")));
    let patterns = rule.patterns.iter().map(|(name, pattern)| (name, format!("{name}~{pattern}")));
    let all: BTreeMap<_, _> = same.chain(patterns).collect();
    all.into_values().collect::<Vec<_>>().join(" ")
}
