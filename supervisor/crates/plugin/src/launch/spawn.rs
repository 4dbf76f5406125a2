//! Everything up to a running program: creates its resources, then builds the jail around it. All of it
//! blocks.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use talon_egress::{Denial, InnerAddresses, ListenerPurpose, MAX_TUNNEL_ADDRESSES, Proxy};
use talon_jail::{Access, BindMount, Group, Groups, Identity, InheritedFds, Isolation, JailSpec, Mode, View};
use talon_plugin_client::connect::ClientIdentity;
use talon_plugin_config::allow_list::AllowList;
use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::{Dialect, NetworkAccess, PluginSpec, SandboxSettings, Tls};
use talon_sanitize::sanitized;
use tokio::net::{TcpListener, UnixListener};
use tokio::time::Instant;

use super::error::LaunchError;
use super::process::{Process, ProcessResources, ServedSockets};
use super::shared::Shared;
use super::{certificates, isolation, program};
use crate::environment;
use crate::logs::{Level, LogSink, Stream};
use crate::rundir::PrivateDir;
use crate::state_sockets::AttachedSocket;
use crate::stdio::PipeReader;

/// Said in a plugin's log where the proxy cannot listen inside its network. The jail's report has the reason.
const NO_LISTENERS: &str = "its hosts are reached by programs that know TALON_PROXY_SOCKET alone: HTTPS_PROXY is not set \
                            (`talon plugin show` says why at `network`; docs/egress.md)";

/// A process that was just started, with its pipes.
pub(super) struct SpawnedProcess {
    pub(super) process: Process,
    pub(super) dir: Arc<PrivateDir>,
    pub(super) stdout: PipeReader,
    pub(super) stderr: PipeReader,
    pub(super) report: talon_jail::Report,
    pub(super) digest: String,
    /// The client certificate, if its connections are encrypted.
    pub(super) identity: Option<ClientIdentity>,
}

/// What exists for one process before it is started.
struct SpawnResources {
    dir: Arc<PrivateDir>,
    isolation: Option<Isolation>,
    proxy: Option<(Proxy, InnerAddresses)>,
    state: Option<Box<dyn AttachedSocket>>,
    model: Option<Box<dyn AttachedSocket>>,
    group: Option<Group>,
    /// A listening socket that the program inherits.
    listener: Option<OwnedFd>,
}

/// Opens the parent of the plugins' cgroups and removes those of an earlier supervisor, except `kept`.
pub(super) fn open_groups(runtime_dir: &Path, kept: &[&Path]) -> Option<Groups> {
    // A hash, because the path may hold characters that are not allowed in a group's name.
    let label = hex::encode(&Sha256::digest(runtime_dir.as_os_str().as_bytes())[..8]);
    let groups = match Groups::open(&label) {
        Ok(groups) => groups,
        Err(lacking) => {
            tracing::info!(%lacking, "no cgroups for plugins; limits hold for each process and uid instead");
            return None;
        }
    };
    match groups.clear_except(kept) {
        Ok(0) => {}
        Ok(removed) => tracing::info!(removed, "cgroups of an earlier supervisor were cleared"),
        Err(error) => tracing::warn!(%error, "cgroups of an earlier supervisor cannot be cleared"),
    }
    Some(groups)
}

/// Starts the egress proxy of a plugin without a network.
pub(super) fn start_proxy(
    spec: &PluginSpec,
    instance: u32,
    socket: OwnedFd,
    identity: Option<Identity>,
    logs: &LogSink,
) -> Result<Proxy, LaunchError> {
    let allowed = AllowList::parse(&spec.sandbox.allow)?;
    let listener = UnixListener::from_std(socket.into()).map_err(LaunchError::Watch)?;
    let logs = logs.clone();
    let on_denied = Arc::new(move |denied: &Denial| {
        let text = sanitized!("{}", denied);
        // Logged like the plugin's own lines, under the same rate limit: a plugin could try denied hosts
        // forever.
        logs.line(instance, Stream::Supervisor, text.len(), || (Level::Warn, text));
    });
    Ok(Proxy::start(listener, allowed, identity.map(|identity| identity.uid), on_denied))
}

/// Has a proxy serve its sockets inside the plugin's network. They are not blocking.
pub(super) fn serve_inside(
    proxy: &Proxy,
    sockets: impl IntoIterator<Item = (OwnedFd, ListenerPurpose)>,
) -> Result<(), LaunchError> {
    for (socket, purpose) in sockets {
        let listener = TcpListener::from_std(socket.into()).map_err(LaunchError::Watch)?;
        proxy.serve_inside(listener, purpose);
    }
    Ok(())
}

