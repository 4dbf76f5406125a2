//! From a service's spec to its running program: the same jail as a plugin's, but no handshake.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use talon_jail::{Group, InheritedFds, JailSpec, Mode, Program};
use talon_plugin_config::discover::CheckError;
use talon_plugin_config::files::program;
use tokio::time::timeout;

use super::attempt::LAST_OUTPUT_WAIT;
use super::blocking::flatten_join;
use super::error::LaunchError;
use super::process::{Process, ProcessResources, ServedSockets};
use super::shared::Shared;
use super::spawn::uid_of;
use super::{Launcher, isolation};
use crate::logs::{LogSink, Stream};
use crate::service_spec::ServiceSpec;
use crate::stdio::{LastLines, LineSplitter, PipeReader, StreamLogger};
use crate::traits::start::StartedService;

/// The timeout for building its jail: a thousand times what that needs. On a machine that is so busy, the
/// start fails until the next try. A stop in the meantime waits for it, too.
const SPAWN_TIMEOUT: Duration = Duration::from_secs(10);

/// A program that was just started, with its pipes.
struct SpawnedService {
    process: Process,
    control: OwnedFd,
    stdout: PipeReader,
    stderr: PipeReader,
    report: talon_jail::Report,
}

impl Launcher {
    /// Starts a service. On an error nothing is left behind.
    pub(crate) async fn service(
        &self,
        spec: &ServiceSpec,
        logs: &LogSink,
    ) -> Result<StartedService, LaunchError> {
        let (shared, spec) = (self.shared.clone(), spec.clone());
        // Runs to its end even if this future is dropped; then the process is killed when the result is
        // dropped.
        let spawned = tokio::task::spawn_blocking(move || shared.spawn_service(&spec)).await;
        let SpawnedService { process, control, stdout, stderr, report } = flatten_join(spawned)?;
        let last_words = LastLines::default();
        let drain = |reader: PipeReader, stream| {
            let scribe = StreamLogger::new(logs.clone(), 0, stream, last_words.clone());
            self.shared.readers.spawn(reader.drain(
                LineSplitter::new(logs.line_bytes()),
                scribe,
                process.gone_signal(),
            ))
        };
        let drained = [drain(stdout, Stream::Stdout), drain(stderr, Stream::Stderr)];
        let words = async move {
            let _ = timeout(LAST_OUTPUT_WAIT, futures_util::future::join_all(drained)).await;
            last_words.joined()
        };
        Ok(StartedService { process: Arc::new(process), control, report, last_output: words.boxed() })
    }
}

impl Shared {
    /// Blocking.
    fn spawn_service(&self, spec: &ServiceSpec) -> Result<SpawnedService, LaunchError> {
        let identity = spec.home.identity;
        if self.identities.is_some() && identity.is_none() && spec.sandbox.mode == Mode::Enforce {
            return Err(LaunchError::NoUid);
        }
        let (path, file) = program::open_own(&spec.program).map_err(CheckError::from)?;
        let dir = Arc::new(self.runtime.allocate(identity).map_err(LaunchError::Directory)?);
        let own = [self.runtime.path(), self.data_dir.as_path()];
        let isolation = isolation::for_service(spec, &path, &dir, &own)?;
        let group = self.create_group(&spec.name, &spec.sandbox, &dir)?;
        let (control, stdin) = talon_control::pair().map_err(LaunchError::Watch)?;
        let jail = JailSpec {
            name: spec.name.to_string(),
            program: Program::Descriptor,
            argv: std::iter::once(path.into()).chain(spec.args.iter().map(Into::into)).collect(),
            env: crate::environment::for_service(&self.settings.env_allow_list, &dir),
            cwd: dir.home_dir(),
            identity,
            limits: spec.sandbox.limits,
            mode: spec.sandbox.mode,
            isolation,
        };
        let given = InheritedFds {
            program: Some(file.as_fd()),
            stdin: Some(stdin.as_fd()),
            group: group.as_ref().map(Group::procs),
        };
        let jailed = talon_jail::spawn(&self.stage, &jail, &given, SPAWN_TIMEOUT)?;
        // From now on only the service holds it, so that its end is noticed.
        drop(stdin);
        if let Some(private) = jailed.private {
            dir.sockets().set_inside(private);
        }
        // From here on the process dies with its handle.
        let process = Process::new(
            jailed.monitor,
            jailed.pid,
            uid_of(identity),
            ProcessResources { dir, view: None, group, sockets: ServedSockets::default() },
        )
        .map_err(LaunchError::Watch)?;
        let stdout = PipeReader::new(jailed.stdout).map_err(LaunchError::Watch)?;
        let stderr = PipeReader::new(jailed.stderr).map_err(LaunchError::Watch)?;
        Ok(SpawnedService { process, control, stdout, stderr, report: jailed.report })
    }
}
