//! Finds plugins in a directory.
//!
//! An executable file is a plugin named after the file; a directory with a [`plugin.yaml`](Manifest) is one, too.
//!
//! | entry | result |
//! |---|---|
//! | a name that begins with `.` | ignored |
//! | a file without execute bit, a directory without manifest, a socket or pipe | ignored, with a debug log line |
//! | a symlink | its target is checked, and its target is run |
//! | a bad name, two plugins with one name, a file others may write, a wrong `sha256`, a bad manifest | refused, each with its reason |
//!
//! A bad plugin never stops the others. Plugins from the config file ([`from_config`]) pass the same checks.

mod check;
mod defaults;
mod manifest;
mod merge;
mod permissions;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use tracing::debug;

pub use check::{CheckError, check, check_digest, check_script_location, check_settings};
pub use defaults::{DEFAULT_MAX_MESSAGE_BYTES, SpecDefaults};
pub use manifest::{Manifest, ManifestError};
use merge::{SettingSources, merge_settings};

use crate::bridge::Bridge;
use crate::entry::PluginEntry;
use crate::files::{digest, trust};
use crate::name::PluginName;
use crate::spec::{MANIFEST_FILE, PluginSpec};

/// The most entries of a plugin directory. 10,000 is far more than one machine runs. A larger directory is refused as a
/// whole, because it is probably not a plugin directory.
pub const MAX_ENTRIES: usize = 10_000;

/// The longest reason or name in a message, in bytes.
const MAX_SHOWN_BYTES: usize = 2048;

/// The result of a scan.
#[derive(Debug, Default)]
pub struct ScanResult {
    /// Plugins that passed their checks, by name.
    pub plugins: Vec<PluginSpec>,
    /// What looked like a plugin but is not run.
    pub refused: Vec<RejectedPlugin>,
}

/// Something that looked like a plugin but is not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedPlugin {
    /// Its name, or its file name if that is no valid plugin name.
    pub name: String,
    /// Its path.
    pub path: PathBuf,
    /// The reason; ends with what to do next.
    pub reason: String,
}

/// Scans a plugin directory. Blocking; reads every file of plugins that have a `sha256` to compare.
///
/// An unusable directory gives one refusal with its path.
#[must_use]
pub fn scan(dir: &Path, defaults: &SpecDefaults) -> ScanResult {
    let mut refused = Vec::new();
    let mut found: BTreeMap<PluginName, Vec<PluginSpec>> = BTreeMap::new();
    let names = match entries(dir) {
        Ok(names) => names,
        Err(reason) => {
            let name = dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy().into_owned();
            return ScanResult {
                plugins: Vec::new(),
                refused: vec![RejectedPlugin { name, path: dir.to_owned(), reason }],
            };
        }
    };
    for name in names {
        let path = dir.join(&name);
        match inspect_entry(&path, defaults) {
            Ok(Some(spec)) => found.entry(spec.name.clone()).or_default().push(spec),
            Ok(None) => {}
            Err(reason) => {
                let name = truncate(&name.to_string_lossy());
                refused.push(RejectedPlugin { name, path, reason: truncate(&reason) });
            }
        }
    }
    let mut plugins = Vec::new();
    for (name, mut specs) in found {
        if let ([_], Some(spec)) = (specs.as_slice(), specs.first().cloned()) {
            plugins.push(spec);
            continue;
        }
        // Choosing one of them would be a guess, so none of them runs.
        let sources: Vec<_> = specs.iter().map(|spec| spec.source.clone()).collect();
        let reason =
            truncate(&format!("{} claim the name {name}: rename all but one", sources.join(" and ")));
        for spec in specs.drain(..) {
            let path = spec.directory.unwrap_or(spec.program);
            refused.push(RejectedPlugin { name: name.to_string(), path, reason: reason.clone() });
        }
    }
    ScanResult { plugins, refused }
}

