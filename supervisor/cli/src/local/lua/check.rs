//! `talon lua check`.

use std::path::PathBuf;

use clap::Args;

use super::library::Libraries;
use super::tool::Tool;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::Output;

/// Compile scripts, run their top level, and name the functions that are called.
///
/// Types are not looked at: luau-lsp and luau-analyze check them against talon.d.luau, which `talon new lua` writes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon lua check
  talon lua check ./scripts
  talon lua check filter.lua --output json")]
pub(crate) struct CheckArgs {
    /// Scripts, and directories of scripts. Without any, `plugins.lua.scripts_dir` of the configuration.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    libraries: Libraries,
}

impl CheckArgs {
    pub(super) fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let mut tool = Tool::new("check")?;
        self.libraries.add_to(&mut tool);
        if out.is_json() {
            tool.option("format", "json");
        }
        tool.scripts(&self.paths, global)?;
        tool.run(out)
    }
}
