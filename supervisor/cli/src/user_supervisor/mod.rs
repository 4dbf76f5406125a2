//! Starts a supervisor for this user where `talon ask` or `talon chat` finds none.
//!
//! | module | contents |
//! |---|---|
//! | `launch` | how its process is started: by the user's service manager, else as a child |
//! | `log_file` | where a child's log goes |

mod launch;
mod log_file;

use std::io::{self, IsTerminal as _, stdin};
use std::path::Path;
use std::time::Duration;

use talon_client::{Agent, dial, is_not_listening};
use talon_jail::{Machine, Mode, Stage};
use talon_listen::UntrustedListenerError;
use talon_sanitize::{Raw, sanitized};
use talon_supervisor::config::{Config, Loaded};
use tokio::time::{Instant, sleep};

use self::launch::Launch;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::local::configuration;
use crate::output::Output;
use crate::transient_bar::TransientBar;

/// How long the start may take: the databases of the agent and of the state service open in it.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How often to look whether the agent's socket answers: a connection takes microseconds, and a person does not notice so
/// short a wait.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The protection's name in reports of the jail.
const NAMESPACES: &str = "namespaces";

/// Starts a supervisor if there is none, and a person is at the terminal or `wanted` it (`--start`); returns when its
/// agent answers. Where there is a socket already, it does nothing.
pub(crate) async fn start_if_absent(
    socket: &HostSocket<'_>,
    wanted: bool,
    out: &mut Output,
) -> Result<(), Failure> {
    if socket.is_named() {
        return match wanted {
            true => Err(Failure::usage(
                "--start starts a supervisor with your configuration: leave out --socket and TALON_HOST_SOCKET",
            )),
            false => Ok(()),
        };
    }
    let host = socket.path()?;
    if !is_absent(&host, wanted).await {
        return Ok(());
    }
    if !wanted && !stdin().is_terminal() {
        return Err(Failure::new(
            exit::UNREACHABLE,
            format!(
                "no supervisor at {}: --start starts one for you, and `talon serve` runs one for good",
                host.display()
            ),
        ));
    }
    let loaded = configuration::load(&configuration::load_options(socket.global()))?;
    require_agent(&loaded)?;
    if let Some(note) = jail_note(&loaded.config)? {
        out.err_line(sanitized!("note: {}", Raw::from(note).line()));
    }
    let launch = Launch::start(socket.global()).await?;
    let how = launch.describe();
    let bar = TransientBar::spinner("starting a supervisor");
    let started = wait_for_agent(&Agent::socket_beside(&host), launch).await;
    drop(bar);
    started?;
    let end = match loaded.config.user.idle_exit.get() {
        Duration::ZERO => String::new(),
        idle => format!(", and it ends after {} without a client", humantime::format_duration(idle)),
    };
    out.err_line(sanitized!(
        "note: no supervisor ran, so one was started ({}): `talon stop` ends it{}",
        Raw::from(how).line(),
        Raw::from(end).line()
    ));
    Ok(())
}

/// Whether no supervisor has its sockets there. A dead one's are replaced if the user `wanted` one.
async fn is_absent(host: &Path, wanted: bool) -> bool {
    let has_file =
        [host.to_owned(), Agent::socket_beside(host)].iter().any(|path| path.symlink_metadata().is_ok());
    if !has_file {
        return true;
    }
    wanted && matches!(dial(host).await, Err(error) if is_not_listening(&error))
}

fn require_agent(loaded: &Loaded) -> Result<(), Failure> {
    if loaded.config.runs_agent() {
        return Ok(());
    }
    Err(Failure::new(
        exit::UNREACHABLE,
        match &loaded.file {
            Some(file) => format!(
                "no supervisor runs, and none was started: {} has no agent: list a provider and its models under `models` there, unless it says `agent.enabled: false` \
                 (docs/agent.md)",
                file.display()
            ),
            None => "no supervisor runs, and there is no configuration for one: `talon setup` writes it from what this \
                     machine has; then ask again"
                .to_owned(),
        },
    ))
}

/// What a person has to know where this machine gives users no jail.
fn jail_note(config: &Config) -> Result<Option<String>, Failure> {
    if Mode::from(config.sandbox.mode) != Mode::Enforce {
        return Ok(None);
    }
    let stage = Stage::from_current_exe().map_err(|error| {
        Failure::failed(format!("cannot look at this machine's jails: {error}; see `talon doctor`"))
    })?;
    Ok(missing_jail_note(&talon_jail::probe(&stage)))
}

fn missing_jail_note(machine: &Machine) -> Option<String> {
    let missing: Vec<_> = machine.missing().collect();
    // Most of the others follow from namespaces, and its remedy is one line.
    let cause = missing.iter().find(|line| line.name == NAMESPACES).or(missing.first())?;
    let names = missing.iter().map(|line| line.name).collect::<Vec<_>>().join(", ");
    let fix = match cause.remedy.as_str() {
        "" => String::new(),
        remedy => format!("; {remedy}"),
    };
    Some(format!(
        "this machine gives users no whole jail ({names}), so plugins do not start, and the model answers without \
         tools{fix}; `talon doctor` says more"
    ))
}

/// Whether another look will see the same.
fn is_final(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied || UntrustedListenerError::of(error).is_some()
}

/// Waits until the agent's socket takes connections.
async fn wait_for_agent(agent: &Path, mut launch: Launch) -> Result<(), Failure> {
    let began = Instant::now();
    loop {
        match dial(agent).await {
            Ok(_) => return Ok(()),
            Err(error) if is_final(&error) => {
                return Err(Failure::new(
                    exit::DENIED,
                    format!("the supervisor was started, and {} cannot be used: {error}", agent.display()),
                ));
            }
            Err(_) => {}
        }
        launch.check()?;
        if began.elapsed() > START_LIMIT {
            return Err(launch.failure(&format!("it was not ready after {} s", START_LIMIT.as_secs())));
        }
        sleep(LOOK_INTERVAL).await;
    }
}
