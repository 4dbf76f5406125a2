//! `talon doctor`: what this machine supports, whether the configuration can work here, and how to fix
//! problems.
//!
//! Each file checks one area and changes nothing. Anything that may hang (a service manager, a collector,
//! another program) has a timeout of a few seconds.

mod agent;
mod audit;
mod bounded;
mod check;
mod config;
mod connectivity;
mod files;
mod jail;
mod machine;
mod process;
mod programs;
mod service;
mod shadow;
mod supervisor;

use anstyle::Style;
use clap::Args;
use serde_json::json;

use self::check::{Check, CheckBuilder, SECTIONS, Section, Verdict};
use self::jail::JailReport;
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::line::Line;
use crate::local::configuration;
use crate::output::Output;
use crate::table::{Cell, Table};
use crate::wrap::wrapped_on;

/// The widest output: longer lines are hard to read.
const MAX_COLUMNS: usize = 100;

/// Check this machine, the configuration, the service and the running supervisor, and say how to fix what is
/// wrong.
///
/// Each line is ok, a warning or a failure; a line that is not ok says why it matters and what to do. For
/// each protection of the jail it shows what this machine supports for the current user, what the
/// configuration requires, and for how many running plugins it is in force. Some checks need root: for other
/// users the skipped checks are named.
///
/// Exits with 1 if something failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon doctor
  talon doctor --output json | jq '.checks[] | select(.status != \"ok\")'
  talon doctor --output json | jq -r '.machine.tier'")]
pub(crate) struct DoctorArgs {}

impl DoctorArgs {
    pub(crate) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let mut checks = Vec::new();
        let loaded = configuration::load(&configuration::load_options(global));
        match &loaded {
            Ok(loaded) => {
                checks.extend(config::checks(loaded));
                checks.extend(files::checks(loaded));
                checks.extend(agent::checks(&loaded.config));
            }
            Err(failure) => {
                checks.push(CheckBuilder(Section::Configuration, "config").fail(failure.to_string()))
            }
        }
        // Without a configuration the defaults apply.
        let config = loaded.ok().map(|loaded| loaded.config);
        checks.extend(programs::checks(config.as_ref()).await);
        let (found, status) = supervisor::checks(global).await;
        checks.extend(found);
        if let Some(status) = &status {
            checks.extend(process::checks(status));
            checks.extend(connectivity::healthz(status).await);
        }
        checks.extend(service::checks(status.as_ref()).await);
        checks.extend(connectivity::checks(config.as_ref(), status.as_ref()).await);
        checks.extend(audit::checks(config.as_ref(), status.as_ref()));
        checks.extend(machine::checks(status.as_ref()));
        let jails = JailReport::inspect(config.as_ref(), status.as_ref());
        match &jails {
            Ok(jails) => checks.extend(jails.checks()),
            Err(error) => checks.push(CheckBuilder(Section::Sandbox, "jail: tier").fail(error.to_string())),
        }
        let jails = jails.ok();

        if out.is_json() {
            let list = checks.iter().map(Check::json);
            let mut value = json!({ "checks": list.collect::<serde_json::Value>() });
            if let Some(jails) = &jails {
                jails.add_to(&mut value);
            }
            out.json(&value);
        } else {
            print(&checks, jails.as_ref(), out);
        }
        let failed = checks.iter().any(|check| check.verdict == Verdict::Fail);
        Ok(if failed { exit::TOOL_ERROR } else { exit::OK })
    }
}

fn print(checks: &[Check], jails: Option<&JailReport>, out: &mut Output) {
    let page = out.columns().min(MAX_COLUMNS);
    let mut first = true;
    for section in SECTIONS {
        let checks: Vec<&Check> = checks.iter().filter(|check| check.section == section).collect();
        if checks.is_empty() {
            continue;
        }
        if !first {
            out.line("");
        }
        first = false;
        out.line(Line::styled(Style::new().bold(), section.title()));
        out.table(&table(&checks, page));
    }
    if let Some(jails) = jails {
        for table in [jails.table(page), jails.remedies(page)] {
            if !table.is_empty() {
                out.line("");
                out.table(&table);
            }
        }
    }
    let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    out.line("");
    let text = format!(
        "{} ok, {} warnings, {} failures",
        count(Verdict::Ok),
        count(Verdict::Warn),
        count(Verdict::Fail)
    );
    out.line(crate::line::sanitized_line(text));
}

fn table(checks: &[&Check], page: usize) -> Table {
    let mut table = Table::new(&[]);
    let widest = checks.iter().map(|check| check.subject.len()).max().unwrap_or_default();
    // A verdict, a name and their gaps precede the text.
    let used = "fail".len() + widest + 4;
    for check in checks {
        let mut head = Some((
            Cell::styled(check.verdict.word(), check.verdict.style()),
            Cell::from(check.subject.as_str()),
        ));
        let mut lines = |text: &str| {
            for line in wrapped_on(page, text, used) {
                let (verdict, what) = head.take().unwrap_or_default();
                table.row(vec![verdict, what, line.into()]);
            }
        };
        lines(&check.message);
        if !check.reason.is_empty() {
            lines(&format!("why: {}", check.reason));
        }
        if !check.fix.is_empty() {
            lines(&format!("do: {}", check.fix));
        }
    }
    table
}
