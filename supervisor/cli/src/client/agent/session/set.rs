//! `talon session set`.

use clap::Args;
use talon_proto::agent::{GetSessionRequest, Sampling, ToolList, UpdateSessionRequest};

use super::show::print_facts;
use crate::client::agent::connection::AgentConnection;
use crate::client::agent::json::session;
use crate::client::agent::session_overrides::SessionOverrides;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;

/// Set what a session wants otherwise than the configuration.
///
/// What is not named stays as it is. `--metadata KEY=` removes an entry.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon session set 01K0 --model haiku --temperature 0.2
  talon session set 01K0 --verbosity low --metadata ticket=OPS-7
  talon session set 01K0 --reset")]
pub(crate) struct SetArgs {
    /// The session's id.
    #[arg(value_name = "ID")]
    id: String,
    /// First take back model, thinking, sampling, verbosity, --verbose, tools and --local-only; metadata stays.
    #[arg(long)]
    reset: bool,
    #[command(flatten)]
    overrides: SessionOverrides,
}

impl SetArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        if self.overrides.is_empty() && !self.reset {
            return Err(Failure::usage("say what to set, such as --model NAME or --reset"));
        }
        let reach = AgentConnection::connect(socket).await?;
        let before = match self.reset {
            true => Some(Sampling::default()),
            false => {
                let request = GetSessionRequest {
                    session_id: self.id.clone(),
                    page_size: 1,
                    ..GetSessionRequest::default()
                };
                let answer = reach
                    .query(|mut agent| {
                        let request = request.clone();
                        async move { agent.get_session(request).await }
                    })
                    .await?;
                answer.session.and_then(|session| session.sampling)
            }
        };
        let change = self.overrides.change(&self.id, before);
        let change = if self.reset { with_defaults(change) } else { change };
        let changed = reach.send_once(async move |mut agent| agent.update_session(change).await).await?;
        if out.is_json() {
            out.json(&session(&changed));
        } else {
            print_facts(&changed, out);
        }
        Ok(exit::OK)
    }
}

/// The change in which everything that it does not name is as configured.
fn with_defaults(change: UpdateSessionRequest) -> UpdateSessionRequest {
    UpdateSessionRequest {
        model: change.model.or_else(|| Some(String::new())),
        thinking: change.thinking.or_else(|| Some(String::new())),
        tools: change.tools.or_else(|| Some(ToolList::default())),
        local_only: change.local_only.or(Some(false)),
        sampling: change.sampling.or_else(|| Some(Sampling::default())),
        verbosity: change.verbosity.or_else(|| Some(String::new())),
        verbose: change.verbose.or(Some(false)),
        ..change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: CLI-82
    #[test]
    fn a_reset_takes_everything_back_but_what_is_named() {
        let named =
            UpdateSessionRequest { model: Some("haiku".to_owned()), ..UpdateSessionRequest::default() };
        let all = with_defaults(named);
        assert_eq!((all.model.as_deref(), all.thinking.as_deref()), (Some("haiku"), Some("")));
        assert_eq!((all.local_only, all.sampling), (Some(false), Some(Sampling::default())));
        assert_eq!(all.verbose, Some(false));
        assert!(all.metadata.is_empty());
    }
}
