//! Reports which protections a jail has.

use anstyle::AnsiColor;
use serde_json::{Value, json};
use talon_jail::{ExitStatus, JailedProgram, Report, Status};
use talon_sanitize::sanitized;

use crate::line::sanitized_line;
use crate::output::Output;
use crate::table::{Cell, Table};

/// Prints the protections in force to stderr; stdout belongs to the command.
pub(super) fn print_start(jailed: &JailedProgram, uid: u32, out: &mut Output) {
    if out.is_json() {
        out.err_json(&json!({ "pid": jailed.pid, "uid": uid, "protections": protections(&jailed.report) }));
        return;
    }
    let mut table = Table::new(&["PROTECTION", "HOLDS", ""]);
    for protection in &jailed.report {
        let (word, color, text) = match &protection.status {
            Status::Enforced => ("yes", AnsiColor::Green, ""),
            Status::StandIn(how) => ("stand-in", AnsiColor::Yellow, how.as_str()),
            Status::Missing(why) => ("no", AnsiColor::Red, why.as_str()),
        };
        table.row(vec![protection.name.as_str().into(), Cell::styled(word, color.on_default()), text.into()]);
    }
    out.err_line(sanitized!("talon: pid {}, uid {}", jailed.pid, uid));
    out.err_table(&table);
}

/// Prints how the command ended.
pub(super) fn print_end(status: ExitStatus, out: &mut Output) {
    if out.is_json() {
        out.err_json(&json!({ "ended": status.to_string() }));
    } else {
        out.err_line(sanitized!("talon: {}", sanitized_line(status)));
    }
}

/// Prints missing protections even without --report; only `--mode best-effort` gets this far.
pub(super) fn print_missing(report: &Report, out: &mut Output) {
    for protection in report {
        if let Status::Missing(why) = &protection.status {
            out.err_line(sanitized!(
                "talon: not enforced: {}: {}",
                sanitized_line(&protection.name),
                sanitized_line(why)
            ));
        }
    }
}

fn protections(report: &Report) -> Value {
    let one = |protection: &talon_jail::Protection| {
        let (holds, says) = match &protection.status {
            Status::Enforced => ("yes", ""),
            Status::StandIn(how) => ("stand-in", how.as_str()),
            Status::Missing(why) => ("no", why.as_str()),
        };
        json!({ "protection": protection.name, "holds": holds, "says": says })
    };
    report.iter().map(one).collect()
}