/// Has the proxy listen inside a plugin's network, and says in its log what it leaves to the operator.
fn listen_inside(
    isolation: &mut Isolation,
    spec: &PluginSpec,
    instance: u32,
    logs: &LogSink,
) -> Result<InnerAddresses, LaunchError> {
    let inside = InnerAddresses::for_list(&AllowList::parse(&spec.sandbox.allow)?);
    let set = isolation::add_listeners(isolation, &inside, spec);
    if !set.is_empty() {
        let text =
            format!("its env sets {}, in place of the egress proxy's (docs/egress.md)", set.join(", "));
        logs.note(instance, Level::Info, text);
    }
    if inside.left_out > 0 {
        let text = format!(
            "{} entries of sandbox.allow have no address inside, which the first {MAX_TUNNEL_ADDRESSES} have: only \
             programs that use HTTPS_PROXY reach them (move those that must have one to the front)",
            inside.left_out
        );
        logs.note(instance, Level::Warn, text);
    }
    Ok(inside)
}

/// Shows a plugin one of the supervisor's sockets or files, at the path that it has outside.
fn show(view: &mut View, path: PathBuf, access: Access) {
    view.shown.push(BindMount { at: path.clone(), from: path, access, needed: true });
}

/// The uid of a process with this identity.
pub(super) fn uid_of(identity: Option<Identity>) -> u32 {
    identity.map_or_else(|| rustix::process::geteuid().as_raw(), |identity| identity.uid)
}

impl Shared {
    /// Creates the cgroup of one process, where cgroups are available.
    pub(super) fn create_group(
        &self,
        plugin: &PluginName,
        sandbox: &SandboxSettings,
        dir: &PrivateDir,
    ) -> Result<Option<Group>, LaunchError> {
        let Some(groups) = &self.groups else { return Ok(None) };
        // The directory's name makes it unique; the plugin's name is for people.
        let name = format!("{:.40}-{}", plugin.as_str(), dir.name());
        match (groups.create(&name, &sandbox.limits), sandbox.mode) {
            (Ok(group), _) => Ok(Some(group)),
            (Err(error), Mode::Enforce) => Err(error.into()),
            (Err(error), Mode::BestEffort | Mode::Off) => {
                tracing::warn!(%plugin, %error, "it runs without its own cgroup");
                Ok(None)
            }
        }
    }

    /// Attaches the key-value store of a process, if there is a provider: its socket is shown to the process,
    /// with or without a jail.
    fn attach_state_socket(
        &self,
        plugin: &PluginName,
        dir: &PrivateDir,
        identity: Option<Identity>,
        view: Option<&mut View>,
    ) -> Result<Option<Box<dyn AttachedSocket>>, LaunchError> {
        let Some(sockets) = &self.settings.state else { return Ok(None) };
        let socket = dir.listen_for_state(identity).map_err(LaunchError::Directory)?;
        if let Some(view) = view {
            show(view, dir.state_path(), Access::Connect);
        }
        Ok(Some(sockets.attach(plugin, uid_of(identity), socket)))
    }

    /// Attaches the models of a process, if it is granted some and there is a provider.
    fn attach_model_socket(
        &self,
        spec: &PluginSpec,
        dir: &PrivateDir,
        identity: Option<Identity>,
        view: Option<&mut View>,
    ) -> Result<Option<Box<dyn AttachedSocket>>, LaunchError> {
        let Some(models) = self.settings.models.as_ref().filter(|_| spec.models) else { return Ok(None) };
        let socket = dir.listen_for_models(identity).map_err(LaunchError::Directory)?;
        if let Some(view) = view {
            show(view, dir.model_path(), Access::Connect);
        }
        Ok(Some(models.attach(&spec.name, uid_of(identity), socket)))
    }

    /// Prepares the program on the disk, and the identity to run it. Blocking.
    pub(super) fn prepare_program(
        &self,
        spec: &PluginSpec,
    ) -> Result<(program::PreparedProgram, Option<Identity>), LaunchError> {
        let identity = self.identity(spec)?;
        Ok((program::prepare(spec, &self.views, identity)?, identity))
    }

    /// The identity of a plugin's processes.
    pub(super) fn identity(&self, spec: &PluginSpec) -> Result<Option<Identity>, LaunchError> {
        // Discovery checks specs already; this covers hosts that build their own.
        talon_plugin_config::discover::check_settings(spec)?;
        Ok(match (&self.identities, spec.sandbox.mode) {
            (Some(_), Mode::Enforce) if !self.may_change_uid => return Err(LaunchError::NoUid),
            // The jail's report says that it does not have its own uid.
            (Some(_), Mode::BestEffort) if !self.may_change_uid => None,
            // Without a jail it keeps the supervisor's uid.
            (None, _) | (_, Mode::Off) => None,
            (Some(identities), _) => Some(identities.get_or_allocate(&spec.name)?),
        })
    }

