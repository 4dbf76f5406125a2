//! The checks that apply to every plugin, wherever it was found.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use talon_descriptor::DescriptorError;
use talon_jail::Mode;

use crate::allow_list::AllowList;
use crate::bridge::Bridge;
use crate::entry::MAX_CALL_TIMEOUT;
use crate::environment;
use crate::files::program::{self, ProgramKind};
use crate::files::{ProgramError, TreeError, digest, tree};
use crate::profile;
use crate::spec::NetworkAccess;
use crate::spec::{
    DEFAULT_SERVICE, Dialect, LifecycleSettings, MANIFEST_FILE, MAX_CONNECTIONS, MAX_INSTANCES,
    MAX_MESSAGE_BYTES, MIN_MESSAGE_BYTES, PluginSpec, SandboxSettings, Tls,
};
use crate::units::Duration;

/// The longest full name of a gRPC service, in bytes; real names have about a tenth of it.
const MAX_SERVICE_NAME_BYTES: usize = 256;

/// Why a plugin is refused. The messages end with what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// A setting has an unusable value.
    #[error("{setting}: {problem}")]
    Setting {
        /// The setting's key.
        setting: &'static str,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// Its program cannot be run.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// Its directory cannot be used.
    #[error(transparent)]
    Directory(#[from] TreeError),
    /// A script that belongs neither to the plugin nor to the system.
    #[error("{} is a script outside the plugin's directory: move it into the directory, where what was checked is what runs", .0.display())]
    ScriptOutside(PathBuf),
    /// The same for a native program behind a bridge, which finds it only by its path.
    #[error("{} is a program outside the plugin's directory: behind a bridge it has to lie in the directory, or be the system's", .0.display())]
    ProgramOutside(PathBuf),
    /// The bridge that translates the plugin's protocol is not installed.
    #[error(
        "the program {bridge}, which translates for it, is missing: it is neither beside talon nor in ../libexec/talon or ../lib/talon; install it there, or set plugins.tools.bridge_dir"
    )]
    NoBridge {
        /// The bridge's file name.
        bridge: &'static str,
    },
    /// Its manifest requests what only the operator may allow.
    #[error("{}", wishes.join("; "))]
    NotPermitted {
        /// One text for each request: the key, the requested value, and how the operator can allow it.
        wishes: Vec<String>,
    },
    /// The digest differs from the configured one.
    #[error(
        "{} has the sha256 digest {found}, and {expected} was asked for: somebody changed it; restore it, or write down the new digest",
        path.display()
    )]
    WrongDigest {
        /// The program or directory.
        path: PathBuf,
        /// Its digest.
        found: String,
        /// The expected digest.
        expected: String,
    },
}

fn setting_error(setting: &'static str, problem: impl Into<String>) -> CheckError {
    CheckError::Setting { setting, problem: problem.into() }
}

/// Checks a plugin before it is registered: its settings, its files, and its digest if one is configured.
/// Reads the disk; with a digest to compare it reads all files of the plugin.
///
/// # Errors
/// [`CheckError`], for the first problem.
pub fn check(spec: &PluginSpec) -> Result<(), CheckError> {
    check_settings(spec)?;
    check_lifecycle(&spec.lifecycle)?;
    check_jail(&spec.sandbox)?;
    check_files(spec)
}

/// Values from different sources may each be valid and still conflict.
fn check_lifecycle(life: &LifecycleSettings) -> Result<(), CheckError> {
    let shown = |duration: std::time::Duration| Duration::from(duration);
    if life.health_check_timeout > life.health_check_interval {
        let interval = shown(life.health_check_interval);
        let problem = format!(
            "{} is longer than health_check_interval ({interval}): a check must end before the next begins",
            shown(life.health_check_timeout)
        );
        return Err(setting_error("health_check_timeout", problem));
    }
    if life.backoff_initial > life.backoff_max {
        let max = shown(life.backoff_max);
        let problem = format!(
            "{} is longer than backoff_max ({max}): the first wait is the shortest",
            shown(life.backoff_initial)
        );
        return Err(setting_error("backoff_initial", problem));
    }
    if let Some(after) = life.kill_overdue_after
        && after > MAX_CALL_TIMEOUT
    {
        let problem = format!("{} is longer than a day: write at most \"1d\"", shown(after));
        return Err(setting_error("kill_overdue_after", problem));
    }
    Ok(())
}

/// Whether the jail's settings are valid. Whether this machine supports them shows at the start.
fn check_jail(sandbox: &SandboxSettings) -> Result<(), CheckError> {
    if sandbox.mode == Mode::Off {
        return Ok(());
    }
    if sandbox.network == NetworkAccess::Proxy {
        AllowList::parse(&sandbox.allow)
            .map_err(|error| setting_error("sandbox.allow", error.to_string()))?;
    }
    profile::compile(sandbox).map(drop).map_err(|error| setting_error("sandbox.profile", error.to_string()))
}

