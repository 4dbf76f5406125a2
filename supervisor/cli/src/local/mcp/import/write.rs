//! Adds entries to a configuration file. Everything else in the file stays unchanged, including comments.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use talon_plugin_config::document::yaml::{self, Node, NodeKind};
use talon_supervisor::config::{self, LoadOptions};

use super::entry::{Entry, HEAD};
use crate::exit;
use crate::failure::Failure;

/// The largest configuration file to read; the same limit as for the supervisor.
const MAX_CONFIG_BYTES: u64 = yaml::MAX_TEXT_BYTES as u64;
/// A new file may get secrets later.
const MODE: u32 = 0o600;

/// The result of adding entries.
#[derive(Debug, Default)]
pub(super) struct MergeOutcome {
    /// The new entries, including the keys above them.
    pub(super) block: String,
    /// Whether they were written to the file.
    pub(super) written: bool,
    /// Whether the file already has a key `plugins`, so that the entries could not be added.
    pub(super) has_plugins: bool,
    /// Plugins that the file already contains.
    pub(super) present: BTreeSet<String>,
    /// Variables that have to be set.
    pub(super) variables: Vec<String>,
    /// What `talon config check` reports for the result.
    pub(super) problems: Vec<String>,
}

/// Adds the entries to the file. Without a file, or if it has a key `plugins`, only returns them.
pub(super) fn merge(entries: &[&Entry], file: Option<&Path>) -> Result<MergeOutcome, Failure> {
    let mut outcome = MergeOutcome::default();
    let before = match file {
        Some(file) => read(file)?,
        None => None,
    };
    if let (Some(file), Some(text)) = (file, &before) {
        let root = yaml::parse(text).map_err(|refusal| {
            Failure::new(
                exit::CONFIG,
                format!(
                    "{}, line {}: {}; correct it first",
                    file.display(),
                    refusal.at.line,
                    refusal.message
                ),
            )
        })?;
        let plugins = root.as_deref().and_then(|root| child(root, "plugins"));
        outcome.has_plugins = plugins.is_some();
        let named =
            plugins.and_then(|plugins| child(plugins, "tools")).and_then(|tools| child(tools, "plugins"));
        if let Some(NodeKind::Map(named)) = named.map(|node| &node.kind) {
            outcome.present = named.iter().map(|entry| entry.key.clone()).collect();
        }
    }
    let new: Vec<&&Entry> = entries.iter().filter(|entry| !outcome.present.contains(&entry.plugin)).collect();
    if new.is_empty() {
        return Ok(outcome);
    }
    outcome.block = HEAD.to_owned();
    outcome.block.extend(new.iter().map(|entry| entry.yaml()));
    outcome.variables =
        new.iter().flat_map(|entry| entry.variables.clone()).collect::<BTreeSet<_>>().into_iter().collect();
    let alone = checked(&outcome.block, &outcome.variables)?;
    outcome.problems = alone;
    let Some(file) = file.filter(|_| !outcome.has_plugins) else { return Ok(outcome) };
    let whole = match &before {
        None => outcome.block.clone(),
        Some(text) => appended(text, &outcome.block),
    };
    // The file may end the document, or end inside an open block.
    let entries = yaml::parse(&whole).ok().flatten();
    let there = entries.as_deref().and_then(|root| child(root, "plugins")).is_some();
    if !there {
        outcome.has_plugins = true;
        outcome
            .problems
            .push(format!("{} does not take a block at its end: put it in by hand", file.display()));
        return Ok(outcome);
    }
    replace(file, &whole, before.is_some()).map_err(|error| {
        Failure::failed(format!("cannot write {}: {error}; see its directory's permissions", file.display()))
    })?;
    outcome.written = true;
    Ok(outcome)
}

fn appended(text: &str, block: &str) -> String {
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{text}{gap}{block}")
}

fn child<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    match &node.kind {
        NodeKind::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &*entry.value),
        _ => None,
    }
}

/// The file's text. `None`: there is none.
fn read(file: &Path) -> Result<Option<String>, Failure> {
    let failed = |why: String| Failure::usage(format!("cannot read {}: {why}", file.display()));
    match fs::metadata(file) {
        Ok(about) if !about.is_file() => Err(failed("it is no file".to_owned())),
        Ok(about) if about.len() > MAX_CONFIG_BYTES => {
            Err(failed(format!("it is longer than {MAX_CONFIG_BYTES} bytes")))
        }
        Ok(_) => fs::read_to_string(file).map(Some).map_err(|error| failed(error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// What `talon config check` reports for the entries alone, with a value for each variable.
fn checked(block: &str, variables: &[String]) -> Result<Vec<String>, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("cannot check the entries: {error}"));
    let scratch =
        tempfile::Builder::new().prefix("talon-import-").suffix(".yaml").tempfile().map_err(failed)?;
    fs::write(scratch.path(), block).map_err(failed)?;
    let mut options = LoadOptions { file: Some(scratch.path().to_owned()), ..LoadOptions::of_process() };
    // The entries must not depend on this process's environment.
    let mut env: BTreeMap<String, OsString> = options.environment.env;
    env.retain(|name, _| !name.starts_with("TALON_"));
    for variable in variables {
        env.entry(variable.clone()).or_insert_with(|| "set-later".into());
    }
    options.environment.env = env;
    let shown = scratch.path().display().to_string();
    Ok(match config::load(&options) {
        Ok(_) => Vec::new(),
        Err(errors) => errors
            .problems()
            .iter()
            .map(|problem| problem.to_string().replace(&shown, "the entries"))
            .collect(),
    })
}

/// Writes the file atomically and keeps its permissions.
fn replace(file: &Path, text: &str, there: bool) -> std::io::Result<()> {
    if !there {
        let mut new = OpenOptions::new().write(true).create_new(true).mode(MODE).open(file)?;
        return new.write_all(text.as_bytes());
    }
    let real = file.canonicalize()?;
    let about = real.metadata()?;
    let parent = real.parent().unwrap_or(Path::new("/"));
    let mut new = tempfile::Builder::new().prefix(".talon-import-").tempfile_in(parent)?;
    new.write_all(text.as_bytes())?;
    new.as_file().set_permissions(fs::Permissions::from_mode(about.mode() & 0o7777))?;
    // Keep the owner; where that is not permitted, the mode was kept.
    let _ = std::os::unix::fs::fchown(new.as_file(), Some(about.uid()), Some(about.gid()));
    new.as_file().sync_all()?;
    new.persist(&real).map_err(|error| error.error)?;
    Ok(())
}
