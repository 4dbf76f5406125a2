//! `talon new`: creates a working plugin with tests.

mod files;
mod language;
mod role;
mod sdk;
mod setup;
mod shell;
mod template;
mod write;

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use talon_plugin_config::name::PluginName;
use talon_sanitize::sanitized;

use self::language::Language;
use self::role::NewRole;
use self::setup::Step;
use self::shell::quoted;
use crate::exit;
use crate::failure::Failure;
use crate::line::{Line, sanitized_line};
use crate::output::Output;

/// Create a new, working plugin with tests, and set it up; or a Lua script.
///
/// It offers one action: `greet`, or with --role one that plays a role of extensions. The helper library is copied into the plugin (Python, Go, Node) or comes
/// from Talon's SDK (Rust). The last line of the output is the command that calls the plugin.
///
/// With `lua` it is a script for `plugins.lua` (docs/lua.md), with its tests, and definitions for editors.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon new python my-tool
  talon new go my-tool ./plugins/my-tool
  talon new node my-tool --no-install
  talon new rust my-tool --sdk ../talon/sdk
  talon new python my-sink --role notification_sink
  talon new lua urgent ./scripts")]
pub(crate) struct NewArgs {
    /// The language.
    #[arg(value_enum, value_name = "LANGUAGE")]
    language: Language,
    /// The plugin's name: 1 to 64 characters of a-z, 0-9 and '-'.
    #[arg(value_name = "NAME")]
    name: String,
    /// The directory, which must be empty or not exist. Otherwise NAME in the current directory.
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The role that its action plays (docs/extensions). Without it, the action is a tool.
    #[arg(long, value_enum, value_name = "ROLE")]
    role: Option<NewRole>,
    /// Write the files only: no virtual environment, no packages, no build.
    #[arg(long)]
    no_install: bool,
    /// The path of talon-sdk's source, for Rust. Otherwise share/talon/sdk of the installation, or the source
    /// tree that this program was built in.
    #[arg(long, value_name = "PATH")]
    sdk: Option<PathBuf>,
}

impl NewArgs {
    pub(crate) fn run(self, out: &mut Output) -> Result<u8, Failure> {
        let name = PluginName::new(&self.name).map_err(|error| Failure::usage(error.to_string()))?;
        let name = name.as_str();
        if self.sdk.is_some() && self.language != Language::Rust {
            return Err(Failure::usage(
                "--sdk is for Rust: the helpers of the other languages are written along",
            ));
        }
        if self.role.is_some() && self.language == Language::Lua {
            return Err(Failure::usage(
                "--role is for plugins: a script has the roles of the functions that it defines (docs/lua.md)",
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
        let written = write::write_plugin(self.language, self.role, name, &dir, sdk.as_ref())?;
        if !out.is_json() {
            let count = written.len();
            out.line(sanitized!("Wrote {} files below {}.", count, sanitized_line(dir.display())));
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

    fn report(&self, name: &str, dir: &Path, written: &[String], steps: &[Step], out: &mut Output) {
        let here = quoted(dir);
        let target = match self.language {
            Language::Rust => quoted(&built(dir).join("debug").join(name)),
            _ => here.clone(),
        };
        // With `./` the argument reads as a path and not as a plugin's name.
        let target = if target.contains('/') { target } else { format!("./{target}") };
        let words = self.role.map_or_else(|| "greet name=World".to_owned(), NewRole::call);
        let call = match self.language {
            Language::Lua => {
                let script = quoted(&dir.join(format!("{name}.lua")));
                format!("talon lua run {script} pre_hook --message 'This is urgent.'")
            }
            _ => format!("talon exec {target} {words}"),
        };
        let entry = match self.language {
            Language::Lua => Some(format!("lua: {{ scripts_dir: {} }}", json!(absolute(dir)))),
            _ => self.role.map(|role| role.entry(name)),
        };
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
                "role": self.role.map(NewRole::as_str),
                "section": self.role.map(NewRole::section),
                "entry": entry,
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
        if let Some(entry) = &entry {
            let (what, section) = match (self.language, self.role) {
                (Language::Lua, _) | (_, None) => ("Let it look at messages with:", "plugins"),
                (_, Some(role)) => ("Let it play its role with:", role.section()),
            };
            out.line(what);
            out.line(sanitized_line(format!("  {section}:")));
            out.line(Line::from("    ").and(sanitized_line(entry)));
        }
        out.line("Test it with:");
        out.line(Line::from("  ").and(sanitized_line(&tests)));
        out.line("Try it with:");
        out.line(Line::from("  ").and(sanitized_line(&call)));
    }
}

/// The directory for a configuration, which lies elsewhere.
fn absolute(dir: &Path) -> String {
    std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned()).display().to_string()
}

/// cargo's target directory.
fn built(dir: &Path) -> PathBuf {
    // A relative path is relative to the plugin's directory, where cargo runs.
    dir.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}
