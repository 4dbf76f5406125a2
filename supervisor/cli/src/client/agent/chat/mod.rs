//! `talon chat`: a conversation.
//!
//! | module | contents | pure |
//! |---|---|---|
//! | `command` | parses a line into a command | yes |
//! | `context` | what the model saw with the last question | |
//! | `continuation` | messages of several lines | yes |
//! | `greeting` | the first lines of a chat | yes |
//! | `message_reader`, `editor` | where messages come from | |
//! | `conversation` | the conversation: messages and commands | |
//! | `execute`, `decide`, `help` | executes the commands | |
//! | `plan_command`, `plan` | `/plan`: parses it; executes it | |
//! | `setting_command`, `session_settings` | `/temperature` and other settings of the session, likewise | |
//! | `ghosts` | ghosts, between two turns | |
//! | `session_picker` | which session a chat continues | |

mod command;
mod context;
mod continuation;
mod conversation;
mod decide;
mod editor;
mod execute;
mod ghosts;
mod greeting;
mod help;
mod message_reader;
mod plan;
mod plan_command;
mod session_picker;
mod session_settings;
mod setting_command;
mod shown_approvals;

use std::io::stdin;

use clap::Args;
use conversation::{Conversation, SessionStart};
use message_reader::MessageReader;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use super::connection::AgentConnection;
use super::session_overrides::SessionOverrides;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;
use crate::signals::termination_signal_but_interrupt;
use crate::terminal_style::has_screen_reader;
use crate::user_supervisor::start_if_absent;

/// Talk with the agent.
///
/// Answers are streamed, along with the tool calls on the way. A call that needs an approval is shown exactly
/// as it will run, and you are asked to decide. Lines that start with a slash are commands; /help lists them.
/// A line that ends in a backslash continues on the next line. Ctrl-C cancels the current turn, Ctrl-D leaves
/// the chat; the session stays. `@FILE` in a typed message sends the file with it. Without a terminal each line of stdin is a message.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon chat
  talon chat --continue                        # the session that was used last
  talon chat --pick                            # one from a list
  talon chat --session 01K0                    # go on, also with a turn that was interrupted
  talon chat --model haiku --tools 'git.*'
  printf 'Hello\\nAnd in French?\\n' | talon chat")]
pub(crate) struct ChatArgs {
    /// Continue this session; otherwise a new one starts.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Continue the session that was used last.
    #[arg(short, long = "continue", conflicts_with = "session")]
    continue_latest: bool,
    /// Choose the session to continue from a list.
    #[arg(short, long, conflicts_with_all = ["session", "continue_latest"])]
    pick: bool,
    /// Start a supervisor for you if none runs, as is done without this option where stdin is a terminal.
    #[arg(long)]
    start: bool,
    #[command(flatten)]
    overrides: SessionOverrides,
}

impl ChatArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        if out.is_json() {
            return Err(Failure::usage(
                "a chat is for people: programs use `talon ask --session ID --output json`",
            ));
        }
        start_if_absent(socket, self.start, out).await?;
        let reach = AgentConnection::connect(socket).await?;
        let start = match (self.session, self.continue_latest, self.pick) {
            (Some(id), ..) => SessionStart::Resumed(id),
            (None, true, _) => SessionStart::Resumed(session_picker::latest(&reach).await?),
            (None, false, true) => SessionStart::Picked,
            (None, false, false) => SessionStart::New,
        };
        // Ctrl-C cancels a turn.
        let terminated = termination_signal_but_interrupt()
            .map_err(|error| Failure::failed(format!("cannot watch for signals: {error}")))?;
        let before = tcgetattr(stdin()).ok();
        let lines = MessageReader::begin(out.has_colors() && !has_screen_reader())
            .map_err(|error| Failure::failed(format!("cannot use the terminal: {error}")))?;
        let typed = lines.is_interactive;
        let code = {
            let mut talk = Conversation::new(&reach, lines, self.overrides, out);
            tokio::select! {
                code = talk.run(start) => Some(code),
                () = terminated => None,
            }
        };
        match code {
            Some(code) => code,
            None => {
                if typed {
                    restore_terminal(before, out);
                }
                Ok(exit::OK)
            }
        }
    }
}

/// Restores the terminal's settings from before the editor.
fn restore_terminal(before: Option<Termios>, out: &mut Output) {
    if let Some(before) = before {
        // The terminal may be gone, which can be the reason for the signal.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
    }
    out.disable_bracketed_paste();
}
