//! `talon doctor`: what this machine can give, and whether what is configured can work here.

mod checks;
mod jail;
pub(super) mod wrap;

use anstyle::{AnsiColor, Style};
use clap::Args;
use serde_json::json;

use self::jail::Jails;
use self::wrap::wrapped;
use super::failure::Failure;
use super::output::Out;
use super::table::{Cell, Table};
use super::{Global, serve};
use crate::exit;

/// Check this machine and the configuration: protections, directories, the supervisor.
///
/// For each protection of the jail it says what this machine can give to the user who asks, what the configuration asks for,
/// and for how many running plugins it holds. What cannot be given is followed by how to get it.
///
/// Exits with 1 if something that is asked for is missing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon doctor
  talon doctor --output json | jq '.checks[] | select(.status != \"ok\")'
  talon doctor --output json | jq -r '.machine.tier'")]
pub(super) struct DoctorArgs {}

/// How one check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Ok,
    /// Works, though not as well as it could.
    Note,
    /// Something that is asked for is missing.
    Missing,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Missing => "missing",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Ok => AnsiColor::Green.on_default(),
            Self::Note => AnsiColor::Yellow.on_default(),
            Self::Missing => AnsiColor::Red.on_default(),
        }
    }
}

struct Check {
    what: String,
    verdict: Verdict,
    says: String,
}

impl Check {
    fn new(what: impl Into<String>, verdict: Verdict, says: impl Into<String>) -> Self {
        Self { what: what.into(), verdict, says: says.into() }
    }
}

impl DoctorArgs {
    pub(super) async fn run(self, global: &Global, out: &mut Out) -> Result<u8, Failure> {
        let mut checks = Vec::new();
        let loaded = serve::load(&serve::load_options(global));
        match &loaded {
            Ok(loaded) => checks.extend(checks::of_config(loaded)),
            Err(failure) => checks.push(Check::new("config", Verdict::Missing, failure.to_string())),
        }
        let (supervisor, status) = checks::supervisor(global).await;
        checks.push(supervisor);
        // Without a configuration nobody asks for anything less than the default.
        let config = loaded.ok().map(|loaded| loaded.config);
        let jails = Jails::look(config.as_ref(), status.as_ref());
        match &jails {
            Ok(jails) => checks.extend(jails.checks()),
            Err(error) => checks.push(Check::new("jail: tier", Verdict::Missing, error.to_string())),
        }
        let jails = jails.ok();

        if out.is_json() {
            let list = checks.iter().map(
                |check| json!({ "check": check.what, "status": check.verdict.word(), "message": check.says }),
            );
            let mut value = json!({ "checks": list.collect::<serde_json::Value>() });
            if let Some(jails) = &jails {
                jails.add_to(&mut value);
            }
            out.json(&value);
        } else {
            out.table(&table(&checks));
            if let Some(jails) = &jails {
                out.line("");
                out.table(&jails.table());
                let remedies = jails.remedies();
                if !remedies.is_empty() {
                    out.line("");
                    out.table(&remedies);
                }
            }
        }
        let missing = checks.iter().any(|check| check.verdict == Verdict::Missing);
        Ok(if missing { exit::TOOL_ERROR } else { exit::OK })
    }
}

fn table(checks: &[Check]) -> Table {
    let mut table = Table::new(&["CHECK", "STATUS", ""]);
    let widest = checks.iter().map(|check| check.what.len()).max().unwrap_or_default();
    // Two columns and their gaps stand before the text; the longest status is "missing".
    let used = widest + "missing".len() + 4;
    for check in checks {
        let verdict = Cell::styled(check.verdict.word(), check.verdict.style());
        for (number, line) in wrapped(&check.says, used).into_iter().enumerate() {
            let first = number == 0;
            let what = if first { check.what.as_str() } else { "" };
            table.row(vec![what.into(), if first { verdict.clone() } else { "".into() }, line.into()]);
        }
    }
    table
}
