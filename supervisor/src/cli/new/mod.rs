//! `talon new`: creates a working plugin with tests.

mod files;
mod sdk;
mod setup;
mod write;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;
use talon_plugin_config::name::PluginName;
use talon_sanitize::inert;

use super::failure::Failure;
use super::line::Line;
use super::output::{Output, sanitized_line};
use crate::exit;
use setup::Step;

/// Create a new, working plugin with tests, and set it up.
///
/// It offers one action, `greet`. The helper library is copied into the plugin (Python, Go, Node) or comes from Talon's
/// SDK (Rust). The last line of the output is the command that calls the plugin.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon new python my-tool
  talon new go my-tool ./plugins/my-tool
  talon new node my-tool --no-install
  talon new rust my-tool --sdk ../talon/sdk")]
pub(super) struct NewArgs {
    /// The language.
    #[arg(value_enum, value_name = "LANGUAGE")]
    language: Language,
    /// The plugin's name: 1 to 64 characters of a-z, 0-9 and '-'.
    #[arg(value_name = "NAME")]
    name: String,
    /// The directory, which must be empty or not exist. Otherwise NAME in the current directory.
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Write the files only: no virtual environment, no packages, no build.
    #[arg(long)]
    no_install: bool,
    /// The path of talon-sdk's source, for Rust. Otherwise share/talon/sdk of the installation, or the source tree that
    /// this program was built in.
    #[arg(long, value_name = "PATH")]
    sdk: Option<PathBuf>,
}

/// The supported languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    /// With talon-sdk.
    Rust,
    /// With a virtual environment: grpcio.
    Python,
    /// On top of HashiCorp's go-plugin, as Debian packages it.
    Go,
    /// With @grpc/grpc-js from npm.
    Node,
}

impl Language {
    const fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::Go => "go",
            Self::Node => "node",
        }
    }

    /// The command that runs its tests in the plugin's directory.
    const fn tests(self) -> &'static str {
        match self {
            Self::Rust => "cargo test",
            Self::Python => "venv/bin/python -m unittest",
            Self::Go => "./go.sh test .",
            Self::Node => "npm test",
        }
    }
}

impl NewArgs {
    pub(super) fn run(self, out: &mut Output) -> Result<u8, Failure> {
        let name = PluginName::new(&self.name).map_err(|error| Failure::usage(error.to_string()))?;
        let name = name.as_str();
        if self.sdk.is_some() && self.language != Language::Rust {
            return Err(Failure::usage(
                "--sdk is for Rust: the helpers of the other languages are written along",
            ));
        }
        let sdk = match self.language {
            Language::Rust => {
                sdk::check_crate_name(name)?;
                Some(sdk::find(self.sdk.as_deref())?)
            }
            _ => None,
        };
        let dir = self.dir.clone().unwrap_or_else(|| PathBuf::from(name));
        let written = write::write_plugin(self.language, name, &dir, sdk.as_ref())?;
        if !out.is_json() {
            let count = written.len();
            out.line(inert!("Wrote {} files below {}.", count, sanitized_line(dir.display())));
        }
        let steps = setup::steps(self.language, name);
        if !self.no_install {
            for step in &steps {
                step.run(&dir, out)?;
            }
        }
        self.report(name, &dir, &written, &steps, out);
        Ok(exit::OK)
    }

    fn report(&self, name: &str, dir: &Path, written: &[&str], steps: &[Step], out: &mut Output) {
        let here = quoted(dir);
        let target = match self.language {
            Language::Rust => quoted(&built(dir).join("debug").join(name)),
            _ => here.clone(),
        };
        // With `./` the argument reads as a path and not as a plugin's name.
        let target = if target.contains('/') { target } else { format!("./{target}") };
        let call = format!("talon exec {target} greet name=World");
        let tests = format!("cd {here} && {}", self.language.tests());
        let setup: Vec<String> = steps.iter().map(|step| step.by_hand(dir)).collect();
        if out.is_json() {
            out.json(&json!({
                "name": name,
                "language": self.language.name(),
                "directory": dir.display().to_string(),
                "files": written,
                "set_up": !self.no_install,
                "setup": setup,
                "try": call,
                "test": tests,
            }));
            return;
        }
        if self.no_install && !setup.is_empty() {
            out.line("Set it up with:");
            for command in &setup {
                out.line(Line::from("  ").and(sanitized_line(command)));
            }
        }
        out.line("Test it with:");
        out.line(Line::from("  ").and(sanitized_line(&tests)));
        out.line("Try it with:");
        out.line(Line::from("  ").and(sanitized_line(&call)));
    }
}

/// cargo's target directory.
fn built(dir: &Path) -> PathBuf {
    // A relative path is relative to the plugin's directory, where cargo runs.
    dir.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if !text.is_empty() && text.chars().all(plain) && !text.starts_with('-') {
        return text;
    }
    // A leading '-' would be read as an option.
    let text = if text.starts_with('-') { format!("./{text}") } else { text };
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_for_a_shell() {
        for (path, word) in [
            ("/tmp/a-b_c.d", "/tmp/a-b_c.d"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("-rf", "'./-rf'"),
            ("$(x)", "'$(x)'"),
        ] {
            assert_eq!(quoted(Path::new(path)), word);
        }
    }
}
