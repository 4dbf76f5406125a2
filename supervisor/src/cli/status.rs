//! `talon status`: the supervisor and its plugins at a glance.

use std::collections::BTreeMap;
use std::time::SystemTime;

use clap::Args;
use talon_proto::host::{GetStatusRequest, GetStatusResponse, StateStatus};

use super::client::Client;
use super::failure::Failure;
use super::output::Out;
use super::table::Table;
use super::{Global, json, show};
use crate::exit;

/// Show the supervisor's state, its plugins, what was refused and what is not enforced.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon status
  talon status --output json | jq '.plugins[] | select(.state != \"ready\")'")]
pub(super) struct StatusArgs {}

impl StatusArgs {
    pub(super) async fn run(self, global: &Global, out: &mut Out) -> Result<u8, Failure> {
        let mut client = Client::connect(global).await?;
        let response =
            client.host.get_status(GetStatusRequest {}).await.map_err(|status| client.failure(&status))?;
        if out.is_json() {
            out.json(&json::status(response.get_ref()));
        } else {
            print(response.get_ref(), out);
        }
        Ok(exit::OK)
    }
}

fn print(status: &GetStatusResponse, out: &mut Out) {
    let mut head = Table::new(&[]);
    let up = SystemTime::now().duration_since(show::at(status.started_unix_ms)).unwrap_or_default();
    head.row(vec!["state".into(), show::state(&status.state, "")]);
    head.row(vec![
        "supervisor".into(),
        format!("talon {}, pid {}, up for {}", status.version, status.pid, show::short(up)).into(),
    ]);
    head.row(vec!["runtime dir".into(), status.runtime_dir.as_str().into()]);
    head.row(vec!["data dir".into(), status.data_dir.as_str().into()]);
    let config = if status.config_file.is_empty() { "none: built-in defaults" } else { &status.config_file };
    head.row(vec!["config".into(), config.into()]);
    if let Some(kept) = &status.state_service {
        head.row(vec!["plugin state".into(), show::state(&kept.state, "")]);
        let about = about(kept);
        if !about.is_empty() {
            head.row(vec!["".into(), about.into()]);
        }
    }
    if let Some(you) = &status.you {
        let text = format!("uid {}, role {}, origin {}", you.uid, you.role, you.origin);
        head.row(vec!["you".into(), text.into()]);
    }
    out.table(&head);
    out.line("");
    show::plugins(&status.plugins, out);

    if !status.refused.is_empty() {
        let mut table = Table::new(&["REFUSED", "PATH", "REASON"]);
        for refused in &status.refused {
            table.row(vec![
                refused.name.as_str().into(),
                refused.path.as_str().into(),
                refused.reason.as_str().into(),
            ]);
        }
        out.line("");
        out.table(&table);
    }
    not_enforced(status, out);
}

/// What keeps the plugins' state, or why nothing does.
fn about(kept: &StateStatus) -> String {
    let mut parts = Vec::new();
    if !kept.engine.is_empty() {
        parts.push(format!("{} {}", kept.engine, kept.place));
    }
    if kept.pid != 0 {
        parts.push(format!("pid {}, uid {}", kept.pid, kept.uid));
    }
    if kept.restarts > 0 {
        parts.push(format!("started again {} times", kept.restarts));
    }
    if !kept.problem.is_empty() {
        parts.push(kept.problem.clone());
    }
    parts.join("; ")
}

/// What does not hold is said last, where it is seen; plugins that lack the same share a line.
fn not_enforced(status: &GetStatusResponse, out: &mut Out) {
    let mut lacking: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for plugin in &status.plugins {
        for text in &plugin.not_enforced {
            lacking.entry(text).or_default().push(&plugin.name);
        }
    }
    let word = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
    let told: Vec<String> = lacking.keys().map(|text| word(text)).collect();
    let mut table = Table::new(&["FOR", "NOT ENFORCED"]);
    for text in status.not_enforced.iter().filter(|text| !told.contains(&word(text))) {
        table.row(vec!["any plugin".into(), text.as_str().into()]);
    }
    for (text, plugins) in lacking {
        let whom = if plugins.len() == status.plugins.len() {
            "every plugin".to_owned()
        } else {
            plugins.join(", ")
        };
        table.row(vec![whom.into(), text.into()]);
    }
    if !table.is_empty() {
        out.line("");
        out.table(&table);
    }
}
