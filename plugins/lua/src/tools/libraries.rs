//! The libraries of scripts, on the command line.

use talon_lua_engine::Library;

/// The libraries beside those of every script, as `plugins.lua.libraries` names them.
#[derive(Debug, clap::Args)]
pub(super) struct Libraries {
    /// A library that the script has beside string, table, math and os.time.
    #[arg(long = "library", value_name = "NAME", value_parser = library)]
    pub(super) names: Vec<Library>,
}

fn library(word: &str) -> Result<Library, String> {
    let known = Library::ALL.map(Library::as_str);
    Library::ALL
        .into_iter()
        .find(|library| library.as_str() == word)
        .ok_or_else(|| format!("there are: {}", known.join(", ")))
}
