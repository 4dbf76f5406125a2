//! `talon config patch`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use talon_proto::host::{ConfigProblem, PatchConfigRequest, PatchConfigResponse};
use talon_sanitize::sanitized;

use super::edits::{edits_of_merge_patch, edits_of_pairs};
use crate::arguments::key_value;
use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::input::InputSource;
use crate::line::sanitized_line;
use crate::output::Output;

/// The most bytes of a patch: far more than 200 keys, the most that the supervisor takes at once, usually have.
const MAX_PATCH_BYTES: u64 = 1 << 20;

/// Change the configuration of the running supervisor.
///
/// All changes of one command are checked together, and refused together. Accepted ones hold at once and over restarts: they stand in
/// overlay.yaml in the data directory, and the configuration file stays as it is. gateway.config_keys says which keys may be changed. It
/// needs the role admin.
#[derive(Debug, Args)]
#[command(
    after_help = "A value is read as JSON, and as text if it is none: 36 is a number, debug a text, '\"36\"' a text.
A name with a dot in it is quoted, as history shows it: 'a.\"b.c\"=1'.

Examples:
  talon config patch agent.turn.iterations=36 --dry-run
  talon config patch agent.turn.iterations=36 log.level=debug
  talon config patch --unset log.level
  talon config patch --file patch.json
  talon config patch agent.turn.iterations=36 --output json | jq -r .revision

It ends with 6 if the change is refused."
)]
pub(crate) struct PatchArgs {
    /// What to change.
    #[arg(value_name = "KEY=VALUE", value_parser = key_value, required_unless_present_any = ["unset", "file"])]
    pairs: Vec<(String, String)>,
    /// A key that gives way to what the configuration file says; may be repeated.
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
    /// A JSON merge patch (RFC 7396), in which null unsets a key; `-` is stdin.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pairs", "unset"])]
    file: Option<PathBuf>,
    /// Only report what would be done.
    #[arg(long)]
    dry_run: bool,
    /// Only if the configuration is still of this revision, as the JSON of an earlier change has it.
    #[arg(long, value_name = "REVISION", default_value = "", hide_default_value = true)]
    revision: String,
}

impl PatchArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let Self { pairs, unset, file, dry_run, revision } = self;
        let edits = match file {
            None => edits_of_pairs(pairs, unset)?,
            Some(file) => {
                let source = InputSource::of(&file);
                let bytes =
                    source.read(MAX_PATCH_BYTES).map_err(|error| Failure::usage(error.to_string()))?;
                let text = String::from_utf8(bytes)
                    .map_err(|_| Failure::usage(format!("{} is not UTF-8", source.name())))?;
                edits_of_merge_patch(&text)?
            }
        };
        let mut client = Client::connect(socket).await?;
        let request = PatchConfigRequest { edits, dry_run, revision };
        let answered = client.host.patch_config(request).await;
        let response = answered.map_err(|status| client.failure(&status))?.into_inner();
        if out.is_json() {
            out.json(&as_json(&response));
        } else {
            print(&response, dry_run, out);
        }
        Ok(if response.accepted { exit::OK } else { exit::CONFIG })
    }
}

fn as_json(response: &PatchConfigResponse) -> serde_json::Value {
    let problem = |problem: &ConfigProblem| json!({ "key": problem.key, "message": problem.message });
    json!({
        "accepted": response.accepted,
        "problems": response.problems.iter().map(problem).collect::<Vec<_>>(),
        "warnings": response.warnings,
        "changed": response.changed,
        "needs_restart": response.needs_restart,
        "revision": response.revision,
        "number": response.number,
    })
}

fn print(response: &PatchConfigResponse, dry_run: bool, out: &mut Output) {
    if !response.accepted {
        out.line("it is refused, and nothing was changed:");
        for ConfigProblem { key, message } in &response.problems {
            let space = if key.is_empty() { "" } else { " " };
            out.line(sanitized!("  {}{}{}", sanitized_line(key), space, sanitized_line(message)));
        }
        return;
    }
    for warning in &response.warnings {
        out.line(sanitized!("warning: {}", sanitized_line(warning)));
    }
    let (now, later) = if dry_run {
        ("would hold at once", "would hold after the next start of talon")
    } else {
        ("holds now", "holds after the next start of talon")
    };
    for (keys, what) in [(&response.changed, now), (&response.needs_restart, later)] {
        for key in keys {
            out.line(sanitized!("{}: {}", sanitized_line(key), what));
        }
    }
    if response.changed.is_empty() && response.needs_restart.is_empty() {
        out.line("nothing differs from what holds already");
    }
}
