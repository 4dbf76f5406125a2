//! The isolation of one process from the machine: its files, its network, its system calls.

use std::path::{Path, PathBuf};

use talon_egress::InnerAddresses;
use talon_jail::{
    Access, BindMount, Identity, Isolation, LoopbackListeners, Mode, Network, PrivateTmpfs, Program, View,
};
use talon_plugin_config::discover::CheckError;
use talon_plugin_config::profile;
use talon_plugin_config::spec::{NetworkAccess, PluginSpec, SandboxSettings};

use super::error::LaunchError;
use super::program::PreparedProgram;
use crate::rundir::{HOME_DIR, PrivateDir, SOCKET_DIR, TMP_DIR};
use crate::service_spec::{Home, ServiceSpec};

/// How many bytes of the private directory count for one file or directory: a page, which is what a small
/// file takes. So inodes run out about when space would.
const BYTES_PER_INODE: u64 = 4 << 10;

/// Where names of hosts are, in every view without the host's network.
const HOSTS_FILE: &str = "/etc/hosts";

/// The fewest files and directories, for a private directory that is small.
const MIN_INODES: u64 = 1 << 10;

/// The isolation of a plugin's process; `None` without a jail.
pub(super) fn for_plugin(
    spec: &PluginSpec,
    prepared: &PreparedProgram,
    dir: &PrivateDir,
    identity: Option<Identity>,
    own: &[&Path],
) -> Result<Option<Isolation>, LaunchError> {
    let sandbox = &spec.sandbox;
    if sandbox.mode == Mode::Off {
        return Ok(None);
    }
    let (mut view, network) = base_view(sandbox, dir, identity);
    if let Some(copy) = &prepared.view {
        let path = copy.path().to_owned();
        view.shown.push(BindMount { at: path.clone(), from: path, access: Access::Execute, needed: true });
    }
    grant(&mut view, sandbox, identity, own)?;
    if let Program::Descriptor = prepared.program {
        view.program_at = Some(PathBuf::from(&prepared.argv0)).filter(|path| !is_shown(&view, path));
    }
    view.check().map_err(LaunchError::Isolation)?;
    if let Some(script) = &prepared.script
        && let Some(interpreter) = talon_jail::missing_interpreter(script, &view)
    {
        return Err(LaunchError::Interpreter {
            grant: install_prefix(&interpreter).to_owned(),
            interpreter,
            plugin: spec.name.clone(),
        });
    }
    let profile =
        profile::compile(sandbox).map_err(|error| setting_error("sandbox.profile", error.to_string()))?;
    Ok(Some(Isolation { view, network, listeners: LoopbackListeners::default(), profile }))
}

/// The isolation of a service's process: the view of a plugin, plus the service's home. Only Talon itself can
/// show the home; none of the sandbox's grants may name it.
pub(super) fn for_service(
    spec: &ServiceSpec,
    program_at: &Path,
    dir: &PrivateDir,
    own: &[&Path],
) -> Result<Option<Isolation>, LaunchError> {
    let mut sandbox = spec.sandbox.clone();
    if sandbox.mode == Mode::Off {
        return Ok(None);
    }
    if sandbox.network == NetworkAccess::Proxy {
        // No proxy is started for a service.
        sandbox.network = NetworkAccess::None;
    }
    let sandbox = &sandbox;
    let Home { dir: home, identity } = &spec.home;
    let (mut view, network) = base_view(sandbox, dir, *identity);
    let (at, from) = (home.clone(), home.clone());
    view.shown.push(BindMount { at, from, access: Access::Write, needed: true });
    for path in &spec.readable_paths {
        view.grant(path, Access::Read);
    }
    grant(&mut view, sandbox, *identity, own)?;
    view.program_at = Some(program_at.to_owned()).filter(|path| !is_shown(&view, path));
    view.check().map_err(LaunchError::Isolation)?;
    let profile =
        profile::compile(sandbox).map_err(|error| setting_error("sandbox.profile", error.to_string()))?;
    Ok(Some(Isolation { view, network, listeners: LoopbackListeners::default(), profile }))
}

