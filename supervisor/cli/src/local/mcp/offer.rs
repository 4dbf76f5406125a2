//! `talon mcp`: finds the supervisor, or the command to start one, and executes `talon-mcp`.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use rustix::process::geteuid;
use sha2::{Digest, Sha256};
use talon_plugin_config::grant::ActionPattern;
use talon_proto::host::GetStatusRequest;
use talon_sanitize::sanitized;
use talon_supervisor::config::{KeyPath, LoadOptions, Loaded, Source};
use talon_supervisor::host::SOCKET_NAME;
use talon_supervisor::program_lookup;
use tokio::time::{Instant, sleep};

use crate::arguments::duration;
use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::host_socket::HostSocket;
use crate::line::sanitized_line;
use crate::local::configuration;
use crate::output::write_stderr;
use crate::runtime::block_on;

/// The program that speaks MCP.
const PROGRAM: &str = "talon-mcp";
/// How long to wait for a supervisor where one was before, and how often to look: a service manager needs a
/// moment between two of them.
const RESTART_WAIT: Duration = Duration::from_secs(5);
const RESTART_PAUSE: Duration = Duration::from_millis(100);
/// The longest base of a private runtime directory: sockets are created below it, and a socket path holds at
/// most 107 bytes.
const MAX_BASE_BYTES: usize = 36;

#[derive(Debug, Args)]
pub(super) struct OfferArgs {
    /// Offer only actions that match a pattern: git, git__status or git__read_*; may be given several times.
    /// Without it: all that the supervisor grants this user.
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    allow: Vec<String>,
    /// Do not offer actions that match a pattern; overrides --allow.
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    deny: Vec<String>,
    /// Serve clients over streamable HTTP there, such as 127.0.0.1:8400, instead of one on standard input and
    /// output. Each sends a token.
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// The file with the token of HTTP clients; made with a random token if it does not exist. Without it,
    /// the token is read from TALON_MCP_TOKEN.
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
    /// A host's name by which HTTP clients may ask for this server, besides localhost and the addresses of
    /// loopback; may be given several times.
    #[arg(long, value_name = "NAME", requires = "http")]
    allowed_host: Vec<String>,
    /// What MCP hosts get as structured content. plain: the tool's data by its own schema, outside of the
    /// guarded block. guarded: the block, for hosts that put structured content before their model. off:
    /// nothing.
    #[arg(long, value_name = "MODE", value_parser = ["plain", "guarded", "off"], default_value = "plain")]
    structured: String,
    /// If no supervisor answers, run one for as long as the MCP host is connected.
    #[arg(long)]
    own: bool,
    /// Wait this long for a supervisor that is not there yet, such as 30s; 0s does not wait. Without it: 5 s
    /// where the directory of its socket is there, and otherwise not at all.
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "own")]
    wait: Option<Duration>,
}

/// Validates a pattern; it is passed on as text.
fn pattern(text: &str) -> Result<String, <ActionPattern as FromStr>::Err> {
    text.parse::<ActionPattern>().map(|_| text.to_owned())
}

impl OfferArgs {
    pub(super) fn run(self, global: &Global) -> Result<u8, Failure> {
        let program = program_lookup::find(PROGRAM).map_err(|error| Failure::failed(error.to_string()))?;
        let mut command = Command::new(program);
        for (flag, patterns) in [("--allow", &self.allow), ("--deny", &self.deny)] {
            for pattern in patterns {
                command.arg(flag).arg(pattern);
            }
        }
        command.arg("--structured").arg(&self.structured);
        if let Some(address) = self.http {
            command.arg("--http").arg(address.to_string());
            if let Some(file) = &self.token_file {
                command.arg("--token-file").arg(file);
            }
            for name in &self.allowed_host {
                command.arg("--allowed-host").arg(name);
            }
        }
        let running = match block_on(find_running(global, self.own))? {
            None if !self.own => block_on(wait_for_next(global, self.wait))?,
            running => running,
        };
        match running {
            // It may belong to another client's window and exit with it; then this client has to start one.
            Some(path) if self.own => {
                let own = PrivateSupervisor::new(global)?;
                command.arg("--socket").arg(&path);
                if path == own.socket() {
                    command.arg("--").args(own.command);
                }
            }
            Some(path) => {
                command.arg("--socket").arg(path);
            }
            None if self.own => {
                let own = PrivateSupervisor::new(global)?;
                command.arg("--socket").arg(own.socket()).arg("--").args(own.command);
            }
            None => {
                return Err(Failure::new(
                    exit::UNREACHABLE,
                    format!(
                        "no supervisor at {}: start one with `talon serve`, give it longer with `--wait 30s`, or let `talon mcp --own` \
                         run one for as long as its client is connected",
                        HostSocket::new(global).path()?.display()
                    ),
                ));
            }
        }
        // Replaces this process, so that the MCP host's signals and pipes reach it directly.
        let error = command.exec();
        Err(Failure::failed(format!("cannot execute {PROGRAM}: {error}; install it beside talon again")))
    }
}

