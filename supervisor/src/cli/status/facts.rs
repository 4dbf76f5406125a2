//! What is to be known of the supervisor itself.

use std::time::{Duration, SystemTime};

use talon_proto::host::{AuditStatus, GetStatusResponse, StateStatus, Usage};

use super::super::show;
use super::super::table::{Cell, Table};

/// One fact a row.
pub(super) fn table(status: &GetStatusResponse) -> Table {
    let mut table = Table::new(&[]);
    let mut row = |name: &str, value: Cell| table.row(vec![name.into(), value]);
    row("supervisor", supervisor(status).into());
    let config = if status.config_file.is_empty() { "none: built-in defaults" } else { &status.config_file };
    let read = match status.config_unix_ms {
        0 => String::new(),
        at => format!(", read {} ago", show::short(since(at))),
    };
    row("config", format!("{config}{read}").into());
    row("runtime dir", status.runtime_dir.as_str().into());
    row("data dir", status.data_dir.as_str().into());
    if let Some(kept) = &status.state_service {
        row("plugin state", show::state(&kept.state, ""));
        let about = about(kept);
        if !about.is_empty() {
            row("", about.into());
        }
    }
    if let Some(audit) = &status.audit {
        row("audit", audited(audit).into());
    }
    if !status.tier.is_empty() {
        row("sandbox", status.tier.as_str().into());
    }
    if let Some(usage) = &status.usage {
        row("uses", uses(usage).into());
    }
    if status.log_lines_dropped > 0 {
        let text = format!("{} lines of its own were lost: nobody took them", status.log_lines_dropped);
        row("log", text.into());
    }
    if let Some(you) = &status.you {
        row("you", format!("uid {}, role {}, origin {}", you.uid, you.role, you.origin).into());
    }
    table
}

fn supervisor(status: &GetStatusResponse) -> String {
    let up = show::short(since(status.started_unix_ms));
    let mut text = format!("talon {}, pid {}, up for {up}", status.version, status.pid);
    match status.taken_over {
        0 => {}
        1 => text.push_str("; took over 1 process"),
        count => text.push_str(&format!("; took over {count} processes")),
    }
    text
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

fn audited(audit: &AuditStatus) -> String {
    let mut text = audit.state.clone();
    if !audit.file.is_empty() {
        text.push_str(&format!(": {} records, now to {}", audit.records, audit.file));
    }
    if audit.lost > 0 {
        text.push_str(&format!("; {} calls have none", audit.lost));
    }
    text
}

fn uses(usage: &Usage) -> String {
    let cpu = show::short(Duration::from_micros(usage.cpu_us));
    format!("{} of memory, {cpu} of processor time", show::bytes(usage.memory_bytes))
}

fn since(unix_ms: u64) -> Duration {
    SystemTime::now().duration_since(show::at(unix_ms)).unwrap_or_default()
}