/// The part of [`check`] that does not access the disk.
pub fn check_settings(spec: &PluginSpec) -> Result<(), CheckError> {
    if !spec.program.is_absolute() {
        return Err(setting_error(
            "command",
            format!("{} is not an absolute path: write one", spec.program.display()),
        ));
    }
    if !(1..=MAX_INSTANCES).contains(&spec.instances) {
        return Err(setting_error(
            "instances",
            format!("{} is not between 1 and {MAX_INSTANCES}", spec.instances),
        ));
    }
    if !(1..=MAX_CONNECTIONS).contains(&spec.connections) {
        return Err(setting_error(
            "connections",
            format!("{} is not between 1 and {MAX_CONNECTIONS}", spec.connections),
        ));
    }
    if !(MIN_MESSAGE_BYTES..=MAX_MESSAGE_BYTES).contains(&spec.max_message_bytes) {
        let problem = format!("{} is not between 64KiB and 2GiB", spec.max_message_bytes);
        return Err(setting_error("max_message_bytes", problem));
    }
    if let Some(bridge) = Bridge::for_plugin(spec)
        && bridge.program(&spec.bridges).is_none()
    {
        return Err(CheckError::NoBridge { bridge: bridge.name() });
    }
    if spec.foreign_service.is_some() {
        check_foreign_service(spec)?;
    }
    if let Some(url) = &spec.url {
        crate::entry::place_of_url(url).map_err(|problem| setting_error("url", problem.to_string()))?;
    }
    if !is_service_name(&spec.service) {
        return Err(setting_error("service", "not the full name of a gRPC service: write package.Service"));
    }
    if spec.app_versions.is_empty() {
        return Err(setting_error(
            "app_versions",
            "no version is offered: list at least one, or leave the key out",
        ));
    }
    if let Some(sha256) = &spec.sha256
        && !(sha256.len() == 64 && sha256.bytes().all(|b| b.is_ascii_hexdigit()))
    {
        return Err(setting_error("sha256", "not a digest: write 64 hexadecimal digits"));
    }
    if spec.args.iter().any(|arg| arg.contains('\0')) {
        return Err(setting_error(
            "args",
            "an argument holds a NUL character, which no program can be given",
        ));
    }
    environment::check(spec).map_err(|error| setting_error("env", error.to_string()))
}

/// A service that the bridge translates fits only go-plugin's handshake, without AutoMTLS.
fn check_foreign_service(spec: &PluginSpec) -> Result<(), CheckError> {
    if !matches!(spec.dialect, Dialect::Auto | Dialect::GoPlugin) {
        let problem = "a descriptor is for programs of go-plugin: leave dialect out, or write go-plugin";
        return Err(setting_error("dialect", problem));
    }
    if spec.tls != Tls::Off {
        let problem = "behind the bridge of a descriptor there is no AutoMTLS: write off";
        return Err(setting_error("tls", problem));
    }
    if spec.service == DEFAULT_SERVICE {
        let problem = "PluginService needs no descriptor: remove it, or name the service that it describes";
        return Err(setting_error("service", problem));
    }
    Ok(())
}

/// Letters, digits, `_` and dots: characters that an HTTP/2 path takes unescaped.
fn is_service_name(name: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    name.len() <= MAX_SERVICE_NAME_BYTES && name.split('.').all(part)
}

fn check_files(spec: &PluginSpec) -> Result<(), CheckError> {
    if let Some(foreign) = &spec.foreign_service {
        let refused = |error: DescriptorError| setting_error("descriptor", error.to_string());
        let bytes = talon_descriptor::read(&foreign.descriptor).map_err(refused)?;
        talon_descriptor::actions(&bytes, &spec.service, &foreign.methods).map_err(refused)?;
    }
    let Some(directory) = &spec.directory else {
        let (path, program) = program::open(&spec.program)?;
        if spec.sha256.is_some() {
            let found = digest::of_file(&program.file)
                .map_err(|source| ProgramError::Io { path: path.clone(), source })?;
            check_digest(spec, path, found)?;
        }
        return Ok(());
    };
    if spec.sha256.is_some() {
        let found = digest::of_tree(directory, Some(OsStr::new(MANIFEST_FILE)))?;
        check_digest(spec, directory.clone(), found)?;
    } else {
        tree::walk(directory, Some(OsStr::new(MANIFEST_FILE)), &mut |_, _| Ok(()))?;
    }
    let (real, opened) = program::open(&spec.program)?;
    check_script_location(&real, opened.kind, directory)
}

/// Refuses a script in a place where users other than root may change it.
pub fn check_script_location(real: &Path, kind: ProgramKind, directory: &Path) -> Result<(), CheckError> {
    if kind == ProgramKind::Script && !real.starts_with(directory) && !tree::is_system_file(real) {
        return Err(CheckError::ScriptOutside(real.to_owned()));
    }
    Ok(())
}

/// Compares the actual digest with the configured one, if any.
pub fn check_digest(spec: &PluginSpec, path: PathBuf, found: String) -> Result<(), CheckError> {
    match &spec.sha256 {
        Some(expected) if !expected.eq_ignore_ascii_case(&found) => {
            Err(CheckError::WrongDigest { path, found, expected: expected.to_ascii_lowercase() })
        }
        _ => Ok(()),
    }
}
