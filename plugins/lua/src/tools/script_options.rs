//! What scripts may use, on the command line.

use std::path::Path;

use talon_lua_engine::{Library, Limits};

use super::files::{ENDING, name};
use crate::settings::Settings;

/// The limits and libraries of scripts: as the settings of the plugin say, and without any those of all scripts by default.
#[derive(Debug, clap::Args)]
pub(super) struct ScriptOptions {
    /// A library that the script has beside string, table, math and os.time; in place of those of the settings.
    #[arg(long = "library", value_name = "NAME", value_parser = library)]
    names: Vec<Library>,
    /// The settings of the plugin, as one JSON object.
    #[arg(long, value_name = "JSON", value_parser = settings)]
    settings: Option<Settings>,
}

fn library(word: &str) -> Result<Library, String> {
    let known = Library::ALL.map(Library::as_str);
    Library::ALL
        .into_iter()
        .find(|library| library.as_str() == word)
        .ok_or_else(|| format!("there are: {}", known.join(", ")))
}

fn settings(json: &str) -> Result<Settings, String> {
    let settings: Settings = serde_json::from_str(json).map_err(|error| error.to_string())?;
    settings.check().map(|()| settings)
}

impl ScriptOptions {
    /// The limits of a script.
    pub(super) fn limits(&self, path: &Path) -> Limits {
        self.settings.as_ref().map_or_else(Limits::default, |settings| settings.limits_of(&script(path)))
    }

    /// The libraries of a script, beside those of every script.
    pub(super) fn libraries(&self, path: &Path) -> Vec<Library> {
        match &self.settings {
            Some(settings) if self.names.is_empty() => settings.libraries_of(&script(path)),
            _ => self.names.clone(),
        }
    }
}

/// The name of the script in this file.
fn script(path: &Path) -> String {
    let file = name(path);
    file.strip_suffix(ENDING).unwrap_or(&file).to_owned()
}
