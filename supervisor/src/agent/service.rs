//! How `talon-agent` is run: jailed like a plugin, with network access, its home directory, and no other
//! files of ours.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use talon_jail::{Limits, Mode};
use talon_plugin::service::{Home, ServiceSpec};
use talon_plugin_config::PluginName;
use talon_plugin_config::spec::{NetworkAccess, SandboxSettings};

use super::blocking_pool::BlockingPool;
use crate::service::{self, database_paths};

static FILES: LazyLock<BlockingPool> = LazyLock::new(BlockingPool::new);

/// The first wait before a restart: short, since a user may be waiting. It doubles with each early exit.
const BACKOFF_INITIAL: Duration = Duration::from_millis(200);

/// Memory of all its processes. Turns are limited in number and size, far below this; tokenizers take some
/// tens of MiB. Beyond the limit the kernel kills it, and it is restarted.
const MAX_MEMORY_BYTES: u64 = 2 << 30;
/// Processes and threads: it starts no process, and has a thread per processor plus those that wait for its
/// database.
const MAX_TASKS: u64 = 256;

/// The workspace directory does not answer, as on an unreachable server. The agent runs without it then.
#[derive(Debug, thiserror::Error)]
#[error(
    "agent.workspace: {} cannot be looked at ({source}), and the agent runs without it: see whether its file system answers, then start talon again",
    dir.display()
)]
pub struct WorkspaceError {
    dir: PathBuf,
    source: io::Error,
}

/// The workspace directory, if it exists. A missing one does not stop the agent: it uses built-in texts, and
/// reports that.
///
/// # Errors
/// [`WorkspaceError`] if the directory does not answer within a few seconds.
pub async fn workspace(dir: Option<&Path>) -> Result<Option<PathBuf>, WorkspaceError> {
    let Some(dir) = dir.map(Path::to_owned) else { return Ok(None) };
    let looked = dir.clone();
    let there = FILES.run(move || looked.is_dir()).await;
    match there {
        Ok(is_there) => Ok(is_there.then_some(dir)),
        Err(source) => Err(WorkspaceError { dir, source }),
    }
}

/// The service spec under `name`, with this `home`, its [`workspace`] if there is one, and access to a
/// database server. `nofile` is the most descriptors that it may have (`agent.limits.nofile`).
#[must_use]
pub fn service_spec(
    name: PluginName,
    program: PathBuf,
    home: Home,
    mode: Mode,
    workspace: Option<PathBuf>,
    server: Option<&str>,
    nofile: u32,
) -> ServiceSpec {
    let sandbox = SandboxSettings {
        mode,
        // The addresses of its providers are in its settings, and may be those of a proxy, so they are not
        // known here.
        network: NetworkAccess::Full,
        limits: limits(nofile),
        ..SandboxSettings::default()
    };
    let of_server = server.map(database_paths).unwrap_or_default();
    let readable_paths = workspace.into_iter().chain(of_server).collect();
    service::service_spec(name, program, home, sandbox, readable_paths, BACKOFF_INITIAL)
}

/// Its resource limits. Its database may become as large as the disk.
fn limits(nofile: u32) -> Limits {
    Limits {
        nofile: u64::from(nofile),
        memory_bytes: MAX_MEMORY_BYTES,
        nproc: MAX_TASKS,
        fsize_bytes: u64::MAX,
        ..Limits::default()
    }
}
