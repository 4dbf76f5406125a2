//! How `talon-agent` is run: jailed like a plugin, with the network, its home, and nothing else of ours.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use talon_jail::{Limits, Mode};
use talon_plugin::PluginName;
use talon_plugin::entry::NetworkAccess;
use talon_plugin::service::{Home, ServiceSpec};
use talon_plugin::spec::SandboxSettings;

use super::bounded::Bounded;
use crate::service::of_server;

static FILES: LazyLock<Bounded> = LazyLock::new(Bounded::new);

/// The wait before it is started again: short, since a person may sit there waiting; doubled with each death soon after.
const BACKOFF_INITIAL: Duration = Duration::from_millis(200);
/// The longest such wait. What keeps it from starting (a database, its program) does not get better by more attempts, and an
/// operator who mended it should not have to wait longer.
const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// How long it may take to finish what it has begun: it gives itself 5 s for that. A turn that is under way is not finished within
/// any such time; it is in its journal, and goes on at the next start.
const GRACE: Duration = Duration::from_secs(8);

/// Descriptors: 64 clients, as many connections to providers and to its database, and the rest for files. One more is an error of
/// whoever wanted it.
const MAX_DESCRIPTORS: u64 = 1024;
/// Memory of all its processes. Turns are bounded in number and in what they hold, far below this; tokenizers take some tens of
/// MiB. Beyond it the kernel kills it, and it is started again.
const MAX_MEMORY_BYTES: u64 = 2 << 30;
/// Processes and threads: it starts no process, and has a thread for each processor and those that wait for its database.
const MAX_TASKS: u64 = 256;

/// The directory of its workspace, if it is there. One that is not is no reason not to run: built-in texts stand for what is missing,
/// and it says so itself.
///
/// # Errors
/// When that cannot be told in a few seconds, as with the directory of a server that is gone: what to do next is told with it. The
/// agent runs without it then.
pub async fn workspace(dir: Option<&Path>) -> Result<Option<PathBuf>, String> {
    let Some(dir) = dir.map(Path::to_owned) else { return Ok(None) };
    let looked = dir.clone();
    let there = FILES.run(move || looked.is_dir()).await;
    let complaint = |error| {
        format!(
            "agent.workspace: {} cannot be looked at ({error}), and the agent runs without it: see whether its file system answers, then start talon again",
            dir.display()
        )
    };
    Ok(there.map_err(complaint)?.then_some(dir))
}

/// Under `name`, in `home`; with the directory of its [`workspace`] if there is one, and with a database server.
#[must_use]
pub fn service(
    name: PluginName,
    program: PathBuf,
    home: Home,
    mode: Mode,
    workspace: Option<PathBuf>,
    server: Option<&str>,
) -> ServiceSpec {
    let sandbox = SandboxSettings {
        mode,
        // Its providers are somewhere; which of them it asks is in its settings, and a proxy is one of them.
        network: NetworkAccess::Full,
        limits: limits(),
        ..SandboxSettings::default()
    };
    let of_server = server.map(of_server).unwrap_or_default();
    ServiceSpec {
        name,
        program,
        args: Vec::new(),
        home,
        sandbox,
        show: workspace.into_iter().chain(of_server).collect(),
        grace_period: GRACE,
        backoff_initial: BACKOFF_INITIAL,
        backoff_max: BACKOFF_MAX,
    }
}

/// What it may use. Its database may become as large as the disk.
fn limits() -> Limits {
    Limits {
        nofile: MAX_DESCRIPTORS,
        memory_bytes: MAX_MEMORY_BYTES,
        nproc: MAX_TASKS,
        fsize_bytes: u64::MAX,
        ..Limits::default()
    }
}
