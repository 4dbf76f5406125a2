//! `talon completions`: completion scripts for shells.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit;
use crate::failure::Failure;
use crate::generated::GeneratedText;
use crate::output::Output;

/// Print the completion script of a shell.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon completions bash > /etc/bash_completion.d/talon
  talon completions zsh > ~/.zfunc/_talon
  talon completions fish > ~/.config/fish/completions/talon.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

impl CompletionsArgs {
    pub(crate) fn run(self, command: &Command, out: &mut Output) -> Result<u8, Failure> {
        out.generated(&GeneratedText::Completions(command, self.shell))?;
        Ok(exit::OK)
    }
}
