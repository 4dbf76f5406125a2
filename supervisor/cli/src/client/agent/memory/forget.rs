//! `talon memory forget`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::json;
use talon_proto::agent::ForgetMemoriesRequest;
use talon_proto::agent::forget_memories_request::Kind;
use talon_sanitize::{Sanitized, sanitized};

use crate::arguments::timeout;
use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::{count, single_line};
use crate::confirm;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;

/// Delete memories: one by its id, all with a tag, or all that were not used for a long time.
#[derive(Debug, Args)]
#[command(
    visible_alias = "rm",
    after_help = "Examples:
  talon memory forget 01K0
  talon memory forget --tag workflow
  talon memory forget --unused-for 90d --yes"
)]
pub(crate) struct ForgetArgs {
    #[command(flatten)]
    selector: MemorySelector,
    /// Do not ask for confirmation. Without a terminal there is no confirmation anyway.
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct MemorySelector {
    /// The memory with this id.
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// All memories with this tag.
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// All memories that were not recorded again for this long, such as 90d.
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    unused_for: Option<Duration>,
}

impl MemorySelector {
    fn describe(self, now: SystemTime) -> (Option<Kind>, Sanitized) {
        if let Some(id) = self.id {
            let words = sanitized!("memory {}", single_line(&id));
            return (Some(Kind::Id(id)), words);
        }
        if let Some(tag) = self.tag {
            let words = sanitized!("all memories with the tag {}", single_line(&tag));
            return (Some(Kind::Tag(tag)), words);
        }
        // clap requires one of the three.
        let before = now.checked_sub(self.unused_for.unwrap_or_default()).unwrap_or(UNIX_EPOCH);
        let unix_ms = before.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let kind = Kind::NotUsedSinceUnixMs(u64::try_from(unix_ms).unwrap_or(u64::MAX));
        (Some(kind), "all memories that were not of use for so long".into())
    }
}

impl ForgetArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let is_one = self.selector.id.is_some();
        let (kind, words) = self.selector.describe(SystemTime::now());
        let reach = AgentConnection::connect(socket).await?;
        let asks = !is_one && !self.yes && confirm::is_interactive();
        if asks && !confirm::is_confirmed(sanitized!("Forget {} for good?", words), out)? {
            out.err_line("nothing was forgotten");
            return Ok(exit::OK);
        }
        let request = ForgetMemoriesRequest { kind };
        let forgotten =
            reach.send_once(async move |mut agent| agent.forget_memories(request).await).await?.forgotten;
        if out.is_json() {
            out.json(&json!({ "forgotten": forgotten }));
        } else if forgotten == 0 {
            out.line("there was nothing like that");
        } else {
            out.line(sanitized!("forgot {}", single_line(&count(forgotten))));
        }
        // An id that does not exist is a mistake.
        Ok(if is_one && forgotten == 0 { exit::REFUSED } else { exit::OK })
    }
}
