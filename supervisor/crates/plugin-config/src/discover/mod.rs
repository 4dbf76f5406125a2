//! Finds plugins in a directory.
//!
//! An executable file is a plugin named after the file; a directory with a [`plugin.yaml`](Manifest) is one,
//! too.
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
mod error;
mod manifest;
mod merge;
mod permissions;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use talon_sanitize::truncate;
use tracing::debug;

pub use check::{CheckError, check, check_digest, check_script_location, check_settings};
pub use defaults::{DEFAULT_MAX_MESSAGE_BYTES, SpecDefaults};
use error::DiscoverError;
pub use error::FingerprintError;
pub use manifest::{CommandError, Manifest, ManifestError};
use merge::{SettingSources, merge_settings};

use crate::bridge::Bridge;
use crate::entry::PluginEntry;
use crate::files::{digest, trust};
use crate::name::PluginName;
use crate::spec::{MANIFEST_FILE, PluginSpec};

/// The most entries of a plugin directory. 10,000 is far more than one machine runs. A larger directory is
/// refused as a whole, because it is probably not a plugin directory.
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
        Err(error) => {
            let reason = error.to_string();
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
            Err(error) => {
                let name = shown(&name.to_string_lossy());
                refused.push(RejectedPlugin { name, path, reason: shown(&error.to_string()) });
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
        let reason = shown(&format!("{} claim the name {name}: rename all but one", sources.join(" and ")));
        for spec in specs.drain(..) {
            let path = spec.directory.unwrap_or(spec.program);
            refused.push(RejectedPlugin { name: name.to_string(), path, reason: reason.clone() });
        }
    }
    ScanResult { plugins, refused }
}

/// A plugin from the config file: a program, or a directory with a [`plugin.yaml`](Manifest). The entry
/// overrides the manifest. Blocking, like [`scan`].
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
            None => Err(CheckError::NoBridge { bridge: Bridge::Mcp.name() }.into()),
        },
        (Some(_), Some(_)) => Err(DiscoverError::CommandAndUrl),
        (None, None) => Err(DiscoverError::NothingToRun),
    };
    let checked = spec.and_then(|spec| Ok(check(&spec).map(|()| spec)?));
    checked.map_err(|error| RejectedPlugin {
        name: name.to_string(),
        path,
        reason: shown(&error.to_string()),
    })
}

/// A digest of all files that a start of the plugin reads and runs. A different digest means that the plugin
/// changed. Blocking; reads all of them.
///
/// # Errors
/// [`FingerprintError`], if a file cannot be read.
pub fn fingerprint(spec: &PluginSpec) -> Result<String, FingerprintError> {
    let program = || -> io::Result<String> {
        use std::os::unix::fs::PermissionsExt;

        let file = std::fs::File::open(&spec.program)?;
        let executable = file.metadata()?.permissions().mode() & 0o111 != 0;
        Ok(format!("{}{}", if executable { "x" } else { "f" }, digest::of_file(&file)?))
    };
    let program =
        program().map_err(|source| FingerprintError::Program { path: spec.program.clone(), source })?;
    let tree = match &spec.directory {
        None => String::new(),
        Some(directory) => format!(" {}", digest::of_tree(directory, None)?),
    };
    let descriptor = || match &spec.foreign_service {
        None => Ok(String::new()),
        Some(foreign) => Ok(format!(" {}", digest::of_file(&std::fs::File::open(&foreign.descriptor)?)?)),
    };
    let descriptor = descriptor().map_err(|source| {
        let path = spec.foreign_service.iter().map(|foreign| foreign.descriptor.clone()).collect();
        FingerprintError::Program { path, source }
    })?;
    Ok(format!("{program}{tree}{descriptor}"))
}

fn configured_program(
    name: &PluginName,
    source: &str,
    program: &Path,
    entry: &PluginEntry,
    defaults: &SpecDefaults,
) -> Result<PluginSpec, DiscoverError> {
    let spec = defaults.spec(name.clone(), source, program);
    let sources = SettingSources { entry: Some(entry), ..SettingSources::default() };
    Ok(merge_settings(spec, sources, defaults)?)
}