/// The socket of a running supervisor. With `own` and an explicit configuration, only one that runs with that
/// configuration: another one has other plugins.
async fn find_running(global: &Global, own: bool) -> Result<Option<PathBuf>, Failure> {
    let socket = HostSocket::new(global);
    let client = match own {
        true => Client::connect_if_there(&socket).await?,
        // `wait_for_next` waits for a socket that was named, too.
        false => Client::connect_if_listening(&socket).await?,
    };
    let Some(mut client) = client else { return Ok(None) };
    let path = client.path().to_owned();
    let Some(named) = global.config.as_ref().filter(|_| own && !socket.is_named()) else {
        return Ok(Some(path));
    };
    let status =
        client.host.get_status(GetStatusRequest {}).await.map_err(|status| client.failure(&status))?;
    let same = named.canonicalize().is_ok_and(|named| {
        Path::new(&status.get_ref().config_file).canonicalize().is_ok_and(|running| running == named)
    });
    Ok(same.then_some(path))
}

/// A supervisor that is not there yet. Without a wait that the user chose: the one that follows one which just stopped,
/// where its directory is there, and its socket is not. A client that connects for each call would otherwise fail
/// during each restart.
async fn wait_for_next(global: &Global, chosen: Option<Duration>) -> Result<Option<PathBuf>, Failure> {
    let socket = HostSocket::new(global).path()?;
    let was_there = socket.parent().is_some_and(Path::is_dir);
    let wait = chosen.unwrap_or(if was_there { RESTART_WAIT } else { Duration::ZERO });
    if wait.is_zero() {
        return Ok(None);
    }
    let path = sanitized_line(socket.display());
    write_stderr(sanitized!("no supervisor at {}: waiting {} s for one", path, wait.as_secs()), false);
    let until = Instant::now() + wait;
    while Instant::now() < until {
        sleep(RESTART_PAUSE).await;
        if let Some(running) = find_running(global, false).await? {
            return Ok(Some(running));
        }
    }
    Ok(None)
}

/// A private supervisor: where its socket is, and how to start it.
struct PrivateSupervisor {
    runtime_dir: PathBuf,
    command: Vec<OsString>,
}

impl PrivateSupervisor {
    fn new(global: &Global) -> Result<Self, Failure> {
        let options = configuration::load_options(global);
        // Report configuration errors here, where the exit code can express them.
        let loaded = configuration::load(&options)?;
        let (runtime_dir, private) = runtime_dir(&loaded, &options);
        if private {
            create_private_dir(&runtime_dir)
                .map_err(|error| Failure::failed(format!("{error}; {PRIVATE_DIR_HELP}")))?;
        }
        let talon = std::env::current_exe().map_err(|error| {
            Failure::failed(format!("cannot find talon itself: {error}; install it again"))
        })?;
        let mut command: Vec<OsString> = vec![talon.into(), "serve".into(), "--until-stdin-ends".into()];
        command.extend(["--runtime-dir".into(), runtime_dir.clone().into()]);
        if let Some(config) = &global.config {
            command.extend(["--config".into(), config.into()]);
        }
        Ok(Self { runtime_dir, command })
    }

    fn socket(&self) -> PathBuf {
        self.runtime_dir.join(SOCKET_NAME)
    }
}