/// The view that every process has: the system's files and a private directory; and its network.
fn base_view(sandbox: &SandboxSettings, dir: &PrivateDir, identity: Option<Identity>) -> (View, Network) {
    let network = profile::network(sandbox);
    let ids = identity.map_or_else(
        || (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
        |identity| (identity.uid, identity.gid),
    );
    let mut view = View::system(ids, &dir.home_dir(), &network);
    view.private = PrivateTmpfs {
        at: dir.path().to_owned(),
        dirs: [SOCKET_DIR, TMP_DIR, HOME_DIR].map(str::to_owned).to_vec(),
        tmp: TMP_DIR.to_owned(),
        bytes: sandbox.tmp_bytes,
        inodes: (sandbox.tmp_bytes / BYTES_PER_INODE).max(MIN_INODES),
        exec: sandbox.tmp_exec,
    };
    (view, network)
}

/// Adds the operator's grants to the view.
fn grant(
    view: &mut View,
    sandbox: &SandboxSettings,
    identity: Option<Identity>,
    own: &[&Path],
) -> Result<(), LaunchError> {
    let accesses = [Access::Read, Access::Execute, Access::Write];
    for ((name, list), access) in sandbox.fs.lists().into_iter().zip(accesses) {
        for path in list.into_iter().flatten() {
            check_not_own(path, identity, own).map_err(|error| grant_error(name, &error))?;
            view.grant(path, access);
        }
    }
    Ok(())
}

/// Has the proxy listen inside a plugin's network, and names it there. Variables that the operator sets, in upper
/// or lower case, are left to the operator; returns their names.
pub(super) fn add_listeners(
    isolation: &mut Isolation,
    inside: &InnerAddresses,
    spec: &PluginSpec,
) -> Vec<&'static str> {
    let is_set = |name: &str| spec.env.keys().any(|own| own.eq_ignore_ascii_case(name));
    let (left, added): (Vec<_>, Vec<_>) = inside.variables.iter().partition(|(name, _)| is_set(name));
    isolation.listeners = LoopbackListeners {
        addresses: inside.listeners.iter().map(|(address, _)| *address).collect(),
        env: added.iter().map(|(name, value)| (name.into(), value.into())).collect(),
    };
    if let Some(hosts) = isolation.view.files.iter_mut().find(|file| file.at == Path::new(HOSTS_FILE)) {
        hosts.text.push_str(&inside.hosts);
    }
    left.into_iter().map(|(name, _)| *name).collect()
}

/// Whether the view already shows a program at its path.
fn is_shown(view: &View, path: &Path) -> bool {
    let executable = |shown: &BindMount| shown.access == Access::Execute && path.starts_with(&shown.at);
    view.shown.iter().any(executable) || view.links.iter().any(|link| path.starts_with(&link.at))
}

/// Refuses to show a plugin Talon's own files, which hold secrets and other plugins' data. `own` are Talon's
/// directories.
///
/// The jail resolves the path in the same way when it starts: only through links that no plugin can have
/// created or moved. So no plugin can redirect the path between this check and the start.
fn check_not_own(path: &Path, identity: Option<Identity>, own: &[&Path]) -> Result<(), GrantError> {
    // The target of a link is what would be shown.
    let real = talon_jail::real_path(path, identity).map_err(GrantError::Path)?;
    let real = real.unwrap_or_else(|| path.to_owned());
    for own in own {
        if real.starts_with(own) || own.starts_with(&real) {
            return Err(GrantError::OwnFiles { path: path.to_owned(), own: own.to_path_buf() });
        }
    }
    Ok(())
}

/// Why a granted path is not shown. The messages end with what to do next.
#[derive(Debug, thiserror::Error)]
enum GrantError {
    /// What the jail says of it.
    #[error(transparent)]
    Path(talon_jail::ViewError),
    #[error("{} has Talon's own files in it ({}): name what the plugin needs instead", path.display(), own.display())]
    OwnFiles { path: PathBuf, own: PathBuf },
}

fn grant_error(list: &str, error: &GrantError) -> LaunchError {
    setting_error(
        match list {
            "read" => "sandbox.fs.read",
            "execute" => "sandbox.fs.execute",
            _ => "sandbox.fs.write",
        },
        error.to_string(),
    )
}

fn setting_error(setting: &'static str, problem: String) -> LaunchError {
    CheckError::Setting { setting, problem }.into()
}

/// The directory to grant for an interpreter: the parent of its `bin`, which also holds its libraries.
fn install_prefix(interpreter: &Path) -> &Path {
    let Some(dir) = interpreter.parent() else { return interpreter };
    match dir.parent() {
        Some(above) if dir.ends_with("bin") && above != Path::new("/") => above,
        _ if dir == Path::new("/") => interpreter,
        _ => dir,
    }
}
