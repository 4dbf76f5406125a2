//! `talon completions`: completion scripts for shells.

use clap::Args;
use clap_complete::Shell;

use super::failure::Failure;
use super::generated::GeneratedText;
use super::output::Output;
use crate::exit;

/// Print the completion script of a shell.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon completions bash > /etc/bash_completion.d/talon
  talon completions zsh > ~/.zfunc/_talon
  talon completions fish > ~/.config/fish/completions/talon.fish")]
pub(super) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

impl CompletionsArgs {
    pub(super) fn run(self, out: &mut Output) -> Result<u8, Failure> {
        out.generated(&GeneratedText::Completions(self.shell))?;
        Ok(exit::OK)
    }
}