    /// Creates what one process has around it. Blocking.
    fn create_resources(
        &self,
        spec: &PluginSpec,
        instance: u32,
        prepared: &program::PreparedProgram,
        identity: Option<Identity>,
        logs: &LogSink,
    ) -> Result<SpawnResources, LaunchError> {
        let dir = match spec.sandbox.mode {
            Mode::Enforce => self.runtime.allocate_empty(identity),
            Mode::BestEffort | Mode::Off => self.runtime.allocate(identity),
        };
        let dir = Arc::new(dir.map_err(LaunchError::Directory)?);
        let own = [self.runtime.path(), self.data_dir.as_path()];
        let mut isolation = isolation::for_plugin(spec, prepared, &dir, identity, &own)?;
        let proxy = match &mut isolation {
            Some(isolation) if spec.sandbox.network == NetworkAccess::Proxy => {
                // The way out: a socket in its view, served by the supervisor's proxy.
                let socket = dir.listen_for_proxy(identity).map_err(LaunchError::Directory)?;
                show(&mut isolation.view, dir.proxy_path(), Access::Connect);
                let proxy = start_proxy(spec, instance, socket, identity, logs)?;
                Some((proxy, listen_inside(isolation, spec, instance, logs)?))
            }
            _ => None,
        };
        if let Some(ca_file) = &spec.sandbox.ca_file {
            let text = certificates::bundle(ca_file)?;
            dir.write_certificates(&text, identity).map_err(LaunchError::Directory)?;
            if let Some(isolation) = &mut isolation {
                show(&mut isolation.view, dir.certificates_path(), Access::Read);
            }
        }
        let view = isolation.as_mut().map(|isolation| &mut isolation.view);
        let state = self.attach_state_socket(&spec.name, &dir, identity, view)?;
        let view = isolation.as_mut().map(|isolation| &mut isolation.view);
        let model = self.attach_model_socket(spec, &dir, identity, view)?;
        let group = self.create_group(&spec.name, &spec.sandbox, &dir)?;
        // Only the Talon SDK uses it, in go-plugin's dialect; other programs create a socket themselves.
        let passed = isolation.is_some() && spec.dialect != Dialect::OpenTalon;
        let listener = passed.then(|| dir.listen()).transpose().map_err(LaunchError::Directory)?;
        Ok(SpawnResources { dir, isolation, proxy, state, model, group, listener })
    }

    /// Starts a prepared program in its jail. Blocking.
    pub(super) fn spawn(
        &self,
        spec: &PluginSpec,
        instance: u32,
        prepared: program::PreparedProgram,
        identity: Option<Identity>,
        deadline: Instant,
        logs: &LogSink,
    ) -> Result<SpawnedProcess, LaunchError> {
        let resources = self.create_resources(spec, instance, &prepared, identity, logs)?;
        let SpawnResources { dir, isolation, proxy, state, model, group, listener } = resources;
        let program::PreparedProgram { program, file, script: _, argv0, args, cwd, digest, view } = prepared;
        let (client, client_cert) = match spec.tls {
            Tls::Off => (None, None),
            Tls::AutoMtls => {
                let (client, certificate) = ClientIdentity::make()?;
                (Some(client), Some(certificate))
            }
        };
        let given = environment::LaunchVariables {
            listens: listener.is_some(),
            proxied: proxy.is_some(),
            state: state.is_some(),
            model: model.is_some(),
            certificates: spec.sandbox.ca_file.is_some(),
        };
        let argv = std::iter::once(argv0).chain(args).collect();
        let client_cert = client_cert.as_deref();
        let mut env =
            environment::build(spec, &self.settings.env_allow_list, &dir, instance, given, client_cert);
        if let Some(isolation) = &isolation {
            environment::remove_added(&mut env, &isolation.listeners.env);
        }
        let jail = JailSpec {
            name: format!("{}/{instance}", spec.name),
            program,
            argv,
            env,
            cwd: cwd.unwrap_or_else(|| dir.home_dir()),
            identity,
            limits: spec.sandbox.limits,
            mode: spec.sandbox.mode,
            isolation,
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let inherited = InheritedFds {
            program: file.as_deref().map(AsFd::as_fd),
            stdin: listener.as_ref().map(AsFd::as_fd),
            group: group.as_ref().map(Group::procs),
        };
        let jailed = talon_jail::spawn(&self.stage, &jail, &inherited, left)?;
        // From now on only the plugin listens.
        drop(listener);
        if let Some(private) = jailed.private {
            dir.sockets().set_inside(private);
        }
        let proxy = match proxy {
            Some((proxy, inside)) => {
                if jailed.listeners.is_empty() {
                    logs.note(instance, Level::Warn, NO_LISTENERS);
                }
                let purposes = inside.listeners.into_iter().map(|(_, purpose)| purpose);
                serve_inside(&proxy, jailed.listeners.into_iter().zip(purposes))?;
                Some(proxy)
            }
            None => None,
        };
        // From here on the process dies with its handle.
        let process = Process::new(
            jailed.monitor,
            jailed.pid,
            uid_of(identity),
            ProcessResources {
                dir: dir.clone(),
                view,
                group,
                sockets: ServedSockets { proxy, state, model },
            },
        )
        .map_err(LaunchError::Watch)?;
        let stdout = PipeReader::new(jailed.stdout).map_err(LaunchError::Watch)?;
        let stderr = PipeReader::new(jailed.stderr).map_err(LaunchError::Watch)?;
        Ok(SpawnedProcess { process, dir, stdout, stderr, report: jailed.report, digest, identity: client })
    }
}
