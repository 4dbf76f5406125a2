//! `talon mcp import`: converts an editor's list of MCP servers to plugins.
//!
//! | module | contents |
//! |---|---|
//! | `jsonc` | reads the file: JSON as editors write it, with comments |
//! | `server` | parses one server: what is supported, and what is not imported |
//! | `launcher` | `npx` and `uvx`: what they would download, and how to run it once it is installed |
//! | `paths` | which of the host's files it needs |
//! | `install` | installs packages once |
//! | `values` | converts strings to configuration syntax and replaces secrets |
//! | `entry`, `error` | the plugin's entry, as YAML; why there is none |
//! | `write` | adds entries to a configuration file without changing the rest |

mod download;
mod entry;
mod error;
mod install;
mod install_error;
mod installer;
mod jsonc;
mod launcher;
mod node_engine;
mod paths;
mod program_path;
mod python;
mod server;
mod values;
mod write;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};
use talon_plugin_config::name::PluginName;
use talon_sanitize::{Raw, sanitized};

use self::entry::Entry;
use self::error::ImportError;
use self::launcher::ImportOptions;
use self::write::MergeOutcome;
use crate::exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::table::Table;

/// The most servers in one file. Editors list a dozen; a file with thousands is something else.
const MAX_SERVERS: usize = 256;

/// Import the MCP servers of an editor: each becomes a plugin, in a jail and behind the guard.
///
/// Reads the mcpServers of Claude Desktop, Claude Code, Cursor, Windsurf and others, and the servers of VS
/// Code. Reports the result for each server, and prints the entries for plugins.tools.plugins. Secrets are
/// not copied but replaced by variables. Nothing is started, and no existing entry is changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon mcp import ~/.cursor/mcp.json
  talon mcp import ~/.cursor/mcp.json --write ~/.config/talon/talon.yaml
  talon mcp import claude_desktop_config.json --install ~/.local/share/talon/mcp --write talon.yaml")]
pub(crate) struct ImportArgs {
    /// The editor's file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Add the entries to this configuration file; creates it if necessary. Existing entries stay unchanged.
    #[arg(long, value_name = "CONFIG")]
    write: Option<PathBuf>,
    /// For servers that npx and uvx download at each start, which is impossible in a jail without network:
    /// install them below this directory now, without running their installation scripts.
    #[arg(long, value_name = "DIR")]
    install: Option<PathBuf>,
    /// Let each server also write the files and directories that its arguments and variables name, instead of only
    /// reading them.
    #[arg(long)]
    grant_write: bool,
}

/// The result for one server.
struct ImportedServer {
    server: String,
    plugin: Option<String>,
    /// The entry, or why there is none.
    result: Result<Entry, ImportError>,
    notes: Vec<String>,
}

impl ImportArgs {
    pub(super) fn run(self, out: &mut Output) -> Result<u8, Failure> {
        let file = self.file.display().to_string();
        let root = jsonc::read(&self.file)?;
        let servers = servers(&root).ok_or_else(|| {
            Failure::usage(format!(
                "{file} has no \"mcpServers\" and no \"servers\" with a server in it: name the file in which the editor lists \
                 its MCP servers"
            ))
        })?;
        if servers.len() > MAX_SERVERS {
            let text = format!(
                "{file} lists {} servers, and at most {MAX_SERVERS} are taken: split it",
                servers.len()
            );
            return Err(Failure::usage(text));
        }
        let install = self.install.as_deref().map(install::directory).transpose()?;
        let options = ImportOptions { install: install.as_deref(), grant_write: self.grant_write };
        let mut names = BTreeSet::new();
        let taken: Vec<ImportedServer> = servers
            .iter()
            .map(|(name, about)| import_server(name, about, &mut names, options, out))
            .collect();
        let entries: Vec<&Entry> = taken.iter().filter_map(|one| one.result.as_ref().ok()).collect();
        let outcome = write::merge(&entries, self.write.as_deref())?;
        match out.is_json() {
            true => out.json(&report_json(&taken, &outcome, self.write.as_deref())),
            false => report(&taken, &outcome, self.write.as_deref(), out),
        }
        Ok(exit::OK)
    }
}

/// The servers, under any of the keys that editors use.
fn servers(root: &Value) -> Option<&Map<String, Value>> {
    let places = ["/mcpServers", "/servers", "/mcp/servers", "/mcp/mcpServers"];
    places.iter().filter_map(|place| root.pointer(place)?.as_object()).find(|servers| !servers.is_empty())
}

