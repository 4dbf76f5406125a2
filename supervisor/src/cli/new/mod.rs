//! `talon new`: a plugin to begin with, which works and has tests.

mod files;
mod sdk;
mod setup;
mod write;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;
use talon_plugin::name::PluginName;
use talon_sanitize::inert;

use super::failure::Failure;
use super::line::Line;
use super::output::{Out, shown};
use crate::exit;
use setup::Step;

/// Write a new plugin that works, with its tests, and set it up.
///
/// It offers one action, `greet`. What it needs beside its own source it carries with it (Python, Go, Node) or finds in Talon's
/// SDK (Rust). At the end stands the command that calls it.
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
    /// The directory, which must not be there yet or be empty. Otherwise NAME in this directory.
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Write the files only: no virtual environment, no packages, no build.
    #[arg(long)]
    no_install: bool,
    /// Where talon-sdk's source is, for Rust. Otherwise share/talon/sdk beside the installation, or the source tree that this
    /// program was built in.
    #[arg(long, value_name = "PATH")]
    sdk: Option<PathBuf>,
}

/// The languages that there are helpers for.
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

    /// What its tests are started with, in the plugin's directory.
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
    pub(super) fn run(self, out: &mut Out) -> Result<u8, Failure> {
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
        let written = write::plugin(self.language, name, &dir, sdk.as_ref())?;
        if !out.is_json() {
            let count = written.len();
            out.line(inert!("Wrote {} files below {}.", count, shown(dir.display())));
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

    fn report(&self, name: &str, dir: &Path, written: &[&str], steps: &[Step], out: &mut Out) {
        let here = quoted(dir);
        let target = match self.language {
            Language::Rust => quoted(&built(dir).join("debug").join(name)),
            _ => here.clone(),
        };
        // `./` because a bare name would be looked for as a path all the same, but reads like a plugin's name.
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
                out.line(Line::from("  ").and(shown(command)));
            }
        }
        out.line("Test it with:");
        out.line(Line::from("  ").and(shown(&tests)));
        out.line("Try it with:");
        out.line(Line::from("  ").and(shown(&call)));
    }
}

/// Where cargo builds.
fn built(dir: &Path) -> PathBuf {
    // A relative one counts from where cargo is started, which is there.
    dir.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if !text.is_empty() && text.chars().all(plain) && !text.starts_with('-') {
        return text;
    }
    // A path that begins with '-' would be an option.
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
