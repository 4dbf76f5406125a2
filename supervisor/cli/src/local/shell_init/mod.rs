//! `talon shell-init`: what a shell evaluates to report its commands to `talon watch`.

use clap::{Args, ValueEnum};
use talon_supervisor::program_lookup;

use crate::exit;
use crate::failure::Failure;
use crate::generated::GeneratedText;
use crate::local::watch::PROGRAM;
use crate::output::Output;

/// What stands for the program's path in the scripts.
const PLACEHOLDER: &str = "@PROGRAM@";

/// Print what makes a shell report its commands to `talon watch`.
///
/// After each command the shell sends the command line, its exit code, directory and duration to the watcher of
/// the same user, which takes them if the directory is watched. Secrets are redacted first. A command that
/// begins with a space is not sent.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  eval \"$(talon shell-init bash)\"          in ~/.bashrc
  eval \"$(talon shell-init zsh)\"           in ~/.zshrc
  talon shell-init fish | source           in ~/.config/fish/config.fish")]
pub(crate) struct ShellInitArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: InitShell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum InitShell {
    Bash,
    Zsh,
    Fish,
}

impl ShellInitArgs {
    pub(crate) fn run(self, out: &mut Output) -> Result<u8, Failure> {
        let program = program_lookup::find(PROGRAM).map_err(|error| Failure::failed(error.to_string()))?;
        let program = program.to_str().and_then(quoted).ok_or_else(|| {
            Failure::failed(format!(
                "the path of {PROGRAM} has quotes or backslashes in it; install talon elsewhere"
            ))
        })?;
        out.generated(&GeneratedText::ShellInit(self.shell.script().replace(PLACEHOLDER, &program)))?;
        Ok(exit::OK)
    }
}

impl InitShell {
    fn script(self) -> &'static str {
        match self {
            Self::Bash => include_str!("bash.sh"),
            Self::Zsh => include_str!("zsh.zsh"),
            Self::Fish => include_str!("fish.fish"),
        }
    }
}

/// In single quotes, which all three shells read alike but for these two characters and control characters.
fn quoted(path: &str) -> Option<String> {
    let is_plain = !path.contains(['\'', '\\']) && !path.contains(char::is_control);
    is_plain.then(|| format!("'{path}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: SHADOW-78
    #[test]
    fn every_script_names_the_program_once_and_quoted() {
        for shell in [InitShell::Bash, InitShell::Zsh, InitShell::Fish] {
            assert_eq!(shell.script().matches(PLACEHOLDER).count(), 1, "{shell:?}");
        }
        assert_eq!(
            quoted("/usr/libexec/talon/talon-watch").as_deref(),
            Some("'/usr/libexec/talon/talon-watch'")
        );
        for path in ["/a'b", "/a\\b", "/a\nb"] {
            assert_eq!(quoted(path), None);
        }
    }
}