fn import_server(
    name: &str,
    about: &Value,
    names: &mut BTreeSet<String>,
    options: ImportOptions<'_>,
    out: &mut Output,
) -> ImportedServer {
    let mut notes = Vec::new();
    let server = name.to_owned();
    let Some(plugin) = plugin_name(name, names) else {
        return ImportedServer { server, plugin: None, result: Err(ImportError::Name), notes };
    };
    if plugin != name {
        notes.push(format!("is called {plugin} as a plugin"));
    }
    let result = server::read(about, &mut notes)
        .map_err(ImportError::from)
        .and_then(|server| launcher::prepare(&plugin, server, options, &mut notes, out));
    let plugin = result.is_ok().then_some(plugin);
    names.extend(plugin.clone());
    ImportedServer { server, plugin, result, notes }
}

/// The server's name as a plugin name: in lower case, with `-` for invalid characters, and a number if the
/// name is taken.
fn plugin_name(name: &str, taken: &BTreeSet<String>) -> Option<String> {
    /// Leaves room for a number, and for tool names that start with it.
    const MAX_LEN: usize = 48;
    let good = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let mut plain: String = name.chars().map(good).collect::<String>();
    while plain.contains("--") {
        plain = plain.replace("--", "-");
    }
    let plain: String = plain.trim_matches('-').chars().take(MAX_LEN).collect();
    let candidates =
        std::iter::once(plain.clone()).chain((2..=MAX_SERVERS + 2).map(|n| format!("{plain}-{n}")));
    let mut free = candidates.filter(|name| PluginName::new(name).is_ok() && !taken.contains(name));
    free.next().filter(|_| !plain.is_empty())
}

impl ImportedServer {
    /// What became of it, in words.
    fn result_text(&self, outcome: &MergeOutcome) -> &'static str {
        match (&self.result, &self.plugin) {
            (Ok(_), Some(plugin)) if outcome.present.contains(plugin) => "there already",
            (Ok(_), _) => "taken over",
            (Err(_), _) => "left out",
        }
    }
}

fn report_json(taken: &[ImportedServer], outcome: &MergeOutcome, config: Option<&Path>) -> Value {
    let server = |one: &ImportedServer| {
        json!({
            "server": one.server,
            "plugin": one.plugin,
            "result": one.result_text(outcome).replace(' ', "_"),
            "runs": one.result.as_ref().ok().map(Entry::summary),
            "reason": one.result.as_ref().err().map(ToString::to_string),
            "notes": one.notes,
        })
    };
    json!({
        "servers": taken.iter().map(server).collect::<Value>(),
        "config": config.map(|path| path.display().to_string()),
        "written": outcome.written,
        "yaml": outcome.block,
        "variables": outcome.variables,
        "problems": outcome.problems,
    })
}

fn report(taken: &[ImportedServer], outcome: &MergeOutcome, config: Option<&Path>, out: &mut Output) {
    let mut table = Table::new(&["SERVER", "PLUGIN", "RESULT", "RUNS"]);
    for one in taken {
        let runs = one.result.as_ref().map(Entry::summary).unwrap_or_default();
        table.row(vec![
            one.server.as_str().into(),
            one.plugin.clone().unwrap_or_default().into(),
            one.result_text(outcome).into(),
            runs.into(),
        ]);
    }
    out.table(&table);
    let mut notes = Table::new(&[]);
    for one in taken {
        let why = one.result.as_ref().err().map(ToString::to_string);
        for note in why.iter().chain(&one.notes) {
            notes.row(vec![format!("{}:", one.server).into(), note.as_str().into()]);
        }
    }
    for problem in &outcome.problems {
        notes.row(vec!["the whole:".into(), problem.as_str().into()]);
    }
    if !outcome.variables.is_empty() {
        let text = format!(
            "secrets are not copied: set {} in the environment of `talon serve`, or of `talon mcp --own`",
            outcome.variables.join(", ")
        );
        notes.row(vec!["variables:".into(), text.into()]);
    }
    if !notes.is_empty() {
        out.line("");
        out.table(&notes);
    }
    out.line("");
    let config = config.map(|path| path.display().to_string()).unwrap_or_default();
    if outcome.written {
        out.line(sanitized!(
            "written to {}; `talon config check` holds all of it against this machine",
            Raw::from(&config).line()
        ));
    } else if outcome.block.is_empty() {
        out.line("nothing to add");
    } else {
        if outcome.has_plugins {
            out.line(sanitized!(
                "# {} already has a key `plugins:`, which stays as it is. Put these below its plugins.tools.plugins:",
                Raw::from(&config).line()
            ));
        }
        out.text(&Raw::from(&outcome.block).text());
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
