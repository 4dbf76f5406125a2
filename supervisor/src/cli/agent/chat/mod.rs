//! `talon chat`: a conversation.
//!
//! | module | what | pure |
//! |---|---|---|
//! | `command` | what a line means | yes |
//! | `entry` | messages of several lines | yes |
//! | `greeting` | what is said at the start | yes |
//! | `lines`, `editor` | where messages come from | |
//! | `talk` | the conversation: messages and commands | |
//! | `commands` | what the commands do | |

mod command;
mod commands;
mod editor;
mod entry;
mod greeting;
mod lines;
mod seen;
mod talk;

use std::io::stdin;

use clap::Args;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};

use super::super::Global;
use super::super::failure::Failure;
use super::super::output::Out;
use super::ask::Wishes;
use super::reach::Reach;
use crate::exit;
use lines::Lines;
use talk::Talk;

/// Talk with the agent.
///
/// What you write is answered as it comes, with what is done on the way. A call that needs an approval is shown exactly as it
/// will run, and asked about. Lines that begin with a slash are commands: /help has them all. A line that ends in a backslash
/// goes on in the next one. Ctrl-C cancels what is going on, Ctrl-D leaves; the session stays. Without a terminal the lines of stdin
/// are the messages, one after the other.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon chat
  talon chat --session 01K0                    # go on, also with a turn that was interrupted
  talon chat --model haiku --tools 'git.*'
  printf 'Hello\\nAnd in French?\\n' | talon chat")]
pub(in crate::cli) struct ChatArgs {
    /// Go on with this session; otherwise a new one begins.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    #[command(flatten)]
    wishes: Wishes,
}

impl ChatArgs {
    pub(in crate::cli) async fn run(self, global: &Global, out: &mut Out) -> Result<u8, Failure> {
        if out.is_json() {
            return Err(Failure::usage(
                "a chat is for people: programs use `talon ask --session ID --output json`",
            ));
        }
        let reach = Reach::connect(global).await?;
        let told =
            told_to_end().map_err(|error| Failure::failed(format!("cannot watch for signals: {error}")))?;
        let before = tcgetattr(stdin()).ok();
        let lines =
            Lines::begin().map_err(|error| Failure::failed(format!("cannot use the terminal: {error}")))?;
        let typed = lines.is_typed;
        let code = {
            let mut talk = Talk::new(&reach, lines, self.wishes, out);
            tokio::select! {
                code = talk.run(self.session) => Some(code),
                () = told => None,
            }
        };
        match code {
            Some(code) => code,
            None => {
                if typed {
                    restore(before, out);
                }
                Ok(exit::OK)
            }
        }
    }
}

/// A terminal on which somebody was typing is given back as it was.
fn restore(before: Option<Termios>, out: &mut Out) {
    if let Some(before) = before {
        // It may be gone, which is why we were told.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
    }
    out.no_more_pastes();
}

/// Resolves when this process is to end, but for Ctrl-C, which is a turn's.
fn told_to_end() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}