/// A plugin from the config file: a program, or a directory with a [`plugin.yaml`](Manifest). The entry overrides the
/// manifest. Blocking, like [`scan`].
///
/// # Errors
/// [`RejectedPlugin`], if it does not pass the checks.
pub fn from_config(
    name: &PluginName,
    source: &str,
    entry: &PluginEntry,
    defaults: &SpecDefaults,
) -> Result<PluginSpec, RejectedPlugin> {
    let path = entry.command.clone().unwrap_or_default();
    let spec = match (&entry.command, &entry.url) {
        (Some(directory), None) if directory.is_dir() => {
            configured_directory(name, source, directory, entry, defaults)
        }
        (Some(program), None) => configured_program(name, source, program, entry, defaults),
        // Only the bridge runs on this machine.
        (None, Some(_)) => match Bridge::Mcp.program(&defaults.bridges) {
            Some(bridge) => configured_program(name, source, bridge, entry, defaults),
            None => Err(CheckError::NoBridge { bridge: Bridge::Mcp.name() }.to_string()),
        },
        (Some(_), Some(_)) => Err("it has both a command and a url: leave one of them out".to_owned()),
        (None, None) => Err("it has neither a command nor a url: say what runs".to_owned()),
    };
    let checked = spec.and_then(|spec| check(&spec).map(|()| spec).map_err(|e| e.to_string()));
    checked.map_err(|reason| RejectedPlugin { name: name.to_string(), path, reason: truncate(&reason) })
}

/// A digest of all files that a start of the plugin reads and runs. A different digest means that the plugin changed.
/// Blocking; reads all of them.
///
/// # Errors
/// A message, if a file cannot be read.
pub fn fingerprint(spec: &PluginSpec) -> Result<String, String> {
    let program = || -> io::Result<String> {
        use std::os::unix::fs::PermissionsExt;

        let file = std::fs::File::open(&spec.program)?;
        let executable = file.metadata()?.permissions().mode() & 0o111 != 0;
        Ok(format!("{}{}", if executable { "x" } else { "f" }, digest::of_file(&file)?))
    };
    let program = program().map_err(|e| format!("cannot read {}: {e}", spec.program.display()))?;
    match &spec.directory {
        None => Ok(program),
        Some(directory) => {
            let tree = digest::of_tree(directory, None).map_err(|e| e.to_string())?;
            Ok(format!("{program} {tree}"))
        }
    }
}

fn configured_program(
    name: &PluginName,
    source: &str,
    program: &Path,
    entry: &PluginEntry,
    defaults: &SpecDefaults,
) -> Result<PluginSpec, String> {
    let spec = defaults.spec(name.clone(), source, program);
    let said = SettingSources { entry: Some(entry), ..SettingSources::default() };
    merge_settings(spec, said, defaults).map_err(|e| e.to_string())
}

fn configured_directory(
    name: &PluginName,
    source: &str,
    directory: &Path,
    entry: &PluginEntry,
    defaults: &SpecDefaults,
) -> Result<PluginSpec, String> {
    let directory =
        directory.canonicalize().map_err(|e| format!("cannot resolve it: {e}; correct the path"))?;
    if directory.join(MANIFEST_FILE).symlink_metadata().is_err() {
        return Err(format!("it is a directory without {MANIFEST_FILE}: add one, or name the program in it"));
    }
    let manifest = trusted_manifest(&directory, defaults)?;
    // The entry's key is the name, whatever the manifest says.
    let mut spec = defaults.spec(name.clone(), source, manifest.program(&directory)?);
    spec.directory = Some(directory);
    let said = SettingSources { manifest: Some(&manifest.plugin), entry: Some(entry) };
    merge_settings(spec, said, defaults).map_err(|e| e.to_string())
}

