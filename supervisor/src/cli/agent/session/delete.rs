//! `talon session delete`.

use clap::Args;
use serde_json::json;
use talon_proto::agent::DeleteSessionRequest;
use talon_sanitize::inert;

use super::super::super::failure::Failure;
use super::super::super::output::Out;
use super::super::super::{Global, ask};
use super::super::reach::Reach;
use super::super::words::{counted, one};
use crate::exit;

/// Delete sessions with all their messages. A running turn is cancelled.
#[derive(Debug, Args)]
#[command(
    visible_alias = "rm",
    after_help = "Examples:
  talon session delete 01K0
  talon session delete 01K0 01K1 --yes"
)]
pub(in crate::cli) struct DeleteArgs {
    /// The sessions' ids.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Do not ask for confirmation. Without a terminal there is no confirmation anyway.
    #[arg(long)]
    yes: bool,
}

impl DeleteArgs {
    pub(super) async fn run(self, global: &Global, out: &mut Out) -> Result<u8, Failure> {
        let reach = Reach::connect(global).await?;
        let what = counted(self.ids.len() as u64, "session");
        if !self.yes && ask::can_be_asked() && !ask::is_confirmed(inert!("Delete {} for good?", what), out)? {
            out.say("nothing was deleted");
            return Ok(exit::OK);
        }
        for id in &self.ids {
            let request = DeleteSessionRequest { session_id: id.clone() };
            reach.once(async move |mut agent| agent.delete_session(request).await).await?;
            if !out.is_json() {
                out.line(inert!("deleted {}", one(id)));
            }
        }
        if out.is_json() {
            out.json(&json!({ "deleted": self.ids }));
        }
        Ok(exit::OK)
    }
}
