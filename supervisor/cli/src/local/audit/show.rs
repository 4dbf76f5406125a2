//! `talon audit show`: prints records for people, or unchanged for programs.

use std::collections::VecDeque;
use std::path::PathBuf;

use anstyle::AnsiColor;
use clap::Args;
use serde_json::Value;
use talon_audit::LineReader;
use talon_sanitize::sanitized;

use super::find;
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::line::{Line, sanitized_line};
use crate::output::Output;
use crate::show;

/// The most records that `--last` holds in memory.
const MAX_LAST: usize = 100_000;

/// Print records of the audit log, oldest first.
///
/// Does not verify them. With --output json it prints each record on one line as it is in the log, with
/// control characters escaped.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon audit show --last 20
  talon audit show --plugin jira --since 1h
  talon audit show --kind operation --output json")]
pub(crate) struct ShowArgs {
    /// The log's directory, or some of its files in order; otherwise the supervisor's directory.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only calls of this plugin and operations on it.
    #[arg(long, value_name = "PLUGIN")]
    plugin: Option<String>,
    /// Only records of this kind: call, operation, lost, started, stopped, …
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Only records of processes with this uid.
    #[arg(long, value_name = "UID")]
    uid: Option<u32>,
    /// Only records since then: 1h ago, or a time such as 2026-11-22T08:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = find::since)]
    since: Option<u64>,
    /// Only this many of the last records.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_LAST as i64))]
    last: Option<u32>,
}

impl ShowArgs {
    pub(super) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let paths = find::resolve_paths(self.paths.clone(), global).await?;
        let (mut files, _) = find::files(&paths)?;
        if let Some(since) = self.since {
            files = find::files_since(files, since);
        }
        let mut lines = LineReader::new(files);
        let mut last = VecDeque::new();
        while !out.is_closed() {
            let line = lines.next_line().map_err(|(path, error)| find::unreadable(&path, &error))?;
            let Some(line) = line else { break };
            let record = serde_json::from_slice(&line.bytes).unwrap_or(Value::Null);
            if record.is_null() && line.has_newline {
                let place = sanitized!("{}:{}", sanitized_line(lines.path(line.file).display()), line.number);
                out.err_line(sanitized!("{} is no record; see `talon audit verify`", place));
            } else if self.wants(&record) {
                match self.last {
                    None => print(&record, out),
                    Some(most) => {
                        last.push_back(record);
                        if last.len() > most as usize {
                            last.pop_front();
                        }
                    }
                }
            }
        }
        last.iter().for_each(|record| print(record, out));
        Ok(exit::OK)
    }

    fn wants(&self, record: &Value) -> bool {
        let is = |key: &str, wanted: &str| record[key].as_str() == Some(wanted);
        let since = self.since.is_none_or(|since| record["unix_ms"].as_u64().is_some_and(|at| at >= since));
        let uid = self.uid.is_none_or(|uid| record["who"]["uid"].as_u64() == Some(uid.into()));
        let kind = self.kind.as_deref().is_none_or(|kind| is("kind", kind));
        let plugin =
            self.plugin.as_deref().is_none_or(|plugin| is("plugin", plugin) || is("subject", plugin));
        !record.is_null() && since && uid && kind && plugin
    }
}

fn print(record: &Value, out: &mut Output) {
    if out.is_json() {
        out.json_line(record);
        return;
    }
    let text = |key: &str| record[key].as_str().unwrap_or_default();
    let by = &record["who"];
    let origin = by["origin"].as_str().unwrap_or_default();
    // The gateway's uid says nothing of who asked.
    let who = match (by["subject"].as_str(), by["uid"].as_u64()) {
        (Some(subject), _) => format!("{subject} ({origin})"),
        (None, Some(uid)) => format!("uid {uid} ({origin})"),
        (None, None) => "talon".to_owned(),
    };
    let what = match text("kind") {
        "call" => format!("{}.{}", text("plugin"), text("action")),
        "operation" => format!("{} {}", text("verb"), text("subject")),
        kind => kind.to_owned(),
    };
    let mut rest: Vec<String> = ["outcome", "reason", "why", "file", "call_id"]
        .into_iter()
        .filter(|key| !text(key).is_empty())
        .map(|key| if key == "outcome" { text(key).to_owned() } else { format!("{key}={}", text(key)) })
        .collect();
    let values = ["count", "guard", "arguments", "duration_us"];
    rest.extend(
        values.iter().filter(|key| !record[**key].is_null()).map(|key| format!("{key}={}", record[*key])),
    );
    out.line(
        Line::styled(
            AnsiColor::BrightBlack.on_default(),
            show::timestamp(record["unix_ms"].as_u64().unwrap_or_default()),
        )
        .and(sanitized!(" {} {} ", record["seq"].as_u64().unwrap_or_default(), sanitized_line(who)))
        .and_styled(AnsiColor::Cyan.on_default(), sanitized_line(what.trim()))
        .and(sanitized!(" {}", sanitized_line(rest.join(" ")))),
    );
}