/// The sorted names in a trustworthy plugin directory.
fn entries(dir: &Path) -> Result<Vec<OsString>, String> {
    let failed = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => {
            format!(
                "plugin_dir {} does not exist: create it, or change plugins.tools.plugin_dir",
                dir.display()
            )
        }
        _ => format!("cannot read plugin_dir {}: {e}", dir.display()),
    };
    let stat = rustix::fs::stat(dir).map_err(|e| failed(e.into()))?;
    if let Some(problem) = trust::others_may_write(&stat) {
        return Err(format!("plugin_dir {} cannot be trusted: {problem}", dir.display()));
    }
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if names.len() == MAX_ENTRIES {
            return Err(format!(
                "plugin_dir {} holds more than {MAX_ENTRIES} entries: name a directory that holds plugins only",
                dir.display()
            ));
        }
        names.push(name);
    }
    names.sort();
    Ok(names)
}

/// Inspects one entry. `None` if it is not a plugin.
fn inspect_entry(path: &Path, defaults: &SpecDefaults) -> Result<Option<PluginSpec>, String> {
    use std::os::unix::fs::PermissionsExt;

    let real = path.canonicalize().map_err(|e| format!("cannot resolve it: {e}; remove it"))?;
    let metadata = real.metadata().map_err(|e| format!("cannot look at it: {e}"))?;
    let file_name = path.file_name().and_then(|name| name.to_str());
    let spec = if metadata.is_dir() {
        if real.join(MANIFEST_FILE).symlink_metadata().is_err() {
            debug!(path = %path.display(), "ignored: a directory without {MANIFEST_FILE}");
            return Ok(None);
        }
        directory_plugin(&real, file_name, defaults)?
    } else if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 {
        let name = PluginName::from_file_name(file_name.ok_or("its name is not UTF-8: rename it")?)
            .map_err(|e| e.to_string())?;
        // The target of a link is checked and run, so that a changed link takes effect only with a new scan.
        let spec = defaults.spec(name, path.display().to_string(), real);
        merge_settings(spec, SettingSources::default(), defaults).map_err(|e| e.to_string())?
    } else {
        debug!(path = %path.display(), "ignored: neither executable nor a directory");
        return Ok(None);
    };
    check(&spec).map_err(|e| e.to_string())?;
    Ok(Some(spec))
}

/// A plugin in a directory. No extension is cut from the directory's name: `tool-1.2` would become `tool-1`.
fn directory_plugin(
    directory: &Path,
    dir_name: Option<&str>,
    defaults: &SpecDefaults,
) -> Result<PluginSpec, String> {
    let manifest = trusted_manifest(directory, defaults)?;
    let name = match &manifest.name {
        Some(name) => PluginName::new(name),
        None => PluginName::new(&dir_name.ok_or("its name is not UTF-8: rename it")?.replace('_', "-")),
    };
    let source = directory.join(MANIFEST_FILE).display().to_string();
    let name = name.map_err(|e| e.to_string())?;
    let mut spec = defaults.spec(name, source, manifest.program(directory)?);
    spec.directory = Some(directory.to_owned());
    let said = SettingSources { manifest: Some(&manifest.plugin), entry: None };
    merge_settings(spec, said, defaults).map_err(|e| e.to_string())
}

/// Reads a directory's manifest, after checking who may write it: a manifest that everybody may write could name any
/// program.
fn trusted_manifest(directory: &Path, defaults: &SpecDefaults) -> Result<Manifest, String> {
    for path in [directory, &directory.join(MANIFEST_FILE)] {
        let stat = rustix::fs::stat(path).map_err(|e| format!("cannot look at {}: {e}", path.display()))?;
        if let Some(problem) = trust::others_may_write(&stat) {
            return Err(format!("{} cannot be trusted: {problem}", path.display()));
        }
    }
    Manifest::read(directory, &defaults.lifecycle).map_err(|e| e.to_string())
}

/// Truncates a text for display.
fn truncate(text: &str) -> String {
    if text.len() <= MAX_SHOWN_BYTES {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(MAX_SHOWN_BYTES)])
}

#[cfg(test)]
mod tests;