/// Where a private supervisor has its sockets: the configured directory, or else a directory derived from the
/// configuration's path. It is the same each time, so that a second window of an editor finds the supervisor
/// that the first one started. Also returns whether it is the derived one.
fn runtime_dir(loaded: &Loaded, options: &LoadOptions) -> (PathBuf, bool) {
    let chosen = match loaded.source(&KeyPath::of(&["runtime_dir"])) {
        Source::Default => false,
        // Other variables (XDG_RUNTIME_DIR, …) only name the base of all users' runtime directories.
        Source::Variable(name) => name.starts_with("TALON_"),
        _ => true,
    };
    if chosen {
        return (loaded.config.runtime_dir.clone(), false);
    }
    let file = loaded.file.clone().unwrap_or_default();
    let file = options.environment.cwd.join(file);
    let file = file.canonicalize().unwrap_or(file);
    let digest = hex::encode(Sha256::digest(file.as_os_str().as_bytes()));
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let fits = |dir: &PathBuf| dir.is_dir() && dir.as_os_str().len() <= MAX_BASE_BYTES;
    let run = geteuid().is_root().then(|| PathBuf::from("/run"));
    let base = named.into_iter().chain(run).find(fits).unwrap_or_else(|| "/tmp".into());
    (base.join(format!("talon-mcp-{}-{}", geteuid().as_raw(), &digest[..12])), true)
}

const PRIVATE_DIR_HELP: &str = "remove it, or set XDG_RUNTIME_DIR or runtime_dir to a directory of your own";

/// Why a directory cannot hold the sockets of a private supervisor.
#[derive(Debug, thiserror::Error)]
enum PrivateDirError {
    #[error("cannot make {}: {error}", path.display())]
    Create { path: PathBuf, error: io::Error },
    #[error("cannot look at {}: {error}", path.display())]
    Inspect { path: PathBuf, error: io::Error },
    #[error("{} is no place for the sockets of your supervisor: {unfit}", path.display())]
    Unfit { path: PathBuf, unfit: UnfitDir },
}

#[derive(Debug, thiserror::Error)]
enum UnfitDir {
    #[error("it is no directory")]
    OtherType,
    #[error("it belongs to uid {0}")]
    OtherOwner(u32),
    #[error("others may use it (its mode is {0:04o})")]
    OpenToOthers(u32),
}

/// Creates the directory, or reports its owner: its name is predictable, so another user may have created it
/// first.
fn create_private_dir(path: &Path) -> Result<(), PrivateDirError> {
    let made = DirBuilder::new().mode(private_mode()).create(path);
    // Undo the umask. This process owns the directory, so it cannot have been replaced.
    let made = made.and_then(|()| fs::set_permissions(path, Permissions::from_mode(private_mode())));
    let path = path.to_owned();
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(PrivateDirError::Create { path, error });
        }
        _ => {}
    }
    let about = match path.symlink_metadata() {
        Ok(about) => about,
        Err(error) => return Err(PrivateDirError::Inspect { path, error }),
    };
    let unfit = if !about.is_dir() {
        UnfitDir::OtherType
    } else if about.uid() != geteuid().as_raw() {
        UnfitDir::OtherOwner(about.uid())
    } else if about.mode() & 0o066 != 0 {
        UnfitDir::OpenToOthers(about.mode() & 0o7777)
    } else {
        return Ok(());
    };
    Err(PrivateDirError::Unfit { path, unfit })
}

/// The directory's mode. Under root, plugins run with other uids and need execute permission to reach their
/// sockets.
fn private_mode() -> u32 {
    if geteuid().is_root() { 0o711 } else { 0o700 }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_private_directory_is_nobody_elses() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own");
        create_private_dir(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, private_mode());
        create_private_dir(&path).expect("the second window of an editor");
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        assert!(
            create_private_dir(&path)
                .unwrap_err()
                .to_string()
                .contains("others may use it (its mode is 0755)")
        );
        symlink(&path, dir.path().join("link")).unwrap();
        assert!(
            create_private_dir(&dir.path().join("link")).unwrap_err().to_string().contains("no directory")
        );
        if geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(54_321), None).unwrap();
            assert!(create_private_dir(&path).unwrap_err().to_string().contains("uid 54321"));
        }
    }
}
