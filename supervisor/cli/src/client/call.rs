//! `talon call`: one guarded call.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use talon_client::CallUpdate;
use talon_proto::host::ExecuteRequest;

use crate::answer;
use crate::arguments::{Arguments, key_value, timeout};
use crate::client::call_question;
use crate::client::call_screen::CallScreen;
use crate::client::connection::Client;
use crate::confirm::is_interactive;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;

/// How many questions of one call are asked before it is given up: far more than a person answers.
const MAX_QUESTIONS: usize = 20;

/// Call one action of a plugin through the guard stack.
///
/// Prints the answer as a model gets it: between [plugin_output] and [/plugin_output]. The exit code tells
/// failures apart: 1 the tool reported an error, 3 the guard refused, 4 the plugin died, timed out or is not
/// available. In a terminal, a plugin may ask for something before it answers. What the action puts out while
/// it runs goes to stderr, with --output json as one JSON object a line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon call hello.greet name=World
  talon call code-search.search pattern='fn main' --timeout 5s
  talon call notes.add --arg-file text=note.md
  talon call hello.greet --arguments '{\"name\": \"7\"}'
  git diff | talon call review.diff --arg-file diff=- --raw")]
pub(crate) struct CallArgs {
    /// The plugin and action; `talon plugin show PLUGIN` lists the actions.
    #[arg(value_name = "PLUGIN.ACTION")]
    target: Target,
    #[command(flatten)]
    arguments: Arguments,
    /// A value of the session context, such as session_id. A plugin gets it only if its action declares it
    /// and the operator grants it.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    context: Vec<(String, String)>,
    /// Print only the guarded content, without the envelope; an error goes to stderr.
    #[arg(long)]
    raw: bool,
    /// Wait at most this long, such as 500ms or 2m; it cannot lengthen the configured timeout.
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<Duration>,
    /// The call's id in logs and events; otherwise the supervisor generates one.
    #[arg(long, value_name = "ID")]
    call_id: Option<String>,
}

/// `PLUGIN.ACTION`; a plugin's name contains no dot.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    plugin: String,
    action: String,
}

#[derive(Debug, thiserror::Error)]
#[error("name a plugin and its action with a dot between them, as in hello.greet")]
struct TargetError;

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        match text.split_once('.') {
            Some((plugin, action)) if !plugin.is_empty() && !action.is_empty() => {
                Ok(Self { plugin: plugin.to_owned(), action: action.to_owned() })
            }
            _ => Err(TargetError),
        }
    }
}

impl CallArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let arguments = self.arguments.collect()?;
        let request = ExecuteRequest {
            plugin: self.target.plugin,
            action: self.target.action,
            args: arguments.texts,
            arguments_json: arguments.json,
            call_id: self.call_id.unwrap_or_default(),
            timeout_ms: self
                .timeout
                .map_or(0, |timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
            context: self.context.into_iter().collect(),
            for_model: false,
            within: Vec::new(),
            // A terminal shows text.
            wants_media: false,
            // A person at a terminal can answer a plugin's question.
            takes_input_requests: !out.is_json() && is_interactive(),
            input_response: None,
            ..ExecuteRequest::default()
        };
        let client = Client::connect(socket).await?;
        let mut next = request.clone();
        for _ in 0..=MAX_QUESTIONS {
            let mut screen = CallScreen::new(out);
            let mut show = |update: CallUpdate<'_>| screen.show(update);
            let response = client.reconnecting.execute_watched(next, Some(&mut show)).await;
            drop(screen);
            let response = response.map_err(|error| client.call_failure(&error))?;
            let Some(question) = &response.input_request else {
                return Ok(answer::print(&response, self.raw, out));
            };
            let reply = call_question::ask(&request.plugin, &response.content, question, out)?;
            // An id names one call.
            let call_id = String::new();
            next = ExecuteRequest { input_response: Some(reply), call_id, ..request.clone() };
        }
        Err(Failure::failed(format!(
            "the plugin asked {MAX_QUESTIONS} questions in one call: it is given up; its log may say why"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_plugin_dot_action() {
        let target: Target = "hello.greet".parse().unwrap();
        assert_eq!((target.plugin.as_str(), target.action.as_str()), ("hello", "greet"));
        for bad in ["hello", ".greet", "hello.", ""] {
            assert!(bad.parse::<Target>().is_err(), "{bad:?}");
        }
    }
}