fn configured_directory(
    name: &PluginName,
    source: &str,
    directory: &Path,
    entry: &PluginEntry,
    defaults: &SpecDefaults,
) -> Result<PluginSpec, DiscoverError> {
    let directory = directory.canonicalize().map_err(DiscoverError::Unresolved)?;
    if directory.join(MANIFEST_FILE).symlink_metadata().is_err() {
        return Err(DiscoverError::NoManifest);
    }
    let manifest = trusted_manifest(&directory, defaults)?;
    // The entry's key is the name, whatever the manifest says.
    let mut spec = defaults.spec(name.clone(), source, manifest.program(&directory)?);
    spec.directory = Some(directory);
    let sources = SettingSources { manifest: Some(&manifest.plugin), entry: Some(entry) };
    Ok(merge_settings(spec, sources, defaults)?)
}

/// The sorted names in a trustworthy plugin directory.
fn entries(dir: &Path) -> Result<Vec<OsString>, DiscoverError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => DiscoverError::NoPluginDir(dir.to_owned()),
        _ => DiscoverError::UnreadablePluginDir { dir: dir.to_owned(), source },
    };
    let stat = rustix::fs::stat(dir).map_err(|e| failed(e.into()))?;
    if let Some(problem) = trust::others_may_write(&stat) {
        return Err(DiscoverError::UntrustedPluginDir { dir: dir.to_owned(), problem });
    }
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if names.len() == MAX_ENTRIES {
            return Err(DiscoverError::TooManyEntries { dir: dir.to_owned(), most: MAX_ENTRIES });
        }
        names.push(name);
    }
    names.sort();
    Ok(names)
}

/// Inspects one entry. `None` if it is not a plugin.
fn inspect_entry(path: &Path, defaults: &SpecDefaults) -> Result<Option<PluginSpec>, DiscoverError> {
    use std::os::unix::fs::PermissionsExt;

    let real = path.canonicalize().map_err(DiscoverError::DanglingEntry)?;
    let metadata =
        real.metadata().map_err(|source| DiscoverError::Unreadable { path: real.clone(), source })?;
    let file_name = path.file_name().and_then(|name| name.to_str());
    let spec = if metadata.is_dir() {
        if real.join(MANIFEST_FILE).symlink_metadata().is_err() {
            debug!(path = %path.display(), "ignored: a directory without {MANIFEST_FILE}");
            return Ok(None);
        }
        directory_plugin(&real, file_name, defaults)?
    } else if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 {
        let name = PluginName::from_file_name(file_name.ok_or(DiscoverError::NameNotUtf8)?)?;
        // The target of a link is checked and run, so that a changed link takes effect only with a new scan.
        let spec = defaults.spec(name, path.display().to_string(), real);
        merge_settings(spec, SettingSources::default(), defaults)?
    } else {
        debug!(path = %path.display(), "ignored: neither executable nor a directory");
        return Ok(None);
    };
    check(&spec)?;
    Ok(Some(spec))
}

/// A plugin in a directory. No extension is cut from the directory's name: `tool-1.2` would become `tool-1`.
fn directory_plugin(
    directory: &Path,
    dir_name: Option<&str>,
    defaults: &SpecDefaults,
) -> Result<PluginSpec, DiscoverError> {
    let manifest = trusted_manifest(directory, defaults)?;
    let name = match &manifest.name {
        Some(name) => PluginName::new(name),
        None => PluginName::new(&dir_name.ok_or(DiscoverError::NameNotUtf8)?.replace('_', "-")),
    };
    let source = directory.join(MANIFEST_FILE).display().to_string();
    let mut spec = defaults.spec(name?, source, manifest.program(directory)?);
    spec.directory = Some(directory.to_owned());
    let sources = SettingSources { manifest: Some(&manifest.plugin), entry: None };
    Ok(merge_settings(spec, sources, defaults)?)
}

/// Reads a directory's manifest, after checking who may write it: a manifest that everybody may write could
/// name any program.
fn trusted_manifest(directory: &Path, defaults: &SpecDefaults) -> Result<Manifest, DiscoverError> {
    for path in [directory, &directory.join(MANIFEST_FILE)] {
        let stat = rustix::fs::stat(path)
            .map_err(|error| DiscoverError::Unreadable { path: path.to_owned(), source: error.into() })?;
        if let Some(problem) = trust::others_may_write(&stat) {
            return Err(DiscoverError::Untrusted { path: path.to_owned(), problem });
        }
    }
    Ok(Manifest::read(directory, &defaults.lifecycle)?)
}

/// A text of bounded length.
fn shown(text: &str) -> String {
    truncate(text, MAX_SHOWN_BYTES, "…").into_owned()
}

#[cfg(test)]
mod tests;
